/* publish - ports of the sandbox that are reachable at an address of the host; see publish.h. */
#include "policy/publish.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define USAGE "(use [ADDRESS:]PORT[:INNER], as in 8080:3000)"

struct range {
	uint16_t first, last;
};

/* "8080" or "8000-8009". */
static int read_range(char *text, uint16_t least, struct range *ret, struct err *e)
{
	char *dash = strchr(text, '-');
	uint64_t first = 0, last = 0;

	if (dash)
		*dash = '\0';
	if (parse_count(text, least, UINT16_MAX, &first, e) < 0 ||
	    parse_count(dash ? dash + 1 : text, least, UINT16_MAX, &last, e) < 0)
		return err_wrap(e, "a port");
	if (last < first || last - first >= PUBLISH_MAX)
		return err_set(e, ERR_INVALID, "a range of ports that is empty, or above %u ports",
			       PUBLISH_MAX);
	*ret = (struct range){ (uint16_t)first, (uint16_t)last };
	return 0;
}

/* Cuts an address off the front: "[::1]:", "127.0.0.1:", "localhost:"; a port is no address. */
static int take_address(char **text, struct address *ret, struct err *e)
{
	char *end = **text == '[' ? strchr(*text, ']') : strchr(*text, ':');
	bool is_bracketed = **text == '[';
	char *start = *text + is_bracketed;

	(void)address_parse("127.0.0.1", ret);
	if (!is_bracketed && (!end || strspn(*text, "0123456789-") == (size_t)(end - *text)))
		return 0;
	if (!end || (is_bracketed && end[1] != ':'))
		return err_set(e, ERR_INVALID, "'%s' has no port " USAGE, *text);
	*end = '\0';
	*text = end + (is_bracketed ? 2 : 1);
	if (strcmp(start, "localhost") == 0 || address_parse(start, ret))
		return 0;
	return err_set(e, ERR_INVALID, "'%s' is not an address of this machine " USAGE, start);
}

static int read_spec(char *text, struct address *address, struct range *port, struct range *inner,
		     struct err *e)
{
	size_t len = strlen(text);
	char *colon;

	if (len > 4 && strcmp(text + len - 4, "/tcp") == 0)
		text[len - 4] = '\0';
	if (strchr(text, '/'))
		return err_set(e, ERR_UNSUPPORTED, "'%s': TCP ports can be published, no others",
			       text);
	if (take_address(&text, address, e) < 0)
		return -1;
	colon = strchr(text, ':');
	if (colon)
		*colon = '\0';
	if (read_range(text, colon ? 0 : 1, port, e) < 0)
		return -1;
	*inner = *port;
	if (colon && read_range(colon + 1, 1, inner, e) < 0)
		return -1;
	if (port->last - port->first != inner->last - inner->first)
		return err_set(e, ERR_INVALID, "two ranges of different length");
	return 0;
}

const char *publish_format(const struct publish *p, char out[PUBLISH_TEXT_MAX_BYTES])
{
	char address[ADDRESS_TEXT_MAX_BYTES];
	bool is_v6 = p->address.bits == 128;

	(void)snprintf(out, PUBLISH_TEXT_MAX_BYTES, "%s%s%s:%u:%u", is_v6 ? "[" : "",
		       address_format(&p->address, address), is_v6 ? "]" : "", p->port, p->inner);
	return out;
}

int publish_add(char ***list, const char *text, struct err *e)
{
	cleanup_free char *copy = mem_dup(text);
	struct publish p = { 0 };
	struct range port = { 0 }, inner = { 0 };
	char formatted[PUBLISH_TEXT_MAX_BYTES];

	if (read_spec(copy, &p.address, &port, &inner, e) < 0)
		return -1;
	for (unsigned i = 0; i <= (unsigned)(port.last - port.first); i++) {
		p.port = (uint16_t)(port.first + i);
		p.inner = (uint16_t)(inner.first + i);
		if (p.port && keyrows_list_has(*list, publish_format(&p, formatted)))
			continue;
		if (keyrows_list_count(*list) >= PUBLISH_MAX ||
		    !keyrows_list_add(list, publish_format(&p, formatted)))
			return err_set(e, ERR_LIMIT, "more than %u published ports", PUBLISH_MAX);
	}
	return 0;
}

int publish_parse(const char *text, struct publish *ret, struct err *e)
{
	cleanup_free char *copy = mem_dup(text);
	struct range port = { 0 }, inner = { 0 };

	if (read_spec(copy, &ret->address, &port, &inner, e) < 0)
		return -1;
	ret->port = port.first;
	ret->inner = inner.first;
	return 0;
}
