#pragma once
/*
 * head - strict parser for the head of an HTTP/1.1 request, or of an answer.
 *
 * No system calls. Anything ambiguous is refused: bare line feeds, folded lines, spaces before a
 * colon, two lengths, a length beside a transfer coding, more than one Host, Origin, key or type.
 * Hostile input: every byte.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_MAX_BYTES (32u << 10)
#define HEAD_FIELDS_MAX 100u
#define HEAD_TARGET_MAX_BYTES (8u << 10)
#define HEAD_METHOD_MAX_BYTES 16u

struct head_field {
	char *name;  /* lower case */
	char *value; /* without leading and trailing blanks */
};

struct head {
	char method[HEAD_METHOD_MAX_BYTES];
	char *target; /* as received: "/path?query" */
	int status;   /* of an answer, and its reason */
	char *reason;
	struct head_field fields[HEAD_FIELDS_MAX];
	unsigned field_count;
	uint64_t content_length; /* 0 if there is none */
	bool has_content_length;
	bool is_chunked;
	bool is_http10;
	bool is_kept_alive; /* the client wants to send more on this connection */
	bool expects_continue;
	char *text; /* memory of all texts */
};

/*
 * Returns 1: *ret is set, and *ret_used bytes were parsed; 0: incomplete; a negative HTTP status
 * code: invalid. Free with head_done().
 */
int head_parse(const char *bytes, size_t len, struct head *ret, size_t *ret_used);
/*
 * The same for the head of an answer of a server in a sandbox: -502 if it is invalid. Sets .status
 * and .reason instead of .method and .target.
 */
int head_parse_answer(const char *bytes, size_t len, struct head *ret, size_t *ret_used);
void head_done(struct head *h); /* may run twice, and on a zeroed struct */

const char *head_get(const struct head *h, const char *name); /* NULL: missing */
