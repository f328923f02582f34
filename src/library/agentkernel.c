/*
 * agentkernel - libagentkernel, the C face of the operations; see include/agentkernel.h.
 *
 * Theory of operation. A call is checked against the table of operations (rpc/arguments), carried
 * out by a worker process (rpc/call) and waited for here, in the caller's thread, with poll().
 * Running the operations in the caller's own process was considered and rejected: a sandbox's
 * supervisor forked from it would hold its memory and keys, and code between clone() and exec() in
 * a program with threads may not even allocate. The worker costs 0.2 ms.
 *
 * What a caller passes is copied into structs of our own, as long as its .size says: members that
 * an older program does not know are zero.
 */
#include <agentkernel.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/errcode.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "rpc/call.h"
#include "rpc/wire.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "agentkernel"
#define ROWS_MAX_BYTES (1u << 20)
#define PIECE_BYTES (256u << 10) /* of input that waits to be taken */

static_assert((int)AGENTKERNEL_SYSTEM == (int)ERR_SYSTEM, "the public codes are not err.h's");

struct agentkernel {
	char *program;
	struct buf rows; /* of every request: ceiling and configuration */
};

/* A cancelled call has the code ERR_CODE_COUNT, which no operation has. */
static int report(const struct err *e, struct agentkernel_error *error)
{
	if (!error)
		return -1;
	if (e->code == ERR_CODE_COUNT)
		error->code = AGENTKERNEL_CANCELLED;
	else /* a command that is not there */
		error->code = e->code <= ERR_SYSTEM ? (enum agentkernel_code)e->code
						    : AGENTKERNEL_NOT_FOUND;
	(void)snprintf(error->message, sizeof(error->message), "%s", e->msg);
	return -1;
}

/*
 * The caller's struct into one of ours, which is zero where the caller's is shorter. This is the
 * first version: no program knows a shorter one.
 */
static int take(void *to, size_t known, const void *from, size_t size, struct err *e)
{
	const char *bytes = from;

	memset(to, 0, known);
	if (!from)
		return 0;
	if (size < known)
		return err_set(e, ERR_INVALID, "the member .size of a struct is not its size");
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return err_set(e, ERR_UNSUPPORTED,
				       "the program was built for a later libagentkernel");
	memcpy(to, from, size < known ? size : known);
	return 0;
}

const char *agentkernel_version(void)
{
	return AGENTKERNEL_VERSION;
}

void agentkernel_free(void *allocated)
{
	free(allocated);
}

/* ---- the handle ---- */

static char *find_in_path(void)
{
	const char *dirs = getenv("PATH");

	for (; dirs && *dirs; dirs += strspn(dirs, ":")) {
		size_t len = strcspn(dirs, ":");
		cleanup_free char *path = mem_format("%.*s/" PROGRAM, (int)len, dirs);

		if (path[0] == '/' && access(path, X_OK) == 0)
			return take_ptr(path);
		dirs += len;
	}
	return NULL;
}

/* PREFIX/bin, where this library is in PREFIX/lib or a directory in it. */
static char *find_beside_library(void)
{
	static const char *const ways[] = { "../bin", "../../bin" };
	Dl_info own;
	const char *slash;

	if (!dladdr(agentkernel_version, &own) || !(slash = strrchr(own.dli_fname, '/')))
		return NULL;
	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		cleanup_free char *path = mem_format(
			"%.*s/%s/" PROGRAM, (int)(slash - own.dli_fname), own.dli_fname, ways[i]);

		if (access(path, X_OK) == 0)
			return take_ptr(path);
	}
	return NULL;
}

static int find_program(const char *asked, char **ret, struct err *e)
{
	const char *named = asked ? asked : getenv("AGENTKERNEL_PROGRAM");

	*ret = named ? mem_dup(named) : find_in_path();
	if (!*ret)
		*ret = find_beside_library();
	if (!*ret || access(*ret, X_OK) < 0)
		return err_set(e, ERR_NOT_FOUND,
			       "the program agentkernel is not there (set AGENTKERNEL_PROGRAM): %s",
			       *ret ? *ret : "not in PATH");
	return 0;
}

static void format_rows(const struct agentkernel_options *o, struct buf *rows)
{
	keyrows_put(rows, WIRE_FACE, "library"); /* first: it says whose ceiling follows */
	for (const char *const *text = o->ceiling; text && *text; text++)
		keyrows_put(rows, WIRE_CEILING, *text);
	if (o->config && o->config[0])
		keyrows_put(rows, WIRE_CONFIG, o->config);
	else if (o->config)
		keyrows_put(rows, WIRE_NO_CONFIG, "yes");
}

int agentkernel_open(const struct agentkernel_options *options, agentkernel **ret,
		     struct agentkernel_error *error)
{
	struct agentkernel_options o;
	struct err e = { 0 };
	agentkernel *ak;

	*ret = NULL;
	if (take(&o, sizeof(o), options, options ? options->size : 0, &e) < 0)
		return report(&e, error);
	ak = mem_alloc(sizeof(*ak));
	*ak = (struct agentkernel){ 0 };
	buf_init(&ak->rows, ROWS_MAX_BYTES);
	format_rows(&o, &ak->rows);
	if (ak->rows.is_cut)
		(void)err_set(&e, ERR_LIMIT, "the options are too long");
	if (e.code || find_program(o.program, &ak->program, &e) < 0) {
		agentkernel_close(ak);
		return report(&e, error);
	}
	*ret = ak;
	return 0;
}

void agentkernel_close(agentkernel *ak)
{
	if (!ak)
		return;
	free(ak->program);
	buf_done(&ak->rows);
	free(ak);
}

/* ---- one call ---- */

/* What a call has more than its parameters. */
struct extra {
	struct agentkernel_events events;
	const char *input;
	size_t input_len, input_given;
	bool has_input;
};

static void on_output(void *context, enum call_stream stream, const char *bytes, size_t len)
{
	const struct extra *x = context;

	if (x->events.output)
		x->events.output(x->events.context, stream == CALL_STDERR ? 2 : 1, bytes, len);
}

static void feed(struct call *c, struct extra *x)
{
	size_t left = x->input_len - x->input_given;
	size_t len = left < PIECE_BYTES ? left : PIECE_BYTES;

	if (!c->has_more_input || call_unsent_input(c) > 0)
		return;
	call_add_input(c, x->input + x->input_given, len);
	x->input_given += len;
	if (x->input_given == x->input_len)
		call_end_input(c);
}

static void wait_for(struct call *c, struct extra *x)
{
	struct pollfd polled[CALL_POLL_MAX + 1];

	while (!c->is_over) {
		unsigned count;
		int wait_ms;

		feed(c, x);
		count = call_poll(c, polled);
		polled[count] = (struct pollfd){ .fd = c->is_cancelled || x->events.cancel_fd <= 0
							       ? -1
							       : x->events.cancel_fd,
						 .events = POLLIN };
		wait_ms = call_on_time(c, clock_now_ms());
		if (poll(polled, count + 1, wait_ms) < 0) {
			if (errno != EINTR)
				call_cancel(c);
			continue;
		}
		if (polled[count].revents)
			call_cancel(c);
		call_on_ready(c, polled, count);
	}
}

/*
 * A worker that has gone makes a write to it raise SIGPIPE, which would end the program: the signal
 * is blocked in this thread meanwhile, and taken away if it came.
 */
static void wait_without_sigpipe(struct call *c, struct extra *x)
{
	const struct timespec at_once = { 0 };
	sigset_t pipe_only, before, pending;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	(void)sigpending(&pending);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	wait_for(c, x);
	if (!sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe_only, NULL, &at_once) < 0 && errno == EINTR)
			continue;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void tell_notes(const json_t *result, const struct extra *x)
{
	const char *notes = json_string_value(json_object_get(result, "notes"));

	while (notes && *notes && x->events.note) {
		size_t len = strcspn(notes, "\n");
		cleanup_free char *line = mem_dup_bytes(notes, len);

		x->events.note(x->events.context, line);
		notes += len + (notes[len] == '\n');
	}
}

/* A failure of the operation is a failure of ours. */
static int check(const json_t *result, struct err *e)
{
	const json_t *error = json_object_get(result, "error");
	const char *words = json_string_value(json_object_get(error, "message"));

	if (!error)
		return 0;
	return err_set(e, errcode_find(json_string_value(json_object_get(error, "code"))), "%s",
		       words ? words : "it failed");
}

/* *ret is a new reference. */
static int carry_out(agentkernel *ak, const char *name, const json_t *params, struct extra *x,
		     const char *row, json_t **ret, struct err *e)
{
	struct call_options options = { .environ_list = environ, .reaps = true };
	const struct operation *o = name ? operation_find(name, NULL) : NULL;
	CLEANUP(call_done) struct call c;
	CLEANUP(arguments_done) struct arguments arguments;

	call_init(&c);
	arguments_init(&arguments);
	if (!ak || !name)
		return err_set(e, ERR_INVALID, "a handle or an operation is missing");
	if (!o)
		return err_set(e, ERR_INVALID, "no operation '%.60s'", name);
	if (arguments_read(o, params, &arguments, e) < 0)
		return -1;
	options.launcher = ak->program;
	options.rows = &ak->rows;
	if (row)
		buf_add(&arguments.rows, row, strlen(row) + 1);
	if (x->has_input)
		arguments.has_input = c.has_more_input = true;
	c.on_output = on_output;
	c.context = x;
	if (call_start(&c, &options, o, &arguments, e) < 0)
		return -1;
	wait_without_sigpipe(&c, x);
	*ret = call_take_result(&c);
	tell_notes(*ret, x);
	if (c.is_cancelled && !c.is_late && json_object_get(*ret, "error"))
		return err_set(e, ERR_CODE_COUNT, "the call was cancelled");
	return check(*ret, e);
}

/* Results of commands hold part of what was printed; who gets the bytes needs no copy of them. */
static char *dump(json_t *result, const struct extra *x)
{
	if (x->events.output) {
		(void)json_object_del(result, "stdout");
		(void)json_object_del(result, "stderr");
	}
	return json_dumps(result, JSON_COMPACT);
}

int agentkernel_call(agentkernel *ak, const char *operation, const char *json,
		     const struct agentkernel_events *events, char **ret_json,
		     struct agentkernel_error *error)
{
	struct extra x = { 0 };
	struct err e = { 0 };
	json_error_t where;
	json_t *params = NULL, *result = NULL;
	int r = take(&x.events, sizeof(x.events), events, events ? events->size : 0, &e);

	if (ret_json)
		*ret_json = NULL;
	if (r == 0 && json) {
		params = json_loads(json, JSON_REJECT_DUPLICATES, &where);
		if (!json_is_object(params))
			r = err_set(&e, ERR_INVALID, "the parameters are not a JSON object: %s",
				    params ? "it is of another kind" : where.text);
	}
	if (r == 0)
		r = carry_out(ak, operation, params, &x, NULL, &result, &e);
	if (r == 0 && ret_json)
		*ret_json = dump(result, &x);
	json_decref(params);
	json_decref(result);
	return r < 0 ? report(&e, error) : 0;
}

/* ---- commands ---- */

/* A text as a parameter of that kind; NULL: it is not one. A new reference. */
static json_t *read_value(const struct operation_field *f, const char *text)
{
	uint64_t number = 0;

	switch (f->type) {
	case OPERATION_FLAG:
		return strcmp(text, "true") == 0    ? json_true()
		       : strcmp(text, "false") == 0 ? json_false()
						    : NULL;
	case OPERATION_INTEGER:
		return keyrows_read_number(text, INT64_MAX, &number)
			       ? json_integer((json_int_t)number)
			       : NULL;
	case OPERATION_TEXT:
	case OPERATION_AMOUNT:
	case OPERATION_TEXTS:
		return json_string(text);
	default:
		return NULL;
	}
}

/* Parameters that struct agentkernel_command has members for. */
static bool has_member(const char *name)
{
	static const char *const names[] = {
		"command", "name", "env", "cwd", "stdin", "timeout_ms"
	};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* "memory=2GiB" as the operation's parameter wants it. */
static int add_parameter(json_t *params, const struct operation *o, const char *text, struct err *e)
{
	const char *value = strchr(text, '=');
	cleanup_free char *name = value ? mem_dup_bytes(text, (size_t)(value - text)) : NULL;
	const struct operation_field *f = name ? operation_param(o, name) : NULL;
	json_t *j, *list;

	if (!value)
		return err_set(e, ERR_INVALID, "parameters: '%.60s' is not NAME=value", text);
	if (!f)
		return err_set(e, ERR_INVALID, "%s has no parameter '%.60s'", o->name, name);
	if (has_member(name))
		return err_set(e, ERR_INVALID, "parameters: '%s' is a member of the command", name);
	j = read_value(f, value + 1);
	if (!j)
		return err_set(e, ERR_INVALID, "parameters: '%.100s' is not a value of '%s'",
			       value + 1, name);
	if (f->type != OPERATION_TEXTS)
		return json_object_set_new(params, name, j);
	list = json_object_get(params, name); /* repeated: a list */
	if (!list)
		(void)json_object_set_new(params, name, list = json_array());
	return json_array_append_new(list, j);
}

static int add_environment(json_t *params, const char *const *environment, struct err *e)
{
	json_t *map = json_object();

	(void)json_object_set_new(params, "env", map);
	for (; *environment; environment++) {
		const char *value = strchr(*environment, '=');
		cleanup_free char *name =
			value ? mem_dup_bytes(*environment, (size_t)(value - *environment)) : NULL;

		if (!name || json_object_set_new(map, name, json_string(value + 1)) < 0)
			return err_set(e, ERR_INVALID,
				       "environment: '%.60s' is not NAME=value in UTF-8",
				       *environment);
	}
	return 0;
}

static int add_words(json_t *params, const char *const *words, struct err *e)
{
	json_t *list = json_array();

	(void)json_object_set_new(params, "command", list);
	for (; words && *words; words++)
		if (json_array_append_new(list, json_string(*words)) < 0)
			return err_set(e, ERR_INVALID, "a word of the command is not UTF-8");
	return json_array_size(list) ? 0 : err_set(e, ERR_INVALID, "there is no command");
}

static int describe(const struct agentkernel_command *c, const struct operation *o, json_t *params,
		    struct err *e)
{
	uint64_t timeout_ms = c->timeout_ms ? c->timeout_ms : OPERATION_TIMEOUT_MAX_MS;

	if (add_words(params, c->words, e) < 0 ||
	    (c->environment && add_environment(params, c->environment, e) < 0))
		return -1;
	for (const char *const *text = c->parameters; text && *text; text++)
		if (add_parameter(params, o, *text, e) < 0)
			return -1;
	if (c->sandbox && json_object_set_new(params, "name", json_string(c->sandbox)) < 0)
		return err_set(e, ERR_INVALID, "sandbox: the name is not UTF-8");
	if (c->directory && json_object_set_new(params, "cwd", json_string(c->directory)) < 0)
		return err_set(e, ERR_INVALID, "directory: the path is not UTF-8");
	if (timeout_ms > OPERATION_TIMEOUT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout_ms: more than 24 hours");
	(void)json_object_set_new(params, "timeout_ms", json_integer((json_int_t)timeout_ms));
	return 0;
}

static void fill_result(json_t *json, const struct extra *x, struct agentkernel_result *ret)
{
	const char *ended_by = json_string_value(json_object_get(json, "ended_by"));

	ret->exit_code = (int)json_integer_value(json_object_get(json, "exit_code"));
	ret->signal = (int)json_integer_value(json_object_get(json, "signal"));
	ret->duration_ms = (uint64_t)json_integer_value(json_object_get(json, "duration_ms"));
	ret->timed_out = ended_by && strcmp(ended_by, "deadline") == 0;
	ret->out_of_memory = json_is_true(json_object_get(json, "oom"));
	ret->json = dump(json, x);
}

int agentkernel_run(agentkernel *ak, const struct agentkernel_command *command,
		    const struct agentkernel_events *events, struct agentkernel_result *ret,
		    struct agentkernel_error *error)
{
	struct agentkernel_command c;
	struct extra x = { 0 };
	struct err e = { 0 };
	json_t *params = json_object(), *result = NULL;
	const char *name;
	int r = -1;

	if (!command || !ret || ret->size < sizeof(*ret)) {
		(void)err_set(&e, ERR_INVALID,
			      "a command or result is missing, or its member .size not its size");
	} else if (take(&c, sizeof(c), command, command->size, &e) == 0 &&
		   take(&x.events, sizeof(x.events), events, events ? events->size : 0, &e) == 0) {
		ret->json = NULL;
		x.has_input = c.input != NULL;
		x.input = c.input;
		x.input_len = c.input_length;
		name = c.sandbox ? "sandbox_exec" : "sandbox_run";
		if (describe(&c, operation_find(name, NULL), params, &e) == 0)
			r = carry_out(ak, name, params, &x, NULL, &result, &e);
	}
	if (r == 0)
		fill_result(result, &x, ret);
	json_decref(params);
	json_decref(result);
	return r < 0 ? report(&e, error) : 0;
}

/* ---- files ---- */

static int work_on_file(agentkernel *ak, const char *operation, const char *sandbox,
			const char *path, struct extra *x, const char *row, struct err *e)
{
	json_t *params = json_pack("{s:s, s:s}", "name", sandbox, "path", path), *result = NULL;
	int r = params ? 0 : err_set(e, ERR_INVALID, "a name or path is missing or not UTF-8");

	if (r == 0 && x->has_input) /* the bytes themselves follow on standard input */
		(void)json_object_set_new(params, "content", json_string(""));
	if (r == 0)
		r = carry_out(ak, operation, params, x, row, &result, e);
	json_decref(params);
	json_decref(result);
	return r;
}

int agentkernel_write_file(agentkernel *ak, const char *sandbox, const char *path,
			   const void *bytes, size_t length, struct agentkernel_error *error)
{
	struct extra x = { .input = bytes, .input_len = bytes ? length : 0, .has_input = true };
	struct err e = { 0 };

	return work_on_file(ak, "sandbox_file_write", sandbox, path, &x, NULL, &e) < 0
		       ? report(&e, error)
		       : 0;
}

int agentkernel_read_file(agentkernel *ak, const char *sandbox, const char *path,
			  const struct agentkernel_events *events, struct agentkernel_error *error)
{
	struct extra x = { 0 };
	struct err e = { 0 };

	if (take(&x.events, sizeof(x.events), events, events ? events->size : 0, &e) < 0 ||
	    work_on_file(ak, "sandbox_file_read", sandbox, path, &x, WIRE_PARAM "raw=true", &e) < 0)
		return report(&e, error);
	return 0;
}
