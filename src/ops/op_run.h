#pragma once
/*
 * op_run - one command in a fresh sandbox, which is gone afterwards unless it is kept.
 *
 * Decided here for every face: configuration and ceiling (ops/request), the image and its fallback
 * (ops/pickimage), what is executed, the private clone and [sandbox] init, whether a sandbox that
 * waits ready serves, and which files are there first.
 */
#include "engine/run.h"
#include "named/named.h"
#include "ops/request.h"

struct op_events;

struct op_run_args {
	struct request *request; /* not resolved yet; its policy is what was run with */
	char *const *command;    /* empty: the image's own */
	const char *entrypoint;  /* NULL: the image's own */
	bool has_no_entrypoint;  /* the command is all */
	enum streams_tty tty;
	bool is_captured; /* output into the result instead of this process's */
	bool is_verbose;  /* remarks about what of the user's is kept back */
	int lifeline_fd;  /* when its other end is closed, all is over at once; 0: none */

	/* a sandbox that stays, stopped, or, detached, goes on */
	bool is_kept, is_detached;
	const char *name; /* NULL: one is chosen */
	char *const *labels;
	uint64_t ttl_ms; /* 0: for ever */

	/* "PATH\nSIZE" each, ended by NULL; their bytes come from .contents_fd, in this order */
	char *const *files; /* NULL: none */
	int contents_fd;
};

struct op_run_result {
	struct run_result end;               /* after a failure it may still have notices */
	char name[NAMED_NAME_MAX_BYTES + 1]; /* of a sandbox that was kept; "": none */
};

ERR_CHECKED int op_run(struct ak *ak, const struct op_run_args *args, const struct op_events *ev,
		       struct op_run_result *ret, struct err *e);
void op_run_result_done(struct op_run_result *r); /* may run twice */

/*
 * Remarks about a command that failed: it is one of those that no sandbox can run, or files that it
 * names are in the caller's directory, which is not visible inside.
 */
void op_run_explain(const struct request *r, char *const *command, const struct run_result *end,
		    const struct op_events *ev);
