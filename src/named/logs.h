#pragma once
/*
 * logs - reads the stored output of detached commands (protocol/tasklog writes it).
 *
 * Works for running and stopped sandboxes. Offsets count all bytes that the command ever wrote;
 * newer output replaces the oldest, and the reader reports how many bytes are missing.
 */
#include "base/err.h"
#include "protocol/tasklog.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

struct logs {
	int fds[2];
	uint32_t id;
	uint64_t offset; /* of the next byte to return */
	bool has_ended;
	struct tasklog_end end;
};

void logs_init(struct logs *l);
void logs_done(struct logs *l);

/* `id` NULL: the latest. ERR_NOT_FOUND if there is none. */
ERR_CHECKED int logs_open(const struct ak *ak, const char *sandbox, const char *id,
			  struct logs *ret, struct err *e);

/* Passes chunks from l->offset on to `fn`; *ret_skipped: lost bytes. NULL: only finds the end. */
typedef void logs_fn(void *context, enum tasklog_stream stream, const char *bytes, size_t len);
ERR_CHECKED int logs_read(struct logs *l, logs_fn *fn, void *context, uint64_t *ret_skipped,
			  struct err *e);
