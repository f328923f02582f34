/*
 * hello - the server name in a TLS ClientHello; see hello.h.
 *
 * Theory of operation
 *
 * The hello is one handshake message, split into records by the client and into segments by the
 * network. hello_scan() walks from record to record and only counts bytes; it remembers its
 * position, so each record is visited once however the bytes arrive. When the message is complete,
 * hello_parse() reads it once through a cursor that skips the record headers. So nothing is copied,
 * and no state is kept for positions inside the message.
 *
 * Hostile input: all of it. Every length must add up exactly at every level, the message must end
 * where a record ends (servers differ in how they treat a second message in the same record), and
 * there is at most one server_name with one host_name.
 */
#include "net/hello.h"

#include <string.h>

#define RECORD_MAX_BYTES 16384u
#define MESSAGE_HEADER_BYTES 4u
#define CLIENT_HELLO 1
#define VERSION_MAJOR 3
#define RANDOM_BYTES 32u
#define SESSION_ID_MAX_BYTES 32u
#define EXTENSION_SERVER_NAME 0
#define NAME_TYPE_HOST_NAME 0

static const char cut_short[] = "TLS hello: its lengths do not add up";

static uint32_t read16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

void hello_init(struct hello *h)
{
	memset(h, 0, sizeof(*h));
}

/* ---- until it is complete ---- */

static const char *check_record(const uint8_t *header)
{
	uint32_t len = read16(header + 3);

	if (header[0] != HELLO_FIRST_BYTE)
		return "TLS hello: another record in the middle of it";
	if (header[1] != VERSION_MAJOR)
		return "TLS hello: not a TLS version";
	if (len == 0 || len > RECORD_MAX_BYTES)
		return "TLS hello: a record of an impossible length";
	return NULL;
}

/* Counts one complete record. */
static const char *add_record(struct hello *h, const uint8_t *payload, uint32_t len)
{
	uint32_t total;

	for (uint32_t i = 0; i < len && h->header_len < MESSAGE_HEADER_BYTES; i++)
		h->header[h->header_len++] = payload[i];
	h->next += HELLO_RECORD_HEADER_BYTES + len;
	h->payload += len;
	if (h->header[0] != CLIENT_HELLO)
		return "TLS hello: the first message is another one";
	if (h->header_len < MESSAGE_HEADER_BYTES)
		return NULL;
	total = MESSAGE_HEADER_BYTES + ((uint32_t)h->header[1] << 16 | read16(h->header + 2));
	if (h->payload > total)
		return "TLS hello: more in its last record";
	h->is_whole = h->payload == total;
	return NULL;
}

const char *hello_scan(struct hello *h, const uint8_t *bytes, size_t len)
{
	while (!h->is_whole && h->next + HELLO_RECORD_HEADER_BYTES <= len) {
		const uint8_t *header = bytes + h->next;
		const char *problem = check_record(header);
		uint32_t record_len = read16(header + 3);

		if (problem)
			return problem;
		if (len - h->next - HELLO_RECORD_HEADER_BYTES < record_len)
			return NULL;
		problem = add_record(h, header + HELLO_RECORD_HEADER_BYTES, record_len);
		if (problem)
			return problem;
	}
	return NULL;
}

/* ---- when it is complete ---- */

/* A part of the message: `left` bytes from `at` on, not counting record headers. */
struct cursor {
	const uint8_t *at;
	size_t record_left; /* bytes until the next record header */
	size_t left;
	bool is_overrun; /* read beyond the end; all later reads return zero */
};

static uint8_t take8(struct cursor *c)
{
	if (c->is_overrun || c->left == 0) {
		c->is_overrun = true;
		return 0;
	}
	if (c->record_left == 0) {
		c->record_left = read16(c->at + 3);
		c->at += HELLO_RECORD_HEADER_BYTES;
	}
	c->left--;
	c->record_left--;
	return *c->at++;
}

static uint32_t take16(struct cursor *c)
{
	uint32_t high = take8(c);

	return high << 8 | take8(c);
}

/* Skips `count` bytes and returns a cursor over them. */
static struct cursor take_part(struct cursor *c, uint32_t count)
{
	struct cursor part = *c;

	if (count > c->left) {
		c->is_overrun = true;
		count = 0;
	}
	part.left = count;
	while (count-- > 0)
		(void)take8(c);
	return part;
}

static const char *parse_server_name(struct cursor list, struct authority *ret)
{
	uint8_t name[AUTHORITY_NAME_MAX_BYTES];
	size_t len = take16(&list);

	if (list.is_overrun || len != list.left)
		return "TLS server name: its list has another length";
	if (take8(&list) != NAME_TYPE_HOST_NAME)
		return "TLS server name: not a host name";
	len = take16(&list);
	if (list.is_overrun || len != list.left)
		return "TLS server name: not exactly one name";
	if (len > sizeof(name))
		return "TLS server name: too long";
	for (size_t i = 0; i < len; i++)
		name[i] = take8(&list);
	if (!authority_parse_name(name, len, ret))
		return "TLS server name: not a host name";
	return NULL;
}

static const char *parse_extensions(struct cursor *c, struct authority *ret, bool *ret_has_name)
{
	size_t len = take16(c);

	if (c->is_overrun || len != c->left)
		return cut_short;
	while (c->left > 0) {
		uint32_t type = take16(c);
		struct cursor data = take_part(c, take16(c));
		const char *problem;

		if (c->is_overrun)
			return cut_short;
		if (type != EXTENSION_SERVER_NAME)
			continue;
		if (*ret_has_name)
			return "TLS hello: two server names";
		problem = parse_server_name(data, ret);
		if (problem)
			return problem;
		*ret_has_name = true;
	}
	return c->is_overrun ? cut_short : NULL;
}

/* Skips the fields before the extensions. Their values do not matter, their lengths do. */
static const char *skip_fixed_part(struct cursor *c)
{
	uint32_t len;

	if (take16(c) >> 8 != VERSION_MAJOR)
		return "TLS hello: not a TLS version";
	(void)take_part(c, RANDOM_BYTES);
	len = take8(c);
	if (len > SESSION_ID_MAX_BYTES)
		return "TLS hello: a session id of an impossible length";
	(void)take_part(c, len);
	len = take16(c);
	if (len == 0 || len % 2 != 0)
		return "TLS hello: a list of ciphers of an impossible length";
	(void)take_part(c, len);
	len = take8(c);
	if (len == 0)
		return "TLS hello: no compression method";
	(void)take_part(c, len);
	return c->is_overrun ? cut_short : NULL;
}

const char *hello_parse(const struct hello *h, const uint8_t *bytes, struct authority *ret,
			bool *ret_has_name)
{
	struct cursor c = { .at = bytes, .left = h->payload };
	const char *problem;

	*ret_has_name = false;
	(void)take_part(&c, MESSAGE_HEADER_BYTES);
	problem = skip_fixed_part(&c);
	if (problem || c.left == 0)
		return problem;
	return parse_extensions(&c, ret, ret_has_name);
}
