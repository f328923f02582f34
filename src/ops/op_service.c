/* op_service - services of a named sandbox; see op_service.h. */
#include "ops/op_service.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "named/named.h"
#include "named/reconfigure.h"
#include "named/wake.h"
#include "ops/access.h"
#include "ops/request.h"
#include "policy/environment.h"
#include "policy/publish.h"
#include "state/ak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- composing ---- */

/*
 * Variables that were requested by name have the value that the caller has now: a service starts
 * when nobody is there.
 */
static int fix_environment(const struct ak *ak, char ***env, struct err *e)
{
	char **fixed = NULL;

	for (char *const *entry = *env; entry && *entry; entry++) {
		const char *value = strchr(*entry, '=')
					    ? NULL
					    : environment_get(ak->caller.environ_list, *entry);
		cleanup_free char *text = value ? mem_format("%s=%s", *entry, value) : NULL;

		if (**entry == '=' || !**entry) {
			keyrows_list_free(&fixed);
			return err_set(e, ERR_INVALID, "'%s' does not start with a name", *entry);
		}
		if (text || strchr(*entry, '='))
			(void)keyrows_list_add(&fixed, text ? text : *entry);
	}
	keyrows_list_free(env);
	*env = fixed;
	return 0;
}

static void add_passed(const struct request *r, struct service *s)
{
	for (char *const *name = r->policy.passed; name && *name; name++)
		(void)keyrows_list_add(&s->env, *name);
}

static int add_main(const struct request *r, char *const *words, struct services *all,
		    struct err *e)
{
	CLEANUP(services_done_one) struct service s = { .name = SERVICE_MAIN };
	struct publish published;

	/* a published port is most likely its own */
	if (r->policy.publish && publish_parse(r->policy.publish[0], &published, e) == 0)
		s.port = published.inner;
	for (; *words; words++)
		(void)keyrows_list_add(&s.words, *words);
	add_passed(r, &s);
	return fix_environment(r->ak, &s.env, e) < 0 ? -1 : services_put(all, &s, e);
}

static int add_configured(const struct request *r, const struct configuration *c,
			  struct services *all, struct err *e)
{
	for (unsigned i = 0; i < c->service_count; i++) {
		const struct configuration_service *from = &c->services[i];
		const char *const words[] = { "/bin/sh", "-c", from->command, NULL };
		CLEANUP(services_done_one) struct service s = { .port = (uint32_t)from->port };

		if (strlen(from->name) > SERVICE_NAME_MAX_BYTES)
			return err_set(e, ERR_INVALID, "invalid service name '%.60s'", from->name);
		memcpy(s.name, from->name, strlen(from->name));
		for (unsigned w = 0; words[w]; w++)
			(void)keyrows_list_add(&s.words, words[w]);
		for (char *const *need = from->needs; need && *need; need++)
			(void)keyrows_list_add(&s.needs, *need);
		add_passed(r, &s);
		if (fix_environment(r->ak, &s.env, e) < 0 || services_put(all, &s, e) < 0)
			return err_wrap(e, "[[services]]");
	}
	return 0;
}

int op_service_compose(const struct request *r, char *const *main_words, struct services *ret,
		       struct err *e)
{
	CLEANUP(services_done) struct services all = { 0 };

	if ((main_words && main_words[0] && add_main(r, main_words, &all, e) < 0) ||
	    add_configured(r, &r->config.user, &all, e) < 0 ||
	    add_configured(r, &r->config.project, &all, e) < 0)
		return -1;
	*ret = all;
	all = (struct services){ 0 };
	return 0;
}

/* ---- changing ---- */

int op_service_add(struct ak *ak, const struct op_service_add_args *args,
		   const struct op_events *ev, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    fix_environment(ak, &args->service->env, e) < 0)
		return -1;
	return reconfigure_services(ak, args->name, args->service, NULL, e);
}

int op_service_remove(struct ak *ak, const struct op_service_args *args, const struct op_events *ev,
		      struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return reconfigure_services(ak, args->name, NULL, args->service, e);
}

int op_service_restart(struct ak *ak, const struct op_service_args *args,
		       const struct op_events *ev, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int fd = -1;

	(void)ev;
	named_init(&n);
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    named_open(ak, args->name, &n, e) < 0 || wake_connect(ak, &n, &fd, e) < 0)
		return -1;
	return control_do(fd, CONTROL_SERVICE_RESTART, args->service, strlen(args->service) + 1, e);
}

/* ---- listing ---- */

void op_service_list_result_done(struct op_service_list_result *r)
{
	services_done(&r->services);
	free(r->shown);
	*r = (struct op_service_list_result){ 0 };
}

/* Pairs the file's services with the supervisor's: one that was just added may not be there. */
static int ask_states(int fd, struct op_service_list_result *ret, struct err *e)
{
	CLEANUP(frame_done) struct frame f = { 0 };
	const struct control_service *rows;
	size_t count;

	if (control_ask(fd, CONTROL_SERVICES, NULL, 0, &f, e) < 0)
		return -1;
	rows = (const struct control_service *)(const void *)f.bytes;
	count = f.len / sizeof(*rows);
	ret->shown = mem_alloc((ret->services.count + 1) * sizeof(*ret->shown));
	for (unsigned i = 0; i < ret->services.count; i++)
		for (size_t n = 0; n < count; n++)
			if (strncmp(rows[n].name, ret->services.list[i].name,
				    sizeof(rows[n].name)) == 0)
				ret->shown[i] = rows[n];
	return 0;
}

int op_service_list(struct ak *ak, const struct op_service_list_args *args,
		    const struct op_events *ev, struct op_service_list_result *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_fd int fd = -1;

	(void)ev;
	named_init(&n);
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    named_open(ak, args->name, &n, e) < 0 || services_load(&n, &ret->services, e) < 0)
		return -1;
	if (control_connect(n.dir_fd, args->name, &fd, e) == 0)
		return ask_states(fd, ret, e);
	return e->code == ERR_NOT_FOUND ? 0 : -1;
}

const char *op_service_state_word(const struct op_service_list_result *r, unsigned index)
{
	static const char *const words[] = {
		[CONTROL_SERVICE_WAITING] = "waiting",
		[CONTROL_SERVICE_STARTING] = "starting",
		[CONTROL_SERVICE_READY] = "ready",
		[CONTROL_SERVICE_OVER] = "ended",
	};
	uint32_t state = r->shown ? r->shown[index].state : CONTROL_SERVICE_OVER;

	return !r->shown ? "stopped" : state < COUNT_OF(words) ? words[state] : "unknown";
}

static void add_texts(struct json *j, const char *key, char *const *list)
{
	json_open_array(j, key);
	for (; list && *list; list++)
		json_add_text(j, NULL, *list);
	json_close_array(j);
}

void op_service_add_json(const struct op_service_list_result *r, struct json *j)
{
	json_open_array(j, "services");
	for (unsigned i = 0; i < r->services.count; i++) {
		const struct service *s = &r->services.list[i];
		const struct control_service *shown = r->shown ? &r->shown[i] : NULL;
		char id[16] = "";

		if (shown && shown->task_id)
			(void)snprintf(id, sizeof(id), "%08" PRIx32, shown->task_id);
		json_open_object(j, NULL);
		json_add_text(j, "service", s->name);
		json_add_text(j, "state", op_service_state_word(r, i));
		if (s->port)
			json_add_number(j, "port", s->port);
		json_add_number(j, "restarts", shown ? shown->restarts : 0);
		if (id[0])
			json_add_text(j, "id", id);
		add_texts(j, "command", s->words);
		add_texts(j, "needs", s->needs);
		json_close_object(j);
	}
	json_close_array(j);
}
