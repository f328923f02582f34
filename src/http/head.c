/* head - parses the head of an HTTP/1.1 request; see head.h. */
#include "http/head.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BAD (-400)

void head_done(struct head *h)
{
	free(h->text);
	*h = (struct head){ 0 };
}

const char *head_get(const struct head *h, const char *name)
{
	for (unsigned i = 0; i < h->field_count; i++)
		if (strcmp(h->fields[i].name, name) == 0)
			return h->fields[i].value;
	return NULL;
}

static bool is_token_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(const char *text)
{
	for (const char *c = text; *c; c++)
		if (!is_token_char((unsigned char)*c))
			return false;
	return *text != '\0';
}

/* The end of the head, after its empty line; 0: incomplete, -1: a bare line feed or a NUL. */
static long find_end(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] == '\0' || (bytes[i] == '\n' && (i == 0 || bytes[i - 1] != '\r')) ||
		    (bytes[i] == '\r' && i + 1 < len && bytes[i + 1] != '\n'))
			return -1;
		if (i >= 3 && memcmp(bytes + i - 3, "\r\n\r\n", 4) == 0)
			return (long)i + 1;
	}
	return 0;
}

/* "GET /path HTTP/1.1" */
static int read_request_line(struct head *h, char *line)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version)
		return BAD;
	*target++ = '\0';
	*version++ = '\0';
	if (!is_token(line) || strlen(line) >= sizeof(h->method))
		return -501;
	if (strncmp(version, "HTTP/", 5) != 0)
		return BAD;
	if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0)
		return -505;
	if (strlen(target) > HEAD_TARGET_MAX_BYTES)
		return -414;
	if (target[0] != '/')
		return BAD;
	for (const char *c = target; *c; c++)
		if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
			return BAD;
	memcpy(h->method, line, strlen(line) + 1);
	h->target = target;
	h->is_kept_alive = version[7] == '1';
	h->is_http10 = !h->is_kept_alive;
	return 0;
}

static int read_field(struct head *h, char *line)
{
	char *colon = strchr(line, ':');
	char *value;
	size_t len;

	if (!colon)
		return BAD;
	*colon = '\0';
	if (!is_token(line)) /* also refuses a blank before the colon, and a folded line */
		return BAD;
	if (h->field_count == HEAD_FIELDS_MAX)
		return -431;
	for (char *c = line; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c - 'A' + 'a');
	value = colon + 1 + strspn(colon + 1, " \t");
	len = strlen(value);
	while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
		value[--len] = '\0';
	for (const char *c = value; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return BAD;
	h->fields[h->field_count++] = (struct head_field){ line, value };
	return 0;
}

static unsigned count(const struct head *h, const char *name)
{
	unsigned found = 0;

	for (unsigned i = 0; i < h->field_count; i++)
		found += strcmp(h->fields[i].name, name) == 0;
	return found;
}

static int read_length(struct head *h)
{
	const char *text = head_get(h, "content-length");
	uint64_t value = 0;

	if (!text)
		return 0;
	if (count(h, "content-length") > 1 || !*text || strlen(text) > 18)
		return BAD;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return BAD;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	h->content_length = value;
	h->has_content_length = true;
	return 0;
}

static int judge(struct head *h)
{
	/* fields that decisions depend on */
	static const char *const once[] = { "host", "origin", "authorization", "content-type",
					    "sec-fetch-site" };
	const char *coding = head_get(h, "transfer-encoding");
	const char *connection = head_get(h, "connection");
	const char *expect = head_get(h, "expect");

	if (read_length(h) < 0)
		return BAD;
	if (coding) {
		if (h->has_content_length || count(h, "transfer-encoding") > 1 || !h->is_kept_alive)
			return BAD; /* also for a transfer coding in HTTP/1.0 */
		if (strcasecmp(coding, "chunked") != 0)
			return -501;
		h->is_chunked = true;
	}
	if (h->is_kept_alive && count(h, "host") == 0)
		return BAD;
	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
		if (count(h, once[i]) > 1)
			return BAD;
	if (connection && strcasestr(connection, "close"))
		h->is_kept_alive = false;
	if (expect) {
		if (strcasecmp(expect, "100-continue") != 0)
			return -417;
		h->expects_continue = true;
	}
	return 0;
}

/* "HTTP/1.1 200 OK"; the reason may be missing. */
static int read_status_line(struct head *h, char *line)
{
	const char *code = line + 9;

	if (strncmp(line, "HTTP/1.1 ", 9) != 0 && strncmp(line, "HTTP/1.0 ", 9) != 0)
		return BAD;
	if (strspn(code, "0123456789") != 3 || code[0] < '1' || code[0] > '5' ||
	    (code[3] != ' ' && code[3] != '\0'))
		return BAD;
	for (const char *c = code; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return BAD;
	h->status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
	h->reason = line + 12 + (code[3] == ' ');
	h->is_kept_alive = line[7] == '1';
	return 0;
}

static int judge_answer(struct head *h)
{
	const char *coding = head_get(h, "transfer-encoding");
	const char *connection = head_get(h, "connection");

	if (read_length(h) < 0)
		return BAD;
	if (coding) {
		if (h->has_content_length || count(h, "transfer-encoding") > 1 ||
		    strcasecmp(coding, "chunked") != 0)
			return BAD;
		h->is_chunked = true;
	}
	if (connection && strcasestr(connection, "close"))
		h->is_kept_alive = false;
	return 0;
}

static int read_lines(struct head *h, bool is_answer)
{
	char *rest = h->text;
	int r = 0;

	for (bool is_first = true; r == 0 && *rest != '\r'; is_first = false) {
		char *line = rest;
		char *end = strstr(line, "\r\n");

		*end = '\0';
		rest = end + 2;
		r = !is_first   ? read_field(h, line)
		    : is_answer ? read_status_line(h, line)
				: read_request_line(h, line);
	}
	if (r < 0)
		return r;
	return is_answer ? h->status ? judge_answer(h) : BAD : h->target ? judge(h) : BAD;
}

static int parse(const char *bytes, size_t len, bool is_answer, struct head *ret, size_t *ret_used)
{
	struct head h = { 0 };
	size_t looked_at = len < HEAD_MAX_BYTES ? len : HEAD_MAX_BYTES;
	long end = find_end(bytes, looked_at);
	int r;

	if (end < 0)
		return BAD;
	if (end == 0)
		return len >= HEAD_MAX_BYTES ? -431 : 0;
	h.text = mem_dup_bytes(bytes, (size_t)end);
	r = read_lines(&h, is_answer);
	if (r < 0) {
		head_done(&h);
		return r;
	}
	*ret = h;
	*ret_used = (size_t)end;
	return 1;
}

int head_parse(const char *bytes, size_t len, struct head *ret, size_t *ret_used)
{
	return parse(bytes, len, false, ret, ret_used);
}

int head_parse_answer(const char *bytes, size_t len, struct head *ret, size_t *ret_used)
{
	int r = parse(bytes, len, true, ret, ret_used);

	return r < 0 ? -502 : r;
}
