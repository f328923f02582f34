#pragma once
/* ending - describes how a command ended: a sentence for people, an object for programs. */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/run.h"

struct op_events;

/*
 * A sentence if the exit status alone would look like a crash of the command; else nothing. `p`
 * NULL: of a named sandbox, whose limits are not known here.
 */
void ending_format(const struct run_result *r, const struct policy *p, uint64_t timeout_ms,
		   struct buf *out);
/* The same as a remark. */
void ending_remark(const struct op_events *ev, const struct run_result *r, const struct policy *p,
		   uint64_t timeout_ms);

/* "denied": refused connections, each with the option that would allow it ("": none would). */
void ending_add_denials(struct json *j, const struct run_result *r);

/* stdout and stderr: each byte becomes at most 6 characters */
#define ENDING_JSON_MAX_BYTES (13u * STREAMS_CAPTURE_MAX_BYTES)
/* One object and a newline. `p` NULL: of a named sandbox, without usage and denials. */
void ending_format_json(const struct run_result *r, const struct policy *p, struct buf *out);
/* The same object if nothing could be run: exit_code 125, 126 or 127, and "error" is the reason. */
void ending_format_failure(const struct err *why, struct buf *out);
