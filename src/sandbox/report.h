#pragma once
/*
 * report - what comes home from inside a sandbox, through one pipe or socket.
 *
 * Written by our own code only: by the child while it builds the walls, by the command's
 * process when exec fails, and by init when the command has ended. Each report is one write
 * below PIPE_BUF, so two never mix.
 */
#include "base/err.h"
#include "base/frame.h"

enum report_kind {
	REPORT_FAILED = 1, /* .error says what */
	REPORT_ENDED,      /* .wait_status of the command */
	REPORT_LIMIT,      /* init ended the sandbox: .limit was reached */
	REPORT_STARTED,    /* a serving init is ready; a detached command runs */
};

enum report_flags {
	REPORT_TIMED_OUT = 1 << 0, /* its deadline passed first */
	REPORT_DISK_FULL = 1 << 1, /* when it ended the root had no room left */
	REPORT_ALONE = 1 << 2,     /* when it ended nothing but init was left inside */
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

FRAME_STRUCT(struct report, 536); /* init tells the end of a command to whoever asked for it */

void report_failed(int report_fd, const struct err *e);
/* Inside, after the pivot: looks at the root's disk where the command has failed. */
void report_ended(int report_fd, int wait_status, unsigned flags);
void report_started(int report_fd);
void report_limit_reached(int report_fd, enum report_limit limit);

/* 1 with a report, 0 at the end of the pipe, -1 on failure. */
ERR_CHECKED int report_read(int report_fd, struct report *ret, struct err *e);
