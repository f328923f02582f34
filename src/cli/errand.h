#pragma once
/*
 * errand - carries out one operation (policy/operation) for a face that speaks JSON.
 *
 * The faces (agentkernel-mcp, agentkernel-serve) are programs of their own, with large libraries
 * and many callers. For each call they start `agentkernel errand`, a small process that does one
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
 * Policy. The ceiling is what the server's options and the configuration add up to. A caller can
 * only take away: whatever goes beyond is refused, except that limits nobody asked for are lowered.
 * The same holds for sandboxes that exist: one that may do more than the ceiling is not the
 * caller's to use. Sandboxes and checkpoints of another owner are not there for the caller.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "cli/request.h"
#include "named/named.h"
#include "policy/operation.h"

enum errand_fd {
	ERRAND_REQUEST_FD = 3,
	ERRAND_RESULT_FD,
	ERRAND_LIFELINE_FD,
	ERRAND_FILES_FD,
	ERRAND_NOTES_FD,
};

#define ERRAND_REQUEST_MAX_BYTES (32u << 20)
#define ERRAND_PARAMS_MAX 16384u
#define ERRAND_GRACE_S 3u /* what was begun may finish, when nobody waits for it any more */

/* At the end of a refusal. */
#define ERRAND_CEILING_HINT                                                                        \
	"only the user can allow more, in agentkernel.toml or with options of the server"

struct errand_param {
	const char *name, *text;
};

struct errand {
	char *const *environ_list;
	enum operation_id id;
	const struct operation *operation;
	struct errand_param *params; /* borrowed from .bytes */
	size_t param_count;
	struct request ceiling;                /* its policy is what nobody may exceed */
	struct policy policy;                  /* what this call asks for: errand_resolve() */
	const char *owner;                     /* NULL: the administrator; borrowed from .bytes */
	char creator[NAMED_CREATOR_BYTES + 1]; /* what these callers make is theirs: named/named */
	uint32_t creator_hash[2];
	char *bytes;
	int command_stderr_fd; /* kept aside while we speak ourselves */
};

/* All of the program when its first word is "errand". */
int errand_main(char *const *environ_list);

/* ---- for the operations ---- */

/* 0: the members are in *j; ERRAND_ANSWERED: the result was written by another process. */
#define ERRAND_ANSWERED 1
typedef int errand_fn(struct errand *w, struct json *j, struct err *e);
/* In place of what `out` holds: an object that says what went wrong. */
void errand_format_error(const struct err *e, struct buf *out);

const char *errand_text(const struct errand *w, const char *name); /* NULL: not given */
bool errand_flag(const struct errand *w, const char *name);        /* false by default */
uint64_t errand_number(const struct errand *w, const char *name, uint64_t otherwise);
char **errand_list(const struct errand *w, const char *name); /* array is the caller's; or NULL */

/* The words to execute: those given, or a shell for one text. The array is the caller's. */
char **errand_command(const struct errand *w);

/*
 * A path as callers give it: absolute, "~" or "~/..." in the home of the sandbox's user, or
 * relative to its working directory; NULL is that directory. *ret is absolute, and the caller's to
 * free.
 */
ERR_CHECKED int errand_resolve_path(const struct errand *w, const char *sandbox, const char *text,
				    char **ret, struct err *e);
/* The same where the sandbox's policy is at hand. */
ERR_CHECKED int errand_resolve_path_by(const struct policy *p, const char *text, char **ret,
				       struct err *e);

/* w->policy, from the parameters; checked against the ceiling. */
ERR_CHECKED int errand_resolve(struct errand *w, const char *command, struct err *e);
/* Of a command in a named sandbox: what was asked for, or the ceiling's if that is less. */
uint64_t errand_timeout_ms(const struct errand *w);
/*
 * May this caller use that sandbox, or stop and remove it? What the same callers have made is
 * theirs: it was judged when they made it. What any other caller of the same owner has made they
 * may end. All else has to be within the ceiling.
 */
enum errand_use { ERRAND_USES_IT, ERRAND_ENDS_IT };
ERR_CHECKED int errand_check_sandbox(const struct errand *w, const char *name, enum errand_use use,
				     struct err *e);
bool errand_is_creators(const struct errand *w, const char *creator, enum errand_use use);
/* May it remove that checkpoint? One without a policy was imported, by the user. */
struct checkpoint;
ERR_CHECKED int errand_check_checkpoint(const struct errand *w, const struct checkpoint *c,
					struct err *e);
/* Whoever may not be root in a sandbox of its own may not in a named one either: "user". */
ERR_CHECKED int errand_check_user(const struct errand *w, struct err *e);
/* The same as for a sandbox, and it runs afterwards. */
ERR_CHECKED int errand_need_running(const struct errand *w, const char *name, struct err *e);

/*
 * An errand ends ERRAND_GRACE_S after its lifeline has closed, wherever it waits then: for a pull,
 * a lock, a sandbox. From here on the caller looks at the lifeline itself, and tidies up when it
 * closes.
 */
void errand_watch_lifeline_myself(void);
bool errand_is_abandoned(void); /* has it closed? */

/* From here to the second call, standard error is the command's. */
void errand_give_stderr(const struct errand *w);
void errand_take_stderr(const struct errand *w);

errand_fn errandcommand_run, errandcommand_exec;
errand_fn errandtask_start, errandtask_wait, errandtask_output, errandtask_kill, errandtask_list;
errand_fn errandsandbox_create, errandsandbox_list, errandsandbox_remove, errandsandbox_start,
	errandsandbox_stop, errandsandbox_checkpoint, errandsandbox_restore, errandsandbox_fork,
	errandsandbox_pause, errandsandbox_resume, errandsandbox_info, errandsandbox_stats,
	errandsandbox_extend, errandsandbox_checkpoint_list, errandsandbox_checkpoint_remove;
errand_fn errandnetwork_log, errandnetwork_check, errandnetwork_change;
errand_fn errandaudit_logs, errandaudit_events;
errand_fn errandfile_write, errandfile_read, errandfile_edit, errandfile_list, errandfile_remove;
/* The sandbox runs afterwards; *ret_path is the parameter "path", resolved in it. */
struct files;
ERR_CHECKED int errandfile_open(struct errand *w, struct files *f, char **ret_path, struct err *e);
errand_fn errandarchive_upload, errandarchive_download;
