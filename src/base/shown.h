#pragma once
/*
 * shown - makes untrusted text safe to print: characters that a terminal would interpret become
 * visible.
 *
 * File names, commands, hosts, comments and errors come from sandboxes, archives and servers. A
 * terminal interprets control characters, also U+0080 to U+009F (U+009B is "ESC [", and a terminal
 * that is not set to UTF-8 takes the single byte for it), and characters that change the text
 * direction or end a line. Invalid UTF-8 is unpredictable. Every table, line and message with
 * untrusted text goes through here. JSON has its own escapes (base/json). No system calls.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Bytes that the UTF-8 character at `text` takes, of `left`; 0: invalid (RFC 3629). */
size_t shown_utf8_len(const char *text, size_t left);

/* Likewise for a character that a terminal only displays; 0: any other. */
size_t shown_length(const char *text, size_t left);

void shown_replace(char *text);                    /* by '?', in place, byte by byte */
void shown_replace_lines(char *text, size_t len);  /* likewise, but keeps newlines */
void shown_add(struct buf *out, const char *text); /* each such byte as "\x9b" */
