#pragma once
/*
 * checkpointinterval - checkpoints that a running sandbox gets every so often.
 *
 * A sandbox's record has the interval and how many of its checkpoints are kept
 * (reconfigure_checkpoints()). Its supervisor starts a process for each one, which works like the
 * command `checkpoint create`, then removes the oldest that an interval made; those of a person are
 * never removed. If nothing has changed since the latest checkpoint, none is made: else an idle
 * sandbox would lose its history.
 */
#include "base/err.h"
#include "named/checkpoint.h"
#include "policy/operation.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ak;
struct named;

#define CHECKPOINTINTERVAL_MIN_MS 5000ull
#define CHECKPOINTINTERVAL_MAX_MS (366ull * 24 * 3600 * 1000)
#define CHECKPOINTINTERVAL_KEEP_DEFAULT 10u
#define CHECKPOINTINTERVAL_KEEP_MAX OPERATION_KEEP_MAX

/* The supervisor's timer, and the process that works for it. */
struct checkpointinterval {
	uint64_t at_ms; /* clock_now_ms() of the next one; 0: none */
	uint64_t began_ms;
	bool is_resumed; /* the next one may not be due: the sandbox has just started */
	pid_t pid;       /* 0: none works */
	int report_fd;   /* -1: none works */
};

struct checkpointinterval_report {
	char id[CHECKPOINT_ID_BYTES + 1]; /* "": nothing had changed, or it was not due */
	uint64_t wait_ms;                 /* it was not due; 0: it was */
	struct err failure;               /* code ERR_NONE: none */
};

void checkpointinterval_init(struct checkpointinterval *c);

/* Sets the timer for a sandbox that has just started, or whose interval was changed. */
void checkpointinterval_resume(struct checkpointinterval *c, const struct named *n);
void checkpointinterval_change(struct checkpointinterval *c, const struct named *n);

/* Is it time, and has the last process ended? */
bool checkpointinterval_is_due(const struct checkpointinterval *c);
/* Starts a process. It holds no descriptor or lock of this one, and outlives it. */
ERR_CHECKED int checkpointinterval_start(struct checkpointinterval *c, const struct ak *ak,
					 const struct named *n, struct err *e);
/* report_fd is readable: takes the result, and sets the timer again. */
void checkpointinterval_on_readable(struct checkpointinterval *c, const struct named *n,
				    struct checkpointinterval_report *ret);

/* "5m" or, for no interval, "off" and "0". */
ERR_CHECKED int checkpointinterval_parse(const char *text, uint64_t *ret_ms, struct err *e);
