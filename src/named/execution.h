#pragma once
/*
 * execution - runs one command in a running sandbox, on the caller's side: the streams, the message
 * that starts it, signals to it, and the report of how it ended.
 *
 * Two users provide the differences: named/execute sends to the supervisor of a named sandbox,
 * pool/claimed to the init of a sandbox from the pool.
 */
#include "base/err.h"
#include "workspace/newnames.h"
#include "engine/run.h"
#include "engine/streams.h"
#include "engine/supervise.h"
#include "policy/policy.h"
#include "protocol/order.h"

#include <stdint.h>

struct ak;

struct execute_options {
	const char *name;
	const struct ak *ak;
	char *const *argv;   /* NULL: a login shell */
	const char *workdir; /* NULL: the sandbox's, also for `user` */
	const char *user;
	char *const *env;    /* "NAME=value" or "NAME", NULL-terminated; or NULL */
	uint64_t timeout_ms; /* 0: the sandbox's */
	enum streams_tty tty;
	bool is_captured;
	bool keeps_input; /* detached: its input comes by named/tasksession, else it has none */
	uint16_t rows, columns; /* of a terminal without a caller's; 0: the caller's */
	bool wants_figures;     /* pool/claimed: collect usage also after success */
	int lifeline_fd;        /* end everything when its other end closes; 0: none */
};

struct execution {
	const struct execute_options *options;
	struct policy policy;
	int control_fd;   /* to the supervisor or pool/warm's process; -1: closed by the peer */
	int report_fd;    /* our end of the report socket */
	int reporting_fd; /* init's end, until it is sent */
	int master_fd;
	int signal_fd;
	struct streams streams;
	struct newnames
		names; /* for a workspace that this process watches; or just newnames_init() */

	/* the differences between the two users; each may be NULL */
	int (*probe)(void *x, struct err *e); /* does the peer answer? */
	int (*check_unheard)(const struct execution *x,
			     struct err *e); /* the peer closed without an answer */
};

void execution_init(struct execution *x, const struct execute_options *o);
void execution_done(struct execution *x); /* may run twice */

/* Creates the socket on which init reports. */
ERR_CHECKED int execution_open_reports(struct execution *x, struct err *e);

/* The order for a command with the policy's user and groups. */
void execution_fill_order(const struct policy *p, unsigned flags, struct order_command *ret);
/* Fills in the command's flags (enum order_flags), user, groups and deadline. */
void execution_describe(const struct execution *x, unsigned flags, struct order_command *ret);
/* Sends the command with its arguments, environment and streams. */
ERR_CHECKED int execution_send(struct execution *x, const struct order_command *c, int fd,
			       uint32_t kind, struct err *e);

/* Receives the master of the terminal that init created: x->master_fd. */
ERR_CHECKED int execution_await_terminal(struct execution *x, struct err *e);
ERR_CHECKED int execution_wait(struct execution *x, struct supervise_outcome *ret, struct err *e);

/* Reads the remaining output, and hands over captured output. */
void execution_drain(struct execution *x);
void execution_take_output(struct execution *x, struct run_result *ret);
