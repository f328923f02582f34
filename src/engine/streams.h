#pragma once
/*
 * streams - the command's stdin, stdout and stderr.
 *
 * Pipes and files of the caller are passed to the command: no byte is copied. Terminals are not. A
 * descriptor of the caller's terminal lets its holder read the keyboard and change the line's
 * settings, so:
 *
 *   a terminal is requested   the command gets one of its own (host/tty), bytes are copied
 *   stdin is a terminal       the supervisor reads it (and obeys job control), a pipe goes in
 *   stdout, stderr are        a pipe comes out: writers can freeze and misuse a terminal
 *   output is captured        pipes into buffers
 */
#include "base/buf.h"
#include "base/err.h"
#include "engine/pump.h"
#include "host/tty.h"

#include <stdbool.h>
#include <sys/types.h>

enum streams_tty { STREAMS_TTY_AUTO, STREAMS_TTY_ON, STREAMS_TTY_OFF };

#define STREAMS_CAPTURE_MAX_BYTES (16u << 20) /* of each of stdout and stderr */
#define STREAMS_PUMPS_MAX 3u

/*
 * A pipe belongs to its creator. So that a root caller's sandbox can open /dev/stderr by name, the
 * sandbox's group may write its output pipes (and read its stdin) during the run, but not the other
 * way round: a sandbox that can write into its own stdin feeds commands to a shell outside that
 * reads the same pipe. The descriptor is O_PATH, so it does not keep the pipe open for readers and
 * writers.
 */
struct streams_loan {
	int path_fd; /* -1: nothing lent */
	gid_t gid;   /* the original group */
	mode_t mode;
};

struct streams {
	bool has_tty;
	bool is_captured;
	bool can_leave;
	int command_fd[3]; /* for the command, without a terminal of its own */
	int owned_fd[3];   /* those of them that we close, else -1 */
	struct pump pumps[STREAMS_PUMPS_MAX];
	unsigned pump_count;
	struct buf captured[2]; /* stdout, stderr */
	struct tty_mode mode;
	struct streams_loan loans[3];
};

enum streams_flags {
	STREAMS_CAPTURED = 1 << 0,  /* output into buffers */
	STREAMS_CAN_LEAVE = 1 << 1, /* the key PUMP_STOP (pump.h) detaches */
	STREAMS_NO_FILES = 1 << 2,  /* copy a plain file's bytes instead of passing it */
};

void streams_init(struct streams *s); /* nothing is open */
ERR_CHECKED int streams_open(struct streams *s, enum streams_tty tty, unsigned flags,
			     struct err *e);
void streams_done(struct streams *s); /* may run twice; restores the terminal */

/* Gives the sandbox's group access to the caller's pipes until streams_done(). */
void streams_lend_pipes(struct streams *s, gid_t gid);

/* After the child has its copies: closes ours, so that end of file is seen; starts the terminal. */
void streams_started(struct streams *s, int tty_master_fd);
