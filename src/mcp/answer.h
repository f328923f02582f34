#pragma once
/*
 * answer - tools and their results in the protocol's form.
 *
 * A result has a text that a model can use alone and the same as an object; clients show one or the
 * other. A failure is text only.
 */
#include "policy/operation.h"

#include <jansson.h>

/* The list of tools, always in the same order. All are new references. */
json_t *answer_tools(void);
/* What an operation has come to; takes `result`. */
json_t *answer_call(const struct operation *o, json_t *result);
json_t *answer_failure(const char *text);
