#pragma once
/*
 * supervise - waits for a running sandbox until it ends.
 *
 * One poll loop: the report pipe, signals of the caller, the pumps of a terminal or of captured
 * output, and the deadline. Signals are passed to the command; at the deadline the command gets
 * SIGTERM and, a second later, everything is killed.
 */
#include "base/err.h"
#include "protocol/report.h"

#include <stdbool.h>
#include <stdint.h>

struct cgroup;
struct gatekeeper;
struct newnames;
struct streams;

#define SUPERVISE_GRACE_MS 1000u
#define SUPERVISE_TERM_MS 10000u        /* from SIGTERM to the end, if it is ignored */
#define SUPERVISE_PROBE_FIRST_MS 10000u /* after the start */
#define SUPERVISE_PROBE_SIGNAL_MS 1500u /* after a signal that should end the command */

struct supervise_outcome {
	bool has_status;
	int wait_status;
	bool has_timed_out;
	bool is_disk_full; /* the root's disk, after the command failed */
	bool was_alone;    /* no other process ran inside at its end */
	bool was_left;     /* the user detached from the terminal: STREAMS_CAN_LEAVE */
	enum report_limit limit;
};

/*
 * Before the sandbox starts: blocks the signals that will be passed on, until the loop reads them.
 * The caller closes the descriptor.
 */
ERR_CHECKED int supervise_hold_signals(int *ret_signal_fd, struct err *e);

/*
 * Opens a descriptor that is readable after a signal that ends the wait for a slow reader; other
 * signals do not. -1 on failure.
 */
int supervise_open_end_signals(void);

enum supervise_signal_flags {
	SUPERVISE_TO_GROUP = 1 << 0, /* the command's process group, like a terminal's signals */
};

struct supervise_options {
	/* the report socket, the terminal (-1: none), and how to send signals */
	int report_fd, tty_master_fd;
	void (*send_signal)(void *context, int number, unsigned flags);
	void *context;

	struct streams *streams;
	struct gatekeeper *gatekeeper; /* NULL: another process has it */
	struct newnames *names;        /* NULL: another process watches them, or there are none */
	int signal_fd;
	uint64_t timeout_ms;         /* 0: none */
	uint64_t cpu_ms;             /* 0: none, or init watches it */
	const struct cgroup *cgroup; /* for reading the cpu time */

	bool ends_on_term; /* SIGTERM ends all after SUPERVISE_TERM_MS, a second one at once */
	/*
	 * Does the peer still answer? Called once after the start, and after each signal that
	 * should end the command but has not: -1 ends the wait with that error. NULL: no peer.
	 */
	int (*probe)(void *context, struct err *e);

	int lifeline_fd; /* the wait ends when its other end closes: ERR_BUSY; 0: none */

	/* another descriptor and its handler, NULL: none; -1 ends the wait with that error */
	int other_fd;
	int (*on_other)(void *context, struct err *e);
};

/* Fails if the command could not start, with its own error, or had to be ended. */
ERR_CHECKED int supervise_wait(const struct supervise_options *o, struct supervise_outcome *ret,
			       struct err *e);
