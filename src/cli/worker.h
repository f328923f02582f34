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
 *            options), "config" or "no-config", "owner" (for whom: named/named; absent: the
 *            administrator), and the parameters as "param.NAME"
 *   4        the result: one JSON object
 *   5        a pipe that closes when the call is cancelled or the face dies: the lifeline
 *   6        contents of files to place first, one after the other
 *   7        what agentkernel itself has to say, for people
 *
 * Policy. The ceiling is what the server's options and the configuration add up to
 * (policy/ceiling). Presets that a caller asks for are lowered to it, single values beyond it are
 * refused. A sandbox that exists is judged by who made it (enum worker_use). Sandboxes and
 * checkpoints of another owner are not there for the caller.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/request.h"
#include "named/named.h"
#include "policy/operation.h"

struct ak;

enum worker_fd {
	WORKER_REQUEST_FD = 3,
	WORKER_RESULT_FD,
	WORKER_LIFELINE_FD,
	WORKER_FILES_FD,
	WORKER_NOTES_FD,
};

#define WORKER_REQUEST_MAX_BYTES (32u << 20)
#define WORKER_PARAMS_MAX 16384u
#define WORKER_GRACE_S 3u /* what was begun may finish, when nobody waits for it any more */

/* At the end of a refusal. */
#define WORKER_CEILING_HINT                                                                        \
	"only the user can allow more, in agentkernel.toml or with options of the server"

struct worker_param {
	const char *name, *text;
};

struct worker {
	struct ak *ak;
	enum operation_id id;
	const struct operation *operation;
	struct worker_param *params; /* borrowed from .bytes */
	size_t param_count;
	struct request ceiling;                /* its policy is what nobody may exceed */
	struct policy policy;                  /* what this call asks for: worker_resolve() */
	const char *owner;                     /* NULL: the administrator; borrowed from .bytes */
	char creator[NAMED_CREATOR_BYTES + 1]; /* what these callers make is theirs: named/named */
	uint32_t creator_hash[2];
	char *bytes;
	int command_stderr_fd; /* kept aside while we speak ourselves */
};

/* All of the program when its first word is "worker". */
int worker_main(struct ak *ak);

/* ---- for the operations ---- */

/* 0: the members are in *j; WORKER_ANSWERED: the result was written by another process. */
#define WORKER_ANSWERED 1
typedef int worker_fn(struct worker *w, struct json *j, struct err *e);
/* In place of what `out` holds: an object that says what went wrong. */
void worker_format_error(const struct err *e, struct buf *out);

const char *worker_text(const struct worker *w, const char *name); /* NULL: not given */
bool worker_flag(const struct worker *w, const char *name);        /* false by default */
uint64_t worker_number(const struct worker *w, const char *name, uint64_t otherwise);
char **worker_list(const struct worker *w, const char *name); /* array is the caller's; or NULL */

/* The words to execute: those given, or a shell for one text. The array is the caller's. */
char **worker_command(const struct worker *w);

/*
 * A path as callers give it: absolute, "~" or "~/..." in the home of the sandbox's user, or
 * relative to its working directory; NULL is that directory. *ret is absolute, and the caller's to
 * free.
 */
ERR_CHECKED int worker_resolve_path(const struct worker *w, const char *sandbox, const char *text,
				    char **ret, struct err *e);
/* The same where the sandbox's policy is at hand. */
ERR_CHECKED int worker_resolve_path_by(const struct policy *p, const char *text, char **ret,
				       struct err *e);

/* w->policy, from the parameters; checked against the ceiling. */
ERR_CHECKED int worker_resolve(struct worker *w, const char *command, struct err *e);
/* Of a command in a named sandbox: what was asked for, or the ceiling's if that is less. */
uint64_t worker_timeout_ms(const struct worker *w);
/*
 * May this caller use that sandbox, or stop and remove it? What the same callers have made is
 * theirs: it was judged when they made it. What any other caller of the same owner has made they
 * may end. All else has to be within the ceiling.
 */
enum worker_use { WORKER_USES_IT, WORKER_ENDS_IT };
ERR_CHECKED int worker_check_sandbox(const struct worker *w, const char *name, enum worker_use use,
				     struct err *e);
bool worker_is_creators(const struct worker *w, const char *creator, enum worker_use use);
/* May it remove that checkpoint? One without a policy was imported, by the user. */
struct checkpoint;
ERR_CHECKED int worker_check_checkpoint(const struct worker *w, const struct checkpoint *c,
					struct err *e);
/* Whoever may not be root in a sandbox of its own may not in a named one either: "user". */
ERR_CHECKED int worker_check_user(const struct worker *w, struct err *e);
/* The same as for a sandbox, and it runs afterwards. */
ERR_CHECKED int worker_need_running(const struct worker *w, const char *name, struct err *e);

/*
 * A worker process ends WORKER_GRACE_S after its lifeline has closed, wherever it waits then: for a
 * pull, a lock, a sandbox. From here on the caller looks at the lifeline itself, and tidies up when
 * it closes.
 */
void worker_watch_lifeline_myself(void);
bool worker_is_abandoned(void); /* has it closed? */

/* From here to the second call, standard error is the command's. */
void worker_give_stderr(const struct worker *w);
void worker_take_stderr(const struct worker *w);

worker_fn workercommand_run, workercommand_exec;
worker_fn workertask_start, workertask_wait, workertask_output, workertask_kill, workertask_list;
worker_fn workersandbox_create, workersandbox_list, workersandbox_remove, workersandbox_start,
	workersandbox_stop, workersandbox_checkpoint, workersandbox_restore, workersandbox_fork,
	workersandbox_pause, workersandbox_resume, workersandbox_info, workersandbox_stats,
	workersandbox_extend, workersandbox_checkpoint_list, workersandbox_checkpoint_remove;
worker_fn workernetwork_log, workernetwork_check, workernetwork_change;
worker_fn workeraudit_logs, workeraudit_events;
worker_fn workerfile_write, workerfile_read, workerfile_edit, workerfile_list, workerfile_remove;
/* The sandbox runs afterwards; *ret_path is the parameter "path", resolved in it. */
struct files;
ERR_CHECKED int workerfile_open(struct worker *w, struct files *f, char **ret_path, struct err *e);
worker_fn workerarchive_upload, workerarchive_download;
