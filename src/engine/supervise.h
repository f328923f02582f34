#pragma once
/*
 * supervise - stays with a running sandbox until it has ended.
 *
 * One poll loop: the report pipe, signals of the caller, the pumps of a terminal or of captured
 * output, and the deadline. Signals are passed on to the command; at the deadline the command
 * gets SIGTERM and, a second later, everything is killed.
 */
#include "base/err.h"
#include "sandbox/report.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct gatekeeper;
struct newnames;
struct streams;

#define SUPERVISE_GRACE_MS 1000u
#define SUPERVISE_TERM_MS 10000u        /* between SIGTERM and the end, if that is ignored */
#define SUPERVISE_PROBE_FIRST_MS 10000u /* after the beginning */
#define SUPERVISE_PROBE_SIGNAL_MS 1500u /* after a signal that should end the command */

struct supervise_outcome {
	bool has_status;
	int wait_status;
	bool has_timed_out;
	bool is_disk_full; /* the root's disk, when the command had failed */
	bool was_alone;    /* nothing else ran inside when it ended */
	bool was_left; /* the user went away from a terminal that stays: SUPERVISE_CAN_LEAVE */
	enum report_limit limit;
};

/*
 * Before the sandbox starts: the signals that will be passed on are held back until the loop
 * takes them. The descriptor is the caller's to close.
 */
ERR_CHECKED int supervise_hold_signals(int *ret_signal_fd, struct err *e);

/*
 * Readable once a signal has come that ends waiting for a slow reader; the others are no reason
 * to give up on it. -1 where it cannot be had.
 */
int supervise_open_end_signals(void);

enum supervise_signal_flags {
	SUPERVISE_TO_GROUP = 1 << 0, /* the command's whole process group, as a terminal's would */
};

struct supervise_options {
	/* what is waited for: its reports, its terminal (-1: none), and how it is signalled */
	int report_fd, tty_master_fd;
	void (*send_signal)(void *context, int number, unsigned flags);
	void *context;

	struct streams *streams;
	struct gatekeeper *gatekeeper; /* NULL: another process keeps it */
	struct newnames *names;        /* NULL: another process watches them, or there are none */
	int signal_fd;
	uint64_t timeout_ms;         /* 0: none */
	uint64_t cpu_ms;             /* 0: none, or init watches it */
	const struct cgroup *cgroup; /* which tells the cpu time */

	bool ends_on_term; /* SIGTERM ends all after SUPERVISE_TERM_MS, a second one at once */
	/*
	 * Does whoever we wait for still answer? Asked once after the beginning, and after each
	 * signal that should end the command and has not: -1 ends the wait with that error. NULL:
	 * nobody to ask.
	 */
	int (*probe)(void *context, struct err *e);

	int lifeline_fd; /* when its other end is closed, waiting is over: ERR_BUSY; 0: none */

	/* one more descriptor to look at, and what to do then: -1 ends the wait with that error */
	int other_fd; /* 0: none */
	int (*on_other)(void *context, struct err *e);
};

/* Failure means that the command could not start, in its own words, or had to be ended. */
ERR_CHECKED int supervise_wait(const struct supervise_options *o, struct supervise_outcome *ret,
			       struct err *e);
