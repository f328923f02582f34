#pragma once
/*
 * hints - what a message tells people to type, in the words of a program's call.
 *
 * The launcher's messages end in what to do about it, for people at a terminal: a command, an
 * option. A caller of an operation has neither; it has operations (tools in MCP, operationId in
 * openapi.json) and their parameters. What only the user can change is said to be the user's. All
 * messages for callers pass through here once, so the places that word them need not know who
 * reads.
 */
#include "base/buf.h"

#include <jansson.h>

/* In an operation's result: its error, notes, reasons and fixes. */
void hints_translate(json_t *result);
/* One text. */
void hints_translate_text(const char *text, struct buf *out);
