#pragma once
/*
 * layerworker - this program once more, to touch what images bring.
 *
 * Unpacking, packing and sweeping trees whose owners are an image's happens in a process of its
 * own: in the user namespace that has those owners, without the credentials and connections of the
 * process that pulls, and, while it reads foreign archives, locked in (image/layerconfine).
 *
 * agentkernel-image WORKER-OPERATION WORD... ; WORKER_* descriptors; what it has to say goes to its
 * stdout.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	LAYERWORKER_DIR_FD = 5,     /* the directory to work in */
	LAYERWORKER_ARCHIVE_FD = 6, /* read or written; may be missing */
	LAYERWORKER_LOCK_FD = 7,    /* kept open, no more: see layerworker_options.lock_fds */
};

#define LAYERWORKER_LOCKS_MAX 2
#define LAYERWORKER_OUTPUT_MAX_BYTES (64u << 20)

struct layerworker {
	pid_t pid;
	int output_fd; /* readable when it has something to say or has ended */
	char *output;  /* so far; may hold NULs */
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
	 * before the worker has gone as well.
	 */
	int lock_fds[LAYERWORKER_LOCKS_MAX];
};

void layerworker_init(struct layerworker *w);
/* Ends it if it still runs. May run twice. */
void layerworker_done(struct layerworker *w);

ERR_CHECKED int layerworker_start(const struct layerworker_options *o, struct layerworker *ret,
				  struct err *e);

/* Reads what is there; *ret_has_ended when there will be no more. Does not wait. */
ERR_CHECKED int layerworker_read(struct layerworker *w, bool *ret_has_ended, struct err *e);

/* Waits for its end; its failure is ours. */
ERR_CHECKED int layerworker_wait(struct layerworker *w, struct err *e);

/* All of it: start, wait. The output is dropped. */
ERR_CHECKED int layerworker_run(const struct layerworker_options *o, struct err *e);

/* In the worker: enters the user namespace, as its root. */
ERR_CHECKED int layerworker_enter(struct err *e);
