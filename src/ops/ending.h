#pragma once
/* ending - what is said about how a command ended: a sentence for people, an object for programs.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "engine/run.h"

struct op_events;

/*
 * A sentence, where the exit status alone would look like a crash of the command's own; nothing
 * otherwise. `p` NULL: of a named sandbox, whose limits are its own.
 */
void ending_format(const struct run_result *r, const struct policy *p, uint64_t timeout_ms,
		   struct buf *out);
/* The same as a remark. */
void ending_remark(const struct op_events *ev, const struct run_result *r, const struct policy *p,
		   uint64_t timeout_ms);

/* "denied": what the network policy refused, and the option that would allow each ("": none would).
 */
void ending_add_denials(struct json *j, const struct run_result *r);

/* stdout and stderr hold at most 6 escaped characters a byte. */
#define ENDING_JSON_MAX_BYTES (13u * STREAMS_CAPTURE_MAX_BYTES)
/* One object and a newline. `p` NULL: of a named sandbox, whose figures are elsewhere. */
void ending_format_json(const struct run_result *r, const struct policy *p, struct buf *out);
/* The same object where nothing could be run: 125, 126 or 127, and "error" is the words. */
void ending_format_failure(const struct err *why, struct buf *out);
