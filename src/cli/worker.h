#pragma once
/*
 * worker - carries out one operation (policy/operation) for a face that speaks JSON.
 *
 * The faces (agentkernel-mcp, agentkernel-serve) are programs of their own, with large libraries
 * and many callers. For each call they start `agentkernel worker`, a small process that does one
 * thing and ends: so calls cannot disturb each other, a cancelled one is a killed process, and the
 * supervisor of a sandbox holds nothing of other callers'.
 *
 * Descriptors that it starts with:
 *   0, 1, 2  the command's streams, or 0 the content of a file
 *   3        the request: rows (base/keyrows) "operation", "ceiling" (FIELD=TEXT, the server's own
 *            options), "config" or "no-config", and the parameters as "param.NAME"
 *   4        the result: one JSON object
 *   5        a pipe that closes when the call is cancelled or the face dies
 *   6        contents of files to place first, one after the other
 *   7        what agentkernel itself has to say, for people
 *
 * Policy. The ceiling is what the server's options and the configuration add up to. A caller can
 * only take away: whatever goes beyond is refused, except that limits nobody asked for are lowered.
 * The same holds for sandboxes that exist: one that may do more than the ceiling is not the
 * caller's to use.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/request.h"
#include "policy/operation.h"

enum worker_fd {
	WORKER_REQUEST_FD = 3,
	WORKER_RESULT_FD,
	WORKER_LIFELINE_FD,
	WORKER_FILES_FD,
	WORKER_NOTES_FD,
};

#define WORKER_REQUEST_MAX_BYTES (32u << 20)
#define WORKER_PARAMS_MAX 16384u

struct worker_param {
	const char *name, *text;
};

struct worker {
	char *const *environ_list;
	enum operation_id id;
	const struct operation *operation;
	struct worker_param *params; /* borrowed from .bytes */
	size_t param_count;
	struct request ceiling; /* its policy is what nobody may exceed */
	struct policy policy;   /* what this call asks for: worker_resolve() */
	char *bytes;
	int command_stderr_fd; /* kept aside while we speak ourselves */
};

/* All of the program when its first word is "worker". */
int worker_main(char *const *environ_list);

/* ---- for the operations ---- */

typedef int worker_fn(struct worker *w, struct json *j, struct err *e);

const char *worker_text(const struct worker *w, const char *name);          /* NULL: not given */
bool worker_flag(const struct worker *w, const char *name);                 /* false by default */
uint64_t worker_number(const struct worker *w, const char *name, uint64_t otherwise);
char **worker_list(const struct worker *w, const char *name); /* array is the caller's; or NULL */

/* The words to execute: those given, or a shell for one text. The array is the caller's. */
char **worker_command(const struct worker *w);

/* w->policy, from the parameters; checked against the ceiling. */
ERR_CHECKED int worker_resolve(struct worker *w, const char *command, struct err *e);
/* May this caller use that sandbox? */
ERR_CHECKED int worker_check_sandbox(const struct worker *w, const char *name, struct err *e);
/* The same, and it runs afterwards. */
ERR_CHECKED int worker_need_running(const struct worker *w, const char *name, struct err *e);

/* From here to the second call, standard error is the command's. */
void worker_give_stderr(const struct worker *w);
void worker_take_stderr(const struct worker *w);

worker_fn workercommand_run, workercommand_exec, workercommand_exec_start,
	workercommand_exec_output, workercommand_exec_kill;
worker_fn workersandbox_create, workersandbox_list, workersandbox_remove, workersandbox_start,
	workersandbox_stop, workersandbox_checkpoint, workersandbox_restore, workersandbox_fork,
	workersandbox_network_log, workersandbox_network_check;
worker_fn workerfile_write, workerfile_read, workerfile_list;
