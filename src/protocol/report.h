#pragma once
/*
 * report - messages from a starting or ending command to its supervisor, over a pipe or socket.
 *
 * Written by our own code only: by the child while it sets up the sandbox, by the command's process
 * if exec fails, and by init when the command has ended. Each report is a single write below
 * PIPE_BUF, so reports never interleave.
 */
#include "base/err.h"
#include "base/frame.h"

enum report_kind {
	REPORT_FAILED = 1, /* .error is the reason */
	REPORT_ENDED,      /* .wait_status of the command */
	REPORT_LIMIT,      /* init ended the sandbox: .limit was reached */
	REPORT_STARTED,    /* a serving init is ready, or a detached command was started */
};

enum report_flags {
	REPORT_TIMED_OUT = 1 << 0, /* the command's deadline passed before it ended */
	REPORT_DISK_FULL = 1 << 1, /* the root file system was full when it ended */
	REPORT_ALONE = 1 << 2,     /* only init was left inside when it ended */
};

enum report_limit {
	REPORT_LIMIT_NONE,
	REPORT_LIMIT_MEMORY,
	REPORT_LIMIT_CPU_TIME,
	REPORT_LIMIT_PIDS,
};

struct report {
	enum report_kind kind;
	int wait_status;
	unsigned flags; /* REPORT_ENDED */
	enum report_limit limit;
	struct err error;
};

FRAME_STRUCT(struct report, 536); /* init sends the end of a command to the client as a frame */

void report_failed(int report_fd, const struct err *e);
/* Runs inside, after the pivot: if the command failed, checks whether the root's disk is full. */
void report_ended(int report_fd, int wait_status, unsigned flags);
void report_started(int report_fd);
void report_limit_reached(int report_fd, enum report_limit limit);

/* Returns 1 with a report, 0 at end of file, -1 on failure. */
ERR_CHECKED int report_read(int report_fd, struct report *ret, struct err *e);
