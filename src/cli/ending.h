#pragma once
/* ending - what is said about how a command ended. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/run.h"

/* What happened in the workspace, on stderr, a line each. */
void ending_tell_notices(char *const *notices);

/* A sentence, where the status alone would look like a crash of the command's own. `p` may be NULL.
 */
void ending_format(const struct run_result *r, const struct policy *p, uint64_t timeout_ms,
		   struct buf *out);
/* The same on stderr, where the status alone would look like a crash of its own. `p` may be NULL.
 */
void ending_explain(const struct run_result *r, const struct policy *p, uint64_t timeout_ms);

/* "denied": what the network policy refused, and the option that would allow each ("": none would).
 */
void ending_add_denials(struct json *j, const struct run_result *r);

/*
 * The same object where nothing could be run: "exit_code" is 125, 126 or 127 and "error" the words.
 * Its status is returned.
 */
int ending_print_failure(const struct err *why, struct err *e);

/* One object on stdout. `p` NULL: of a named sandbox, whose figures are elsewhere. */
ERR_CHECKED int ending_print_json(const struct run_result *r, const struct policy *p,
				  struct err *e);
