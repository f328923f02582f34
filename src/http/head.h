#pragma once
/*
 * head - the head of an HTTP/1.1 request, read strictly.
 *
 * Pure. What two programs could read in two ways is refused: bare line feeds, folded lines, spaces
 * before a colon, two lengths, a length beside a transfer coding, more than one Host, Origin, key
 * or type. Hostile: every byte.
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
	char *value; /* without outer blanks */
};

struct head {
	char method[HEAD_METHOD_MAX_BYTES];
	char *target; /* as it came: "/path?query" */
	struct head_field fields[HEAD_FIELDS_MAX];
	unsigned field_count;
	uint64_t content_length; /* 0 when there is none */
	bool has_content_length;
	bool is_chunked;
	bool is_kept_alive; /* the client wants to send more on this connection */
	bool expects_continue;
	char *text; /* holds it all */
};

/*
 * 1: *ret is filled, *ret_used bytes were its; 0: not all of it is there; a status code of HTTP,
 * negative, for what is wrong with it. head_done() releases.
 */
int head_parse(const char *bytes, size_t len, struct head *ret, size_t *ret_used);
void head_done(struct head *h); /* may run twice, and on a zeroed struct */

const char *head_get(const struct head *h, const char *name); /* NULL: not there */
