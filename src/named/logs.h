#pragma once
/*
 * logs - reading the kept output of detached commands (sandbox/tasklog writes it).
 *
 * Works whether the sandbox runs or not. Offsets count all bytes the command has ever written; what
 * was pushed out by newer output is gone, and the reader says how much.
 */
#include "base/err.h"
#include "sandbox/tasklog.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

struct logs {
	int fds[2];
	uint32_t id;
	uint64_t offset; /* of the next byte to give */
	bool has_ended;
	struct tasklog_end end;
};

void logs_init(struct logs *l);
void logs_done(struct logs *l);

/* `id` NULL: the latest. ERR_NOT_FOUND when there is none. */
ERR_CHECKED int logs_open(const struct ak *ak, const char *sandbox, const char *id,
			  struct logs *ret, struct err *e);

/* What is there from l->offset on, in order; a skip is told first. `fn` NULL: only its end. */
typedef void logs_fn(void *context, enum tasklog_stream stream, const char *bytes, size_t len);
ERR_CHECKED int logs_read(struct logs *l, logs_fn *fn, void *context, uint64_t *ret_skipped,
			  struct err *e);
