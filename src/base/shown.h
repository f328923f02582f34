#pragma once
/*
 * shown - foreign text for people: what a terminal would obey instead of showing is made visible.
 *
 * File names, commands, hosts, comments and errors come from sandboxes, archives and servers. Not
 * shown but obeyed are control characters, U+0080 to U+009F among them (U+009B is "ESC [", and a
 * terminal that is not set to UTF-8 takes the single byte for it), and what turns the direction of
 * text or ends a line. So is what is not UTF-8: nobody knows what a terminal makes of it. Every
 * table, line and message that holds foreign text goes through here. JSON has escapes of its own
 * (base/json). Pure.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* How many of the `left` bytes the UTF-8 character at `text` takes; 0: it is none (RFC 3629). */
size_t shown_utf8_len(const char *text, size_t left);

/* The same for a character that a terminal only shows; 0: it is none of these. */
size_t shown_length(const char *text, size_t left);

void shown_replace(char *text);                    /* by '?', in place, byte for byte */
void shown_replace_lines(char *text, size_t len);  /* the same, but lines stay lines */
void shown_add(struct buf *out, const char *text); /* each such byte as "\x9b" */
