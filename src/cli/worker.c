/* worker - carries out one operation for a face that speaks JSON; see worker.h. */
#include "cli/worker.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/title.h"
#include "cli/cli.h"
#include "named/checkpoint.h"
#include "named/lifecycle.h"
#include "policy/ceiling.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RESULT_MAX_BYTES (64u << 20)
static worker_fn *const functions[] = {
	[OPERATION_RUN] = workercommand_run,
	[OPERATION_CREATE] = workersandbox_create,
	[OPERATION_EXEC] = workercommand_exec,
	[OPERATION_LIST] = workersandbox_list,
	[OPERATION_REMOVE] = workersandbox_remove,
	[OPERATION_FILE_WRITE] = workerfile_write,
	[OPERATION_FILE_READ] = workerfile_read,
	[OPERATION_FILE_EDIT] = workerfile_edit,
	[OPERATION_FILE_LIST] = workerfile_list,
	[OPERATION_FILE_REMOVE] = workerfile_remove,
	[OPERATION_UPLOAD] = workerarchive_upload,
	[OPERATION_DOWNLOAD] = workerarchive_download,
	[OPERATION_START] = workersandbox_start,
	[OPERATION_STOP] = workersandbox_stop,
	[OPERATION_EXEC_START] = workertask_start,
	[OPERATION_EXEC_WAIT] = workertask_wait,
	[OPERATION_EXEC_OUTPUT] = workertask_output,
	[OPERATION_EXEC_KILL] = workertask_kill,
	[OPERATION_EXEC_LIST] = workertask_list,
	[OPERATION_CHECKPOINT] = workersandbox_checkpoint,
	[OPERATION_CHECKPOINT_LIST] = workersandbox_checkpoint_list,
	[OPERATION_CHECKPOINT_REMOVE] = workersandbox_checkpoint_remove,
	[OPERATION_RESTORE] = workersandbox_restore,
	[OPERATION_FORK] = workersandbox_fork,
	[OPERATION_PAUSE] = workersandbox_pause,
	[OPERATION_RESUME] = workersandbox_resume,
	[OPERATION_NETWORK_LOG] = workernetwork_log,
	[OPERATION_NETWORK_CHECK] = workernetwork_check,
	[OPERATION_INFO] = workersandbox_info,
	[OPERATION_STATS] = workersandbox_stats,
	[OPERATION_NETWORK_CHANGE] = workernetwork_change,
	[OPERATION_EXTEND] = workersandbox_extend,
	[OPERATION_AUDIT] = workeraudit_logs,
	[OPERATION_EVENTS] = workeraudit_events,
};
_Static_assert(COUNT_OF(functions) == OPERATION_COUNT, "an operation has no function");

/* For programs: what kind of failure it was. */
static const char *const code_words[] = {
	[ERR_NONE] = "none",
	[ERR_INVALID] = "invalid",
	[ERR_NOT_FOUND] = "not_found",
	[ERR_EXISTS] = "exists",
	[ERR_BUSY] = "busy",
	[ERR_DENIED] = "denied",
	[ERR_LIMIT] = "limit",
	[ERR_TIMEOUT] = "timeout",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_REMOTE] = "remote",
	[ERR_CORRUPT] = "corrupt",
	[ERR_SYSTEM] = "system",
	[ERR_COMMAND_NOT_FOUND] = "command_not_found",
	[ERR_COMMAND_NOT_EXECUTABLE] = "command_not_executable",
};
_Static_assert(COUNT_OF(code_words) == ERR_CODE_COUNT, "an error code has no word");

/* ---- the request ---- */

static int add_ceiling(struct worker *w, char *text, enum policy_layer layer, struct err *e)
{
	char *value = strchr(text, '=');
	struct policy_setting s = { .origin = "the server", .layer = layer };

	if (value)
		*value++ = '\0';
	s.text = value;
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		if (strcmp(policy_field_name(field), text) != 0)
			continue;
		s.field = field;
		return opts_settings_add(&w->ceiling.settings, &s, e);
	}
	return err_set(e, ERR_INVALID, "the request names an unknown field '%s'", text);
}

/*
 * Callers of a server with the same options, for the same owner, are one creator: what they made
 * was judged by these options. The parameters of a call play no part.
 */
static void add_to_creator(struct worker *w, const char *key, const char *value)
{
	for (size_t i = 0; i < COUNT_OF(w->creator_hash); i++)
		w->creator_hash[i] =
			hash_text(hash_text(w->creator_hash[i] + (uint32_t)i, key), value);
}

static int read_row(struct worker *w, char *row, struct err *e)
{
	char *value = strchr(row, '=');

	if (!value)
		return err_set(e, ERR_INVALID, "the request has a row without a value");
	*value++ = '\0';
	if (strcmp(row, "operation") == 0) {
		w->operation = operation_find(value, &w->id);
		title_set(TITLE_WORKER, value);
		return w->operation ? 0 : err_set(e, ERR_INVALID, "no operation '%s'", value);
	}
	if (strncmp(row, "param.", 6) != 0)
		add_to_creator(w, row, value);
	if (strcmp(row, "ceiling") == 0)
		return add_ceiling(w, value, POLICY_BY_COMMAND_LINE, e);
	if (strcmp(row, "maximum") == 0)
		return add_ceiling(w, value, POLICY_MAXIMUM, e);
	if (strcmp(row, "config") == 0) {
		w->ceiling.flags.config = value;
		return 0;
	}
	if (strcmp(row, "no-config") == 0) {
		w->ceiling.flags.has_no_config = true;
		return 0;
	}
	if (strcmp(row, "owner") == 0) {
		w->owner = value;
		return *value && strlen(value) <= NAMED_OWNER_MAX_BYTES
			       ? 0
			       : err_set(e, ERR_INVALID, "the request names no owner");
	}
	if (strncmp(row, "param.", 6) != 0 || w->param_count == WORKER_PARAMS_MAX)
		return err_set(e, ERR_INVALID, "the request has an unknown row '%s'", row);
	w->params = mem_grow(w->params, w->param_count + 1, sizeof(*w->params));
	w->params[w->param_count++] = (struct worker_param){ row + 6, value };
	return 0;
}

static int read_request(struct worker *w, struct err *e)
{
	size_t len = 0, at = 0;
	int r = file_read_fd(WORKER_REQUEST_FD, WORKER_REQUEST_MAX_BYTES, &w->bytes, &len);

	if (r < 0)
		return err_sys(e, -r, "read the request");
	if (len == 0 || w->bytes[len - 1] != '\0')
		return err_set(e, ERR_INVALID, "the request is not whole");
	while (at < len) {
		size_t row_len = strlen(w->bytes + at);

		if (read_row(w, w->bytes + at, e) < 0)
			return -1;
		at += row_len + 1;
	}
	(void)snprintf(w->creator, sizeof(w->creator), "%08" PRIx32 "%08" PRIx32,
		       w->creator_hash[0], w->creator_hash[1]);
	return w->operation ? 0 : err_set(e, ERR_INVALID, "the request names no operation");
}

const char *worker_text(const struct worker *w, const char *name)
{
	for (size_t i = 0; i < w->param_count; i++)
		if (strcmp(w->params[i].name, name) == 0)
			return w->params[i].text;
	return NULL;
}

bool worker_flag(const struct worker *w, const char *name)
{
	const char *text = worker_text(w, name);

	return text && strcmp(text, "true") == 0;
}

uint64_t worker_number(const struct worker *w, const char *name, uint64_t otherwise)
{
	const char *text = worker_text(w, name);
	uint64_t value = 0;

	return text && keyrows_read_number(text, INT64_MAX, &value) ? value : otherwise;
}

char **worker_list(const struct worker *w, const char *name)
{
	char **list = NULL;
	size_t count = 0;

	for (size_t i = 0; i < w->param_count; i++) {
		if (strcmp(w->params[i].name, name) != 0)
			continue;
		list = mem_grow(list, count + 2, sizeof(*list));
		list[count++] = (char *)(uintptr_t)w->params[i].text;
		list[count] = NULL;
	}
	return list;
}

char **worker_command(const struct worker *w)
{
	const char *text = worker_text(w, "command_text");
	char **argv;

	if (!text)
		return worker_list(w, "command");
	argv = mem_alloc(4 * sizeof(*argv));
	argv[0] = (char *)(uintptr_t) "/bin/sh";
	argv[1] = (char *)(uintptr_t) "-c";
	argv[2] = (char *)(uintptr_t)text;
	argv[3] = NULL;
	return argv;
}

/* ---- paths ---- */

int worker_resolve_path_by(const struct policy *p, const char *text, char **ret, struct err *e)
{
	char *path;

	if (text && text[0] == '/') {
		*ret = mem_dup(text);
		return 0;
	}
	if (text && text[0] == '~' && text[1] && text[1] != '/')
		return err_set(e, ERR_INVALID,
			       "'%.200s': only ~ and ~/... are known, the home of the sandbox's "
			       "user",
			       text);
	if (text && text[0] == '~')
		path = path_absolute(p->home_dir, text[1] ? text + 2 : ".");
	else
		path = path_absolute(p->workdir, text ? text : ".");
	if (!path)
		return err_set(e, ERR_INVALID, "'%.200s' leads above the root directory", text);
	*ret = path;
	return 0;
}

int worker_resolve_path(const struct worker *w, const char *sandbox, const char *text, char **ret,
			struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (text && text[0] == '/') {
		*ret = mem_dup(text);
		return 0;
	}
	if (named_open(w->ak, sandbox, &n, e) < 0 || named_load_policy(&n, &policy, e) < 0)
		return -1;
	return worker_resolve_path_by(&policy, text, ret, e);
}

/* ---- policy ---- */

static int resolve_ceiling(struct worker *w, const char *command, struct err *e)
{
	struct request *r = &w->ceiling;

	r->ak = w->ak;
	if (r->policy.image)
		return 0;
	if (request_resolve(r, command, e) < 0)
		return -1;
	return request_raise_ceiling(r, e);
}

static int add(struct opts_settings *s, enum policy_field field, const char *text,
	       const char *origin, struct err *e)
{
	const struct policy_setting setting = { field, text, origin, POLICY_BY_CALLER };

	return text ? opts_settings_add(s, &setting, e) : 0;
}

/* All that was said before, then what the caller asks for. */
static int collect(const struct worker *w, struct opts_settings *s, struct err *e)
{
	static const struct {
		enum policy_field field;
		const char *name;
	} params[] = {
#define PARAM(id, name, ...) { POLICY_##id, name },
#include "policy/fields.def"
		{ POLICY_ENV, "env" },
		{ POLICY_WORKDIR, "cwd" },
	};

	for (size_t i = 0; i < w->ceiling.settings.count; i++)
		if (opts_settings_add(s, &w->ceiling.settings.list[i], e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT_OF(params); i++) {
		cleanup_free char **texts = worker_list(w, params[i].name);

		for (size_t n = 0; texts && texts[n]; n++)
			if (add(s, params[i].field, texts[n], params[i].name, e) < 0)
				return -1;
	}
	return 0;
}

static void lower(uint64_t *value, uint64_t most)
{
	if (most && (*value == 0 || *value > most))
		*value = most;
}

/* What the caller does not get of a preset, for its notes. */
static void tell_lowered(char *const *lowered)
{
	for (; lowered && *lowered; lowered++)
		cli_say("not granted: %s", *lowered);
}

int worker_resolve(struct worker *w, const char *command, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings settings = { 0 };
	CLEANUP(keyrows_list_free) char **lowered = NULL;

	if (resolve_ceiling(w, command, e) < 0 || collect(w, &settings, e) < 0)
		return -1;
	if (policy_resolve(settings.list, settings.count, &w->ak->caller, &w->policy, e) < 0)
		return -1;
	w->policy.timeout_ms = worker_timeout_ms(w);
	if (ceiling_lower(&w->policy, &w->ceiling.policy, &lowered, e) < 0)
		return -1;
	tell_lowered(lowered);
	return ceiling_check(&w->policy, &w->ceiling.policy, WORKER_CEILING_HINT, NULL, e);
}

uint64_t worker_timeout_ms(const struct worker *w)
{
	uint64_t timeout_ms = worker_number(w, "timeout_ms", 0);

	lower(&timeout_ms, w->ceiling.policy.timeout_ms);
	return timeout_ms;
}

bool worker_is_creators(const struct worker *w, const char *creator, enum worker_use use)
{
	return creator && (use == WORKER_ENDS_IT || strcmp(creator, w->creator) == 0);
}

int worker_check_sandbox(const struct worker *w, const char *name, enum worker_use use,
			 struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };

	named_init(&n);
	if (named_check_name(name, e) < 0 || named_open(w->ak, name, &n, e) < 0)
		return -1;
	if (!worker_is_creators(w, n.creator, use)) {
		if (named_load_policy(&n, &policy, e) < 0)
			return -1;
		if (ceiling_check(&policy, &w->ceiling.policy, WORKER_CEILING_HINT, NULL, e) < 0)
			return err_wrap(e, "sandbox '%s' may do more than you", name);
	}
	named_pin(w->ak, &n); /* what was checked is what is used */
	return 0;
}

int worker_check_user(const struct worker *w, struct err *e)
{
	const char *user = worker_text(w, "user"), *most = w->ceiling.policy.user_text;

	if (!user || ceiling_allows_root(&w->ceiling.policy) || (most && strcmp(user, most) == 0))
		return 0;
	return err_set(e, ERR_DENIED, "user: the server does not let you choose one");
}

int worker_check_checkpoint(const struct worker *w, const struct checkpoint *c, struct err *e)
{
	CLEANUP(policy_done) struct policy policy = { 0 };

	if (worker_is_creators(w, c->creator, WORKER_ENDS_IT))
		return 0;
	if (checkpoint_load_policy(w->ak, c->id, &policy, e) < 0)
		return e->code == ERR_NOT_FOUND
			       ? err_set(e, ERR_DENIED, "checkpoint '%s' was imported by the user",
					 c->id)
			       : -1;
	if (ceiling_check(&policy, &w->ceiling.policy, WORKER_CEILING_HINT, NULL, e) < 0)
		return err_wrap(e, "checkpoint '%s' is of a sandbox that may do more than you",
				c->id);
	return 0;
}

int worker_need_running(const struct worker *w, const char *name, struct err *e)
{
	CLEANUP(lifecycle_entry_done) struct lifecycle_entry entry = { 0 };

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    lifecycle_info(w->ak, name, &entry, e) < 0)
		return -1;
	if (entry.state == NAMED_RUNNING)
		return 0;
	if (lifecycle_start(w->ak, name, e) == 0)
		return 0;
	/* another call may have been faster */
	lifecycle_entry_done(&entry);
	entry = (struct lifecycle_entry){ 0 };
	if (e->code == ERR_BUSY && lifecycle_info(w->ak, name, &entry, e) == 0 &&
	    entry.state == NAMED_RUNNING)
		return 0;
	return -1;
}

/* ---- tools ---- */

static int check_tools(const struct worker *w, const struct toolpolicy *t, struct err *e)
{
	cleanup_free char **argv = worker_command(w);

	if (toolpolicy_check_tool(t, w->operation->name, e) < 0)
		return -1;
	return argv ? toolpolicy_check_command(t, (const char *const *)argv, e) : 0;
}

/* Both the user's file and the project's have a say: each can only take away. */
static int check_call(struct worker *w, struct err *e)
{
	cleanup_free char **argv = worker_command(w);

	if (resolve_ceiling(w, argv ? argv[0] : NULL, e) < 0)
		return -1;
	if (check_tools(w, &w->ceiling.config.user.tools, e) < 0)
		return -1;
	return check_tools(w, &w->ceiling.config.project.tools, e);
}

/* ---- streams ---- */

void worker_give_stderr(const struct worker *w)
{
	(void)dup2(w->command_stderr_fd, STDERR_FILENO);
}

void worker_take_stderr(const struct worker *w)
{
	(void)w;
	(void)dup2(WORKER_NOTES_FD, STDERR_FILENO);
}

/* Nothing that we start inherits what is ours. */
static int prepare_fds(struct worker *w, struct err *e)
{
	for (int fd = WORKER_REQUEST_FD; fd <= WORKER_NOTES_FD; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return err_sys(e, errno, "this command is for agentkernel's own programs");
	w->command_stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, WORKER_NOTES_FD + 1);
	if (w->command_stderr_fd < 0)
		return err_sys(e, errno, "keep the command's standard error");
	worker_take_stderr(w);
	return 0;
}

/* ---- the lifeline ---- */

bool worker_is_abandoned(void)
{
	struct pollfd polled = { .fd = WORKER_LIFELINE_FD, .events = POLLIN };

	return poll(&polled, 1, 0) > 0;
}

static void on_lifeline(int number)
{
	(void)number;
	(void)alarm(WORKER_GRACE_S); /* SIGALRM ends us, and what we have started for it */
}

/* The kernel tells of the other end's closing by a signal, so nothing that waits has to know. */
static int tie_to_lifeline(struct err *e)
{
	const struct sigaction act = { .sa_handler = on_lifeline, .sa_flags = SA_RESTART };

	if (sigaction(SIGIO, &act, NULL) < 0 || fcntl(WORKER_LIFELINE_FD, F_SETOWN, getpid()) < 0 ||
	    fcntl(WORKER_LIFELINE_FD, F_SETFL, O_ASYNC) < 0)
		return err_sys(e, errno, "tie this process to its caller");
	if (worker_is_abandoned())
		return err_set(e, ERR_SYSTEM, "the caller is gone");
	return 0;
}

void worker_watch_lifeline_myself(void)
{
	(void)fcntl(WORKER_LIFELINE_FD, F_SETFL, 0);
	(void)alarm(0);
}

/* ---- the whole ---- */

static void worker_done(struct worker *w)
{
	policy_done(&w->policy);
	request_done(&w->ceiling);
	free(w->params);
	free(w->bytes);
}

static int carry_out(struct worker *w, struct buf *out, struct err *e)
{
	struct json j;

	if (read_request(w, e) < 0)
		return -1;
	named_work_for(w->ak, w->owner, w->creator);
	if (check_call(w, e) < 0)
		return -1;
	json_init(&j, out);
	json_open_object(&j, NULL);
	switch (functions[w->id](w, &j, e)) {
	case 0:
		break;
	case WORKER_ANSWERED:
		buf_done(out);
		return 0;
	default:
		return -1;
	}
	json_close_object(&j);
	if (out->is_cut)
		return err_set(e, ERR_LIMIT, "the result is larger than %u bytes",
			       RESULT_MAX_BYTES);
	return 0;
}

void worker_format_error(const struct err *e, struct buf *out)
{
	struct err shown = *e;
	struct json j;

	err_sanitize(&shown);
	buf_done(out);
	buf_init(out, RESULT_MAX_BYTES);
	json_init(&j, out);
	json_open_object(&j, NULL);
	json_open_object(&j, "error");
	json_add_text(&j, "code", code_words[e->code]);
	json_add_text(&j, "message", shown.msg);
	json_close_object(&j);
	json_close_object(&j);
}

int worker_main(struct ak *ak)
{
	CLEANUP(worker_done)
	struct worker w = { .ak = ak, .command_stderr_fd = -1 };
	cleanup_buf struct buf out;
	struct err e = { 0 };

	buf_init(&out, RESULT_MAX_BYTES);
	if (prepare_fds(&w, &e) < 0 || tie_to_lifeline(&e) < 0) {
		cli_say("%s", e.msg);
		return CLI_EXIT_FAILED;
	}
	if (carry_out(&w, &out, &e) < 0) {
		if (e.code == ERR_DENIED && w.operation)
			lifecycle_audit(ak, AUDITLINE_DENIED, worker_text(&w, "name"),
					w.operation->name, &e);
		worker_format_error(&e, &out);
	}
	return file_write_all(WORKER_RESULT_FD, out.bytes, out.len) < 0 ? CLI_EXIT_FAILED : 0;
}
