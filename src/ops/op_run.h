#pragma once
/*
 * op_run - one command in a new sandbox, which is removed afterwards unless it is kept.
 *
 * Decides for the command line and servers: configuration and ceiling (ops/request), the image and
 * its fallback (ops/pickimage), the arguments, the private clone and [sandbox] init, the use of the
 * pool, and the files to write first.
 */
#include "engine/run.h"
#include "named/named.h"
#include "ops/request.h"

struct op_events;

struct op_run_args {
	struct request *request; /* not resolved yet; afterwards has the policy of the run */
	char *const *command;    /* empty: the image's own */
	const char *entrypoint;  /* NULL: the image's own */
	bool has_no_entrypoint;  /* ignore the image's entrypoint */
	enum streams_tty tty;
	bool is_captured; /* store the output in the result */
	bool is_verbose;  /* remark what is hidden from the command */

	/* keeps a named sandbox: stopped, or running if detached */
	bool is_kept, is_detached;
	const char *name; /* NULL: a name is chosen */
	char *const *labels;
	uint64_t ttl_ms; /* 0: no expiry */

	/* "PATH\nSIZE" each, NULL-terminated; .contents_fd has their bytes in this order */
	char *const *files; /* NULL: none */
	int contents_fd;
};

struct op_run_result {
	struct run_result end;               /* may have notices even after a failure */
	char name[NAMED_NAME_MAX_BYTES + 1]; /* of a kept sandbox; "": none */
};

ERR_CHECKED int op_run(struct ak *ak, const struct op_run_args *args, const struct op_events *ev,
		       struct op_run_result *ret, struct err *e);
void op_run_result_done(struct op_run_result *r); /* may run twice */

/*
 * Remarks about a failed command: no sandbox can run it, or files that it names are in the caller's
 * directory, which is not visible inside.
 */
void op_run_explain(const struct request *r, char *const *command, const struct run_result *end,
		    const struct op_events *ev);
