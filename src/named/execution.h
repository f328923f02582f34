#pragma once
/*
 * execution - one command in a sandbox that runs already, as its caller sees it: the streams, the
 * order to start it, signals on their way in, and the report of how it ended.
 *
 * The two kinds of such sandboxes have what differs: a named one is asked through its supervisor
 * (named/execute), one that waited ready through its init (pool/claimed).
 */
#include "base/err.h"
#include "workspace/newnames.h"
#include "engine/run.h"
#include "engine/streams.h"
#include "engine/supervise.h"
#include "policy/policy.h"
#include "sandbox/order.h"

#include <stdint.h>

struct ak;

struct execute_options {
	const char *name;
	const struct ak *ak;
	char *const *argv;   /* NULL: a login shell */
	const char *workdir; /* NULL: the sandbox's own, as the next */
	const char *user;
	char *const *env;    /* "NAME=value" or "NAME", ended by NULL; or NULL */
	uint64_t timeout_ms; /* 0: the sandbox's own */
	enum streams_tty tty;
	bool is_captured;
	bool wants_figures; /* claimed: also where all went well */
	int lifeline_fd;    /* when its other end is closed, all is over at once; 0: none */
};

struct execution {
	const struct execute_options *options;
	struct policy policy;
	int control_fd;   /* to the process that has the sandbox; -1: it has hung up */
	int report_fd;    /* our end of where init reports */
	int reporting_fd; /* init's, until it is sent */
	int master_fd;
	int signal_fd;
	struct streams streams;
	struct newnames names; /* of a workspace that this process watches; none: newnames_init() */

	/* what the two kinds do differently; each may be NULL */
	int (*probe)(void *x, struct err *e); /* does the other side live? */
	int (*check_unheard)(const struct execution *x,
			     struct err *e); /* it has hung up without a word */
};

void execution_init(struct execution *x, const struct execute_options *o);
void execution_done(struct execution *x); /* may run twice */

/* The socket on which init reports. */
ERR_CHECKED int execution_open_reports(struct execution *x, struct err *e);

/* What starts the command: flags of enum order_flags, and who it runs as. */
void execution_describe(const struct execution *x, unsigned flags, struct order_command *ret);
/* Sends it with its texts and streams. -EPIPE: the other side has gone, and *e is not filled in. */
ERR_CHECKED int execution_send(struct execution *x, const struct order_command *c, int fd,
			       uint32_t kind, struct err *e);

/* The master of its terminal, which init made: x->master_fd. */
ERR_CHECKED int execution_await_terminal(struct execution *x, struct err *e);
ERR_CHECKED int execution_wait(struct execution *x, struct supervise_outcome *ret, struct err *e);

/* The last bytes of output, and what was captured. */
void execution_drain(struct execution *x);
void execution_take_output(struct execution *x, struct run_result *ret);
