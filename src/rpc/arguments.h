#pragma once
/*
 * arguments - the arguments of a call, as JSON: checked against the table of operations and turned
 * into what a worker process reads.
 *
 * Strict: what is missing, of the wrong kind or unknown is an error that names the parameter and
 * what it should be, in words that a program's author or a model can act on.
 */
#include "base/buf.h"
#include "base/err.h"
#include "policy/operation.h"

#include <jansson.h>

struct arguments {
	struct buf rows;     /* for the worker process's request */
	struct buf input;    /* its standard input: a command's, or a file's content */
	struct buf contents; /* of files to place first */
	bool has_input;
	uint64_t timeout_ms; /* 0: none */
};

void arguments_init(struct arguments *a);
void arguments_done(struct arguments *a);

/* `json` may be NULL: no arguments. ERR_INVALID, ERR_LIMIT. */
ERR_CHECKED int arguments_read(const struct operation *o, const json_t *json, struct arguments *ret,
			       struct err *e);

/* The JSON Schema of an operation's parameters, or of its results in short. New references. */
/* Of its parameters; with those that models are not shown, or without. */
json_t *arguments_schema(const struct operation *o, bool has_unlisted);
json_t *arguments_result_schema(const struct operation *o);
