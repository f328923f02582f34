/* worker - carries out one operation for a server that speaks JSON; see worker.h. */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/errcode.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/say.h"
#include "base/title.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "ops/access.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static worker_fn *const functions[] = {
	[OPERATION_RUN] = worker_run,
	[OPERATION_CREATE] = worker_create,
	[OPERATION_EXEC] = worker_exec,
	[OPERATION_LIST] = worker_list_sandboxes,
	[OPERATION_REMOVE] = worker_remove,
	[OPERATION_FILE_WRITE] = worker_file_write,
	[OPERATION_FILE_READ] = worker_file_read,
	[OPERATION_FILE_EDIT] = worker_file_edit,
	[OPERATION_FILE_LIST] = worker_file_list,
	[OPERATION_FILE_REMOVE] = worker_file_remove,
	[OPERATION_UPLOAD] = worker_upload,
	[OPERATION_DOWNLOAD] = worker_download,
	[OPERATION_START] = worker_start,
	[OPERATION_STOP] = worker_stop,
	[OPERATION_EXEC_START] = worker_exec_start,
	[OPERATION_EXEC_WAIT] = worker_exec_wait,
	[OPERATION_EXEC_OUTPUT] = worker_exec_output,
	[OPERATION_EXEC_KILL] = worker_exec_kill,
	[OPERATION_EXEC_LIST] = worker_exec_list,
	[OPERATION_CHECKPOINT] = worker_checkpoint,
	[OPERATION_CHECKPOINT_LIST] = worker_checkpoint_list,
	[OPERATION_CHECKPOINT_REMOVE] = worker_checkpoint_remove,
	[OPERATION_RESTORE] = worker_restore,
	[OPERATION_FORK] = worker_fork,
	[OPERATION_PAUSE] = worker_pause,
	[OPERATION_RESUME] = worker_resume,
	[OPERATION_NETWORK_LOG] = worker_network_log,
	[OPERATION_NETWORK_CHECK] = worker_network_check,
	[OPERATION_INFO] = worker_info,
	[OPERATION_STATS] = worker_stats,
	[OPERATION_NETWORK_CHANGE] = worker_network_change,
	[OPERATION_EXTEND] = worker_extend,
	[OPERATION_AUDIT] = worker_audit,
	[OPERATION_EVENTS] = worker_events,
	[OPERATION_REACH] = worker_reach,
	[OPERATION_PORT_ACCESS] = worker_port_access,
	[OPERATION_SERVICE_ADD] = worker_service_add,
	[OPERATION_SERVICE_LIST] = worker_service_list,
	[OPERATION_SERVICE_REMOVE] = worker_service_remove,
	[OPERATION_SERVICE_RESTART] = worker_service_restart,
	[OPERATION_SESSION] = worker_session,
};
_Static_assert(COUNT_OF(functions) == OPERATION_COUNT, "an operation has no function");

/* ---- the request ---- */

static int add_ceiling(struct worker *w, char *text, enum policy_layer layer, struct err *e)
{
	char *value = strchr(text, '=');
	struct policy_setting s = { .origin = access_ceiling_owner(w->ak), .layer = layer };

	if (value)
		*value++ = '\0';
	s.text = value;
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		if (strcmp(policy_field_name(field), text) != 0)
			continue;
		s.field = field;
		return settings_add(&w->server.settings, &s, e);
	}
	return err_set(e, ERR_INVALID, "the request names an unknown field '%s'", text);
}

/*
 * Callers of a server with the same options, for the same owner, count as one creator, because
 * these options were checked for everything they created. The parameters of a call are not
 * included.
 */
static void add_to_creator(struct worker *w, const char *key, const char *value)
{
	for (size_t i = 0; i < COUNT_OF(w->creator_hash); i++)
		w->creator_hash[i] =
			hash_text(hash_text(w->creator_hash[i] + (uint32_t)i, key), value);
}

static int add_param(struct worker *w, const char *name, const char *value, struct err *e)
{
	if (w->param_count == WIRE_PARAMS_MAX)
		return err_set(e, ERR_LIMIT, "the request has more than %u parameters",
			       WIRE_PARAMS_MAX);
	w->params = mem_grow(w->params, w->param_count + 1, sizeof(*w->params));
	w->params[w->param_count++] = (struct worker_param){ name, value };
	return 0;
}

static int read_row(struct worker *w, char *row, struct err *e)
{
	char *value = strchr(row, '=');

	if (!value)
		return err_set(e, ERR_INVALID, "the request has a row without a value");
	*value++ = '\0';
	if (strcmp(row, WIRE_OPERATION) == 0) {
		w->operation = operation_find(value, &w->id);
		title_set(TITLE_WORKER, value);
		return w->operation ? 0 : err_set(e, ERR_INVALID, "no operation '%s'", value);
	}
	if (strncmp(row, WIRE_PARAM, strlen(WIRE_PARAM)) == 0)
		return add_param(w, row + strlen(WIRE_PARAM), value, e);
	if (strcmp(row, WIRE_FACE) == 0) {
		w->ak->view.is_for_library = strcmp(value, "library") == 0;
		return 0;
	}
	add_to_creator(w, row, value);
	if (strcmp(row, WIRE_CEILING) == 0)
		return add_ceiling(w, value, POLICY_BY_COMMAND_LINE, e);
	if (strcmp(row, WIRE_MAXIMUM) == 0)
		return add_ceiling(w, value, POLICY_MAXIMUM, e);
	if (strcmp(row, WIRE_CONFIG) == 0)
		w->server.config_path = value;
	else if (strcmp(row, WIRE_NO_CONFIG) == 0)
		w->server.has_no_config = true;
	else if (strcmp(row, WIRE_OWNER) == 0 && *value && strlen(value) <= NAMED_OWNER_MAX_BYTES)
		w->owner = value;
	else
		return err_set(e, ERR_INVALID, "the request has an unknown row '%s'", row);
	return 0;
}

static int read_request(struct worker *w, struct err *e)
{
	char creator[NAMED_CREATOR_BYTES + 1];
	size_t len = 0, at = 0;
	int r = file_read_fd(WIRE_REQUEST_FD, WIRE_REQUEST_MAX_BYTES, &w->bytes, &len);

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
	if (!w->operation)
		return err_set(e, ERR_INVALID, "the request names no operation");
	(void)snprintf(creator, sizeof(creator), "%08" PRIx32 "%08" PRIx32, w->creator_hash[0],
		       w->creator_hash[1]);
	named_work_for(w->ak, w->owner, creator);
	return 0;
}

/* ---- parameters ---- */

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

int worker_fill_request(struct worker *w, struct err *e)
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

	w->call.ak = w->ak;
	w->call.server = &w->server;
	w->call.is_quiet = true;
	w->call.timeout_ms = worker_number(w, "timeout_ms", 0);
	for (size_t i = 0; i < COUNT_OF(params); i++) {
		cleanup_free char **texts = worker_list(w, params[i].name);

		for (size_t n = 0; texts && texts[n]; n++) {
			const struct policy_setting setting = { params[i].field, texts[n],
								params[i].name, POLICY_BY_CALLER };

			if (settings_add(&w->call.settings, &setting, e) < 0)
				return -1;
		}
	}
	return 0;
}

/* ---- permission ---- */

static int check_tools(const struct worker *w, char *const *argv, const struct toolpolicy *t,
		       struct err *e)
{
	if (toolpolicy_check_tool(t, w->operation->name, e) < 0)
		return -1;
	return argv ? toolpolicy_check_command(t, (const char *const *)argv, e) : 0;
}

/* Checks the tool lists of the user's and the project's file: each can only restrict. */
static int check_call(struct worker *w, struct err *e)
{
	cleanup_free char **argv = worker_command(w);

	w->server.ak = w->ak;
	if (request_resolve(&w->server, argv ? argv[0] : NULL, &w->events, e) < 0 ||
	    request_raise_ceiling(&w->server, e) < 0)
		return -1;
	w->ak->ceiling = &w->server.policy;
	if (check_tools(w, argv, &w->server.config.user.tools, e) < 0)
		return -1;
	return check_tools(w, argv, &w->server.config.project.tools, e);
}

/* ---- streams: stderr is fd 7, our notes, except while a command runs, which has its own ---- */

static void remark(void *context, const char *text)
{
	(void)context;
	say_text(text);
}

static void give_stderr(void *context)
{
	const struct worker *w = context;

	(void)dup2(w->command_stderr_fd, STDERR_FILENO);
}

static void take_stderr(void *context)
{
	(void)context;
	(void)dup2(WIRE_NOTES_FD, STDERR_FILENO);
}

/* Sets close-on-exec on our own descriptors, so that no child inherits them. */
static int prepare_fds(struct worker *w, struct err *e)
{
	for (int fd = WIRE_REQUEST_FD; fd < WIRE_FD_COUNT; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 && fd != WIRE_HANDOVER_FD)
			return err_sys(e, errno, "this command is for agentkernel's own programs");
	w->command_stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, WIRE_FD_COUNT);
	if (w->command_stderr_fd < 0)
		return err_sys(e, errno, "keep the command's standard error");
	take_stderr(w);
	return 0;
}

/* ---- the lifeline ---- */

static void on_lifeline(int number)
{
	(void)number;
	(void)alarm(WIRE_GRACE_S); /* SIGALRM ends us and the processes that we started */
}

/*
 * A worker ends WIRE_GRACE_S after its lifeline has closed, wherever it waits: for a pull, a lock,
 * a sandbox. The kernel reports the closing with SIGIO, so no wait has to check for it.
 */
static int tie_to_lifeline(struct worker *w, struct err *e)
{
	const struct sigaction act = { .sa_handler = on_lifeline, .sa_flags = SA_RESTART };
	struct pollfd polled = { .fd = WIRE_LIFELINE_FD, .events = POLLIN };

	if (sigaction(SIGIO, &act, NULL) < 0 || fcntl(WIRE_LIFELINE_FD, F_SETOWN, getpid()) < 0 ||
	    fcntl(WIRE_LIFELINE_FD, F_SETFL, O_ASYNC) < 0)
		return err_sys(e, errno, "tie this process to its caller");
	if (poll(&polled, 1, 0) > 0)
		return err_set(e, ERR_SYSTEM, "the caller is gone");
	w->ak->lifeline_fd = WIRE_LIFELINE_FD;
	return 0;
}

static void untie_from_lifeline(void *context)
{
	(void)context;
	(void)fcntl(WIRE_LIFELINE_FD, F_SETFL, 0);
	(void)alarm(0);
}

/* ---- the whole operation ---- */

static void worker_done(struct worker *w)
{
	request_done(&w->call);
	request_done(&w->server);
	free(w->params);
	free(w->bytes);
}

static int carry_out(struct worker *w, struct buf *out, struct err *e)
{
	struct json j;

	if (read_request(w, e) < 0 || check_call(w, e) < 0)
		return -1;
	json_init(&j, out);
	json_open_object(&j, NULL);
	if (functions[w->id](w, &j, e) < 0)
		return -1;
	json_close_object(&j);
	if (out->is_cut)
		return err_set(e, ERR_LIMIT, "the result is larger than %u bytes",
			       WIRE_RESULT_MAX_BYTES);
	return 0;
}

/* Replaces the content of `out`. */
static void format_error(const struct err *e, struct buf *out)
{
	struct err shown = *e;
	struct json j;

	err_sanitize(&shown);
	buf_done(out);
	buf_init(out, WIRE_RESULT_MAX_BYTES);
	json_init(&j, out);
	json_open_object(&j, NULL);
	json_open_object(&j, "error");
	json_add_text(&j, "code", errcode_word(e->code));
	json_add_text(&j, "message", shown.msg);
	json_close_object(&j);
	json_close_object(&j);
}

int worker_main(struct ak *ak)
{
	CLEANUP(worker_done) struct worker w = { .ak = ak, .command_stderr_fd = -1 };
	cleanup_buf struct buf out;
	struct err e = { 0 };

	buf_init(&out, WIRE_RESULT_MAX_BYTES);
	w.events = (struct op_events){ .remark = remark,
				       .command_begins = give_stderr,
				       .command_ended = take_stderr,
				       .guards_lifeline = untie_from_lifeline,
				       .context = &w };
	if (prepare_fds(&w, &e) < 0 || tie_to_lifeline(&w, &e) < 0) {
		say("%s", e.msg);
		return ERRCODE_EXIT_FAILED;
	}
	if (carry_out(&w, &out, &e) < 0) {
		if (e.code == ERR_DENIED && w.operation)
			lifecycle_audit(ak, AUDITLINE_DENIED, worker_text(&w, "name"),
					w.operation->name, &e);
		format_error(&e, &out);
	}
	return file_write_all(WIRE_RESULT_FD, out.bytes, out.len) < 0 ? ERRCODE_EXIT_FAILED : 0;
}
