#pragma once
/*
 * execute - a command in a named sandbox that runs.
 *
 * The command gets this process's own streams through the supervisor: no byte is copied, unless a
 * terminal has to be emulated or output captured (engine/streams). Its end is reported to us by
 * init itself. Detached, it goes on without us and its output is kept (engine/logs).
 */
#include "base/err.h"
#include "engine/run.h"
#include "engine/streams.h"
#include "policy/policy.h"

#include <stdint.h>

struct execute_options {
	const char *name;
	const struct policy_caller *caller;
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

/* Waits for its end. Of *ret only what one command has: no memory, no network. */
ERR_CHECKED int execute_command(const struct execute_options *o, struct run_result *ret,
				struct err *e);

/*
 * In a sandbox that waited ready, with the policy that was asked for: 1, and *ret has all that
 * `run` knows; 0: it had ended while it waited, and nothing was started. Takes the claim's sockets,
 * also on failure.
 */
struct claim;
ERR_CHECKED int execute_claimed(const struct execute_options *o, const struct policy *p,
				struct claim *claim, struct run_result *ret, struct err *e);

/* Only starts it; `tty` STREAMS_TTY_ON gives it a terminal that can be attached to. */
ERR_CHECKED int execute_detached(const struct execute_options *o, uint32_t *ret_id, struct err *e);

/*
 * At the terminal of a detached command (id 0: the login shell, which is started if there is none)
 * until that ends or the user leaves: *ret_has_left.
 */
ERR_CHECKED int execute_attach(const struct execute_options *o, uint32_t id, struct run_result *ret,
			       bool *ret_has_left, struct err *e);
