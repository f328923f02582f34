#pragma once
/*
 * arguments - checks the JSON arguments of a call against the table of operations, and encodes them
 * for a worker process.
 *
 * Strict: a missing, mistyped or unknown argument is an error that names the parameter and the
 * expected value, in words that a program's author or a model can act on.
 */
#include "base/buf.h"
#include "base/err.h"
#include "policy/operation.h"

#include <jansson.h>

struct arguments {
	struct buf rows;     /* for the worker process's request */
	struct buf input;    /* its standard input: for a command, or a file's content */
	struct buf contents; /* of files to write first */
	bool has_input;
	uint64_t timeout_ms; /* 0: none */
};

void arguments_init(struct arguments *a);
void arguments_done(struct arguments *a);

/* `json` may be NULL: no arguments. ERR_INVALID, ERR_LIMIT. */
ERR_CHECKED int arguments_read(const struct operation *o, const json_t *json, struct arguments *ret,
			       struct err *e);

/* The JSON Schemas of an operation's parameters and results. New references. */
/* has_unlisted: include parameters that are hidden from models. */
json_t *arguments_schema(const struct operation *o, bool has_unlisted);
json_t *arguments_result_schema(const struct operation *o);
