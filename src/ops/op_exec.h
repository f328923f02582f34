#pragma once
/* op_exec - commands in named sandboxes, attached or detached. */
#include "base/buf.h"
#include "base/tail.h"
#include "engine/run.h"
#include "named/tasks.h"

struct ak;
struct op_events;

struct op_exec_args {
	const char *name;
	char *const *command;
	const char *workdir; /* see access_resolve_path(); NULL: the sandbox's */
	const char *user;    /* NULL: the sandbox's */
	char *const *env;    /* "NAME=value" or "NAME", NULL-terminated; or NULL */
	uint64_t timeout_ms; /* 0: the sandbox's */
	enum streams_tty tty;
	bool is_captured; /* store the output in the result */
	bool keeps_input; /* detached: op_session gives it input */
	uint16_t rows, columns;
	bool starts_it; /* start a stopped sandbox first */
};

/* Waits until the command ends. *ret has only the fields of one command: no memory, no network. */
ERR_CHECKED int op_exec(struct ak *ak, const struct op_exec_args *args, const struct op_events *ev,
			struct run_result *ret, struct err *e);

struct op_exec_start_result {
	char id[TASKS_ID_MAX_BYTES];
	int64_t pid; /* inside the sandbox; 0: not known */
};
ERR_CHECKED int op_exec_start(struct ak *ak, const struct op_exec_args *args,
			      const struct op_events *ev, struct op_exec_start_result *ret,
			      struct err *e);

struct op_exec_wait_args {
	const char *name, *id;
	uint64_t timeout_ms;
};
struct op_exec_wait_result {
	bool is_running; /* the timeout was reached first */
	int exit_code;
};
ERR_CHECKED int op_exec_wait(struct ak *ak, const struct op_exec_wait_args *args,
			     const struct op_events *ev, struct op_exec_wait_result *ret,
			     struct err *e);

struct op_exec_output_args {
	const char *name, *id;
	bool is_stderr;
	struct tail_range range;
};
struct op_exec_output_result {
	struct buf bytes;
	uint64_t offset, next_offset;
	uint64_t lost_bytes; /* at the beginning, because the log's size is limited */
	bool is_running, has_ended;
	int exit_code; /* if has_ended */
};
void op_exec_output_result_init(struct op_exec_output_result *r);
void op_exec_output_result_done(struct op_exec_output_result *r);
ERR_CHECKED int op_exec_output(struct ak *ak, const struct op_exec_output_args *args,
			       const struct op_events *ev, struct op_exec_output_result *ret,
			       struct err *e);

struct op_exec_kill_args {
	const char *name, *id;
	const char *signal; /* "TERM", "SIGKILL", "9"; NULL: TERM */
};
ERR_CHECKED int op_exec_kill(struct ak *ak, const struct op_exec_kill_args *args,
			     const struct op_events *ev, struct err *e);

struct op_exec_list_args {
	const char *name;
	bool may_be_stopped; /* then the list is empty, instead of a failure */
};
ERR_CHECKED int op_exec_list(struct ak *ak, const struct op_exec_list_args *args,
			     const struct op_events *ev, struct tasks_list *ret, struct err *e);
