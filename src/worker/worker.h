#pragma once
/*
 * worker - carries out one operation for a server that speaks JSON: decodes the request, calls the
 * operation (ops/), encodes its result.
 *
 * The servers (agentkernel-mcp, agentkernel-serve, libagentkernel) are separate programs with large
 * libraries and many callers. For each call they start `agentkernel worker` (rpc/wire.h), a small
 * process that does one thing and ends: so calls cannot disturb each other, cancelling a call means
 * killing a process, and the supervisor of a sandbox holds no descriptors of other callers.
 *
 * Policy. The ceiling results from the server's options and the configuration (policy/ceiling);
 * ops/request and ops/access check every call against it.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "ops/events.h"
#include "ops/request.h"
#include "policy/operation.h"
#include "rpc/wire.h"

struct worker_param {
	const char *name, *text;
};

struct worker {
	struct ak *ak;
	enum operation_id id;
	const struct operation *operation;
	struct worker_param *params; /* borrowed from .bytes */
	size_t param_count;
	struct request server; /* the server's options; its policy is the ceiling */
	struct request call;   /* the options of this call */
	struct op_events events;
	const char *owner; /* NULL: the administrator; borrowed from .bytes */
	uint32_t creator_hash[2];
	char *bytes;
	int command_stderr_fd; /* saved while fd 2 is the notes */
};

/* The whole program if its first argument is WIRE_COMMAND. */
int worker_main(struct ak *ak);

/* ---- parameters ---- */

const char *worker_text(const struct worker *w, const char *name); /* NULL: not given */
bool worker_flag(const struct worker *w, const char *name);        /* false by default */
uint64_t worker_number(const struct worker *w, const char *name, uint64_t otherwise);
char **worker_list(const struct worker *w,
		   const char *name); /* the caller frees the array; or NULL */
/* The arguments to execute: those given, or a shell with one text. The caller frees the array. */
char **worker_command(const struct worker *w);
/* Fills w->call from the parameters that are fields of a policy. */
ERR_CHECKED int worker_fill_request(struct worker *w, struct err *e);

/* ---- operations: decode, call, encode the members of the result ---- */

typedef int worker_fn(struct worker *w, struct json *j, struct err *e);
worker_fn worker_run, worker_exec, worker_exec_start, worker_exec_wait, worker_exec_output,
	worker_exec_kill, worker_exec_list;
worker_fn worker_create, worker_list_sandboxes, worker_remove, worker_start, worker_stop,
	worker_pause, worker_resume, worker_fork, worker_info, worker_stats, worker_extend;
worker_fn worker_checkpoint, worker_checkpoint_list, worker_checkpoint_remove, worker_restore;
worker_fn worker_file_write, worker_file_read, worker_file_edit, worker_file_list,
	worker_file_remove, worker_upload, worker_download;
worker_fn worker_network_log, worker_network_check, worker_network_change;
worker_fn worker_audit, worker_events;
worker_fn worker_reach, worker_port_access, worker_session;
worker_fn worker_service_add, worker_service_list, worker_service_remove, worker_service_restart;
