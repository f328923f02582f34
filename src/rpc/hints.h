#pragma once
/*
 * hints - rewords suggestions in messages for callers of operations.
 *
 * The launcher's messages end with a suggestion for people at a terminal: a command, an option. A
 * caller of an operation has neither, but operations (tools in MCP, operationId in openapi.json)
 * and their parameters. What only the user can change is marked as the user's. All messages for
 * callers pass through here once, so the code that words them need not know who reads them.
 */
#include "base/buf.h"

#include <jansson.h>

/* Rewords an operation's result: its error, notes, reasons and fixes. */
void hints_translate(json_t *result);
/* Rewords one text. */
void hints_translate_text(const char *text, struct buf *out);
