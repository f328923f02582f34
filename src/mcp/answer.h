#pragma once
/*
 * answer - formats tools and results for the protocol.
 *
 * A result has a text that a model can use alone, and the same as an object; clients show one of
 * them. A failure is text only.
 */
#include "policy/operation.h"

#include <jansson.h>

/* The list of tools, always in the same order. All functions return new references. */
json_t *answer_tools(void);
/* The result of an operation; takes ownership of `result`. */
json_t *answer_call(const struct operation *o, json_t *result);
json_t *answer_failure(const char *text);
