/* workerport - ways into sandboxes: ports and services. */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/fdpass.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "ops/op_reach.h"
#include "ops/op_service.h"

#include <string.h>

/* ---- ports ---- */

int worker_reach(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_reach_result_done) struct op_reach_result r;
	const struct op_reach_args args = { .name = worker_text(w, "name"),
					    .port = (uint32_t)worker_number(w, "port", 0),
					    .is_looking = worker_flag(w, "look") };
	int sent;

	op_reach_result_init(&r);
	if (op_reach(w->ak, &args, &w->events, &r, e) < 0)
		return -1;
	sent = args.is_looking
		       ? 0
		       : fdpass_send(WIRE_HANDOVER_FD, (const int[]){ r.dial_fd, r.control_fd }, 2);
	if (sent < 0)
		return err_sys(e, -sent, "hand the way in over");
	json_add_text(j, "id", r.id);
	json_add_text(j, "owner", r.owner);
	json_add_number(j, "main_port", r.main_port);
	json_open_array(j, "public_ports");
	for (char *const *port = r.public_ports; port && *port; port++)
		json_add_text(j, NULL, *port);
	json_close_array(j);
	return 0;
}

int worker_port_access(struct worker *w, struct json *j, struct err *e)
{
	const struct op_port_access_args args = { .name = worker_text(w, "name"),
						  .port = (uint32_t)worker_number(w, "port", 0),
						  .is_public = worker_flag(w, "public") };

	if (op_port_access(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "note",
		      args.is_public ? "its URL needs no key now"
				     : "its URL needs a key or a link now");
	return 0;
}

/* ---- services ---- */

static void copy_list(char *const *from, char ***to)
{
	for (; from && *from; from++)
		(void)keyrows_list_add(to, *from);
}

int worker_service_add(struct worker *w, struct json *j, struct err *e)
{
	cleanup_free char **words = worker_command(w);
	cleanup_free char **needs = worker_list(w, "needs");
	cleanup_free char **env = worker_list(w, "env");
	CLEANUP(services_done_one)
	struct service s = { .port = (uint32_t)worker_number(w, "port", 0) };
	const struct op_service_add_args args = { .name = worker_text(w, "name"), .service = &s };
	const char *name = worker_text(w, "service"), *workdir = worker_text(w, "cwd");

	if (strlen(name) > SERVICE_NAME_MAX_BYTES)
		return err_set(e, ERR_INVALID, "service: at most %u characters",
			       SERVICE_NAME_MAX_BYTES);
	memcpy(s.name, name, strlen(name));
	if (workdir && workdir[0] != '/')
		return err_set(e, ERR_INVALID, "cwd: '%s' is not an absolute path", workdir);
	s.workdir = workdir ? mem_dup(workdir) : NULL;
	copy_list(words, &s.words);
	copy_list(needs, &s.needs);
	copy_list(env, &s.env);
	if (op_service_add(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "note", "it runs whenever the sandbox does");
	return 0;
}

int worker_service_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_service_list_result_done) struct op_service_list_result r = { 0 };
	const struct op_service_list_args args = { .name = worker_text(w, "name") };

	if (op_service_list(w->ak, &args, &w->events, &r, e) < 0)
		return -1;
	op_service_add_json(&r, j);
	return 0;
}

int worker_service_remove(struct worker *w, struct json *j, struct err *e)
{
	const struct op_service_args args = { .name = worker_text(w, "name"),
					      .service = worker_text(w, "service") };

	if (op_service_remove(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "note", "it is gone");
	return 0;
}

int worker_service_restart(struct worker *w, struct json *j, struct err *e)
{
	const struct op_service_args args = { .name = worker_text(w, "name"),
					      .service = worker_text(w, "service") };

	if (op_service_restart(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "note", "it starts again");
	return 0;
}
