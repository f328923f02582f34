#pragma once
/*
 * layerworker - runs this program as a worker for image files.
 *
 * Unpacking, packing and removing trees with an image's owners is done in a separate process: in
 * the user namespace that maps those owners, without the credentials and connections of the process
 * that pulls, and confined while it reads untrusted archives (image/layerconfine).
 *
 * agentkernel-image WORKER-OPERATION WORD... ; LAYERWORKER_* descriptors; the result goes to
 * stdout.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	LAYERWORKER_DIR_FD = 5,     /* the directory to work in */
	LAYERWORKER_ARCHIVE_FD = 6, /* read or written; may be missing */
	LAYERWORKER_LOCK_FD = 7,    /* only kept open: see layerworker_options.lock_fds */
};

#define LAYERWORKER_LOCKS_MAX 2
#define LAYERWORKER_OUTPUT_MAX_BYTES (64u << 20)

struct layerworker {
	pid_t pid;
	int output_fd; /* readable when it has output or has ended */
	char *output;  /* so far; may contain NULs */
	size_t output_len;
	int report_fd;
};

struct layerworker_options {
	const char *operation;
	const char *const *words; /* NULL-ended; may be NULL */
	int dir_fd;
	int archive_fd; /* -1: none */
	int userns_fd;  /* -1: none */
	/*
	 * Locks that the worker holds too, -1 for none: if this process is killed, nobody gets them
	 * before the worker has exited as well.
	 */
	int lock_fds[LAYERWORKER_LOCKS_MAX];
};

void layerworker_init(struct layerworker *w);
/* Kills it if it is still running. May be called twice. */
void layerworker_done(struct layerworker *w);

ERR_CHECKED int layerworker_start(const struct layerworker_options *o, struct layerworker *ret,
				  struct err *e);

/* Reads available output; *ret_has_ended at the end. Never blocks. */
ERR_CHECKED int layerworker_read(struct layerworker *w, bool *ret_has_ended, struct err *e);

/* Waits for its end; returns its failure as ours. */
ERR_CHECKED int layerworker_wait(struct layerworker *w, struct err *e);

/* Starts it and waits. The output is discarded. */
ERR_CHECKED int layerworker_run(const struct layerworker_options *o, struct err *e);

/* In the worker: enters the user namespace, as its root. */
ERR_CHECKED int layerworker_enter(struct err *e);
