/* op_port - ports of a sandbox that are reachable from the host; see op_port.h. */
#include "ops/op_port.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "engine/published.h"
#include "named/named.h"
#include "named/reconfigure.h"
#include "named/wake.h"
#include "ops/access.h"
#include "ops/portview.h"
#include "state/ak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void op_port_list_result_done(struct op_port_list_result *r)
{
	free(r->ports);
	*r = (struct op_port_list_result){ 0 };
}

/* ---- listing ---- */

static int ask_supervisor(int fd, struct op_port_list_result *ret, struct err *e)
{
	CLEANUP(frame_done) struct frame f = { 0 };

	if (control_ask(fd, CONTROL_PORTS, NULL, 0, &f, e) < 0)
		return -1;
	ret->count = (unsigned)(f.len / sizeof(*ret->ports));
	ret->ports = mem_alloc(ret->count * sizeof(*ret->ports) + 1);
	memcpy(ret->ports, f.bytes, ret->count * sizeof(*ret->ports));
	ret->is_running = true;
	return 0;
}

/* Of a sandbox that does not run: the ports that its start will open. */
static int read_policy(const struct named *n, struct op_port_list_result *ret, struct err *e)
{
	CLEANUP(policy_done) struct policy policy = { 0 };

	if (named_load_policy(n, &policy, e) < 0)
		return -1;
	for (char *const *text = policy.publish; text && *text; text++) {
		struct published_port port = { .is_kept = true };
		struct control_port *shown;

		if (publish_parse(*text, &port.spec, e) < 0)
			return -1;
		port.port = port.spec.port;
		ret->ports = mem_grow(ret->ports, ret->count + 1, sizeof(*ret->ports));
		shown = &ret->ports[ret->count++];
		*shown = (struct control_port){ .inner = port.spec.inner, .is_kept = 1 };
		(void)published_format(&port, shown->at);
		(void)publish_format(&port.spec, shown->spec);
	}
	return 0;
}

int op_port_list(struct ak *ak, const struct op_port_list_args *args, const struct op_events *ev,
		 struct op_port_list_result *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int fd = -1;

	(void)ev;
	named_init(&n);
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    named_open(ak, args->name, &n, e) < 0)
		return -1;
	if (control_connect(n.dir_fd, args->name, &fd, e) == 0)
		return ask_supervisor(fd, ret, e);
	return e->code == ERR_NOT_FOUND ? read_policy(&n, ret, e) : -1;
}

/* ---- changing ---- */

/* Turns what was typed into texts of the policy. */
static int read_ports(char *const *typed, char ***ret, struct err *e)
{
	for (; *typed; typed++)
		if (publish_add(ret, *typed, e) < 0)
			return -1;
	return 0;
}

/* A server's callers have no ports of the host. */
static int check_user(const struct ak *ak, struct err *e)
{
	return ak->ceiling ? err_set(e, ERR_DENIED, "only the user publishes ports of this machine")
			   : 0;
}

/* "8080" names port 8080 of any address of the host. */
static int find_ports(struct ak *ak, const struct op_port_change_args *args, char ***ret,
		      struct err *e)
{
	CLEANUP(op_port_list_result_done) struct op_port_list_result all = { 0 };
	const struct op_port_list_args list = { args->name };

	if (op_port_list(ak, &list, NULL, &all, e) < 0)
		return -1;
	for (char *const *typed = args->ports; *typed; typed++) {
		unsigned found = 0;

		for (unsigned i = 0; i < all.count; i++) {
			const struct control_port *p = &all.ports[i];
			const char *colon = strrchr(p->at, ':');

			if (!p->is_kept ||
			    (strcmp(*typed, p->at) != 0 && strcmp(*typed, p->spec) != 0 &&
			     (!colon || strcmp(*typed, colon + 1) != 0)))
				continue;
			found++;
			(void)keyrows_list_add(ret, p->spec);
		}
		if (found == 0 && publish_add(ret, *typed, e) < 0)
			return -1;
	}
	return 0;
}

/* added: NULL for all. */
static void remark(struct ak *ak, const char *name, char *const *added, const struct op_events *ev)
{
	CLEANUP(op_port_list_result_done) struct op_port_list_result all = { 0 };
	const struct op_port_list_args list = { name };
	struct publish spec;
	struct err ignored;

	if (op_port_list(ak, &list, NULL, &all, &ignored) < 0)
		return;
	for (unsigned i = 0; i < all.count; i++)
		if ((!added || keyrows_list_has(added, all.ports[i].spec)) &&
		    publish_parse(all.ports[i].spec, &spec, &ignored) == 0)
			portview_remark(ev, &spec, all.ports[i].at);
}

int op_port_change(struct ak *ak, const struct op_port_change_args *args,
		   const struct op_events *ev, struct err *e)
{
	CLEANUP(keyrows_list_free) char **ports = NULL;

	if (check_user(ak, e) < 0)
		return -1;
	if (args->is_adding ? read_ports(args->ports, &ports, e) < 0
			    : find_ports(ak, args, &ports, e) < 0)
		return -1;
	if (reconfigure_ports(ak, args->name, args->is_adding, ports, e) < 0)
		return -1;
	if (args->is_adding)
		remark(ak, args->name, ports, ev);
	return 0;
}

void op_port_remark(struct ak *ak, const char *name, const struct op_events *ev)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };
	struct err ignored;

	named_init(&n);
	if (named_open(ak, name, &n, &ignored) == 0 &&
	    named_load_policy(&n, &policy, &ignored) == 0 && policy.publish)
		remark(ak, name, NULL, ev);
}

/* ---- as long as a connection lasts ---- */

int op_forward(struct ak *ak, const struct op_forward_args *args, const struct op_events *ev,
	       struct control_port *ret, int *ret_fd, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(frame_done) struct frame f = { 0 };
	CLEANUP(keyrows_list_free) char **ports = NULL;
	cleanup_fd int fd = -1;

	(void)ev;
	named_init(&n);
	if (check_user(ak, e) < 0 || publish_add(&ports, args->port, e) < 0)
		return -1;
	if (ports[1])
		return err_set(e, ERR_INVALID, "forward one port at a time");
	if (named_open(ak, args->name, &n, e) < 0 || wake_connect(ak, &n, &fd, e) < 0 ||
	    control_ask(fd, CONTROL_FORWARD, ports[0], strlen(ports[0]) + 1, &f, e) < 0)
		return -1;
	if (f.len != sizeof(*ret))
		return err_set(e, ERR_SYSTEM, "the supervisor gave half an answer");
	memcpy(ret, f.bytes, sizeof(*ret));
	*ret_fd = take_fd(&fd);
	return 0;
}
