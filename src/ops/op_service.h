#pragma once
/* op_service - services of a named sandbox: commands that run as long as it does. */
#include "base/err.h"
#include "named/control.h"
#include "named/services.h"

#include <stdbool.h>

struct ak;
struct op_events;
struct request;

struct op_service_add_args {
	const char *name;
	struct service *service; /* taken; .env of "NAME" alone gets the caller's value */
};
ERR_CHECKED int op_service_add(struct ak *ak, const struct op_service_add_args *args,
			       const struct op_events *ev, struct err *e);

struct op_service_args {
	const char *name, *service;
};
ERR_CHECKED int op_service_remove(struct ak *ak, const struct op_service_args *args,
				  const struct op_events *ev, struct err *e);
/* Starts it at once if it waits. Wakes the sandbox. */
ERR_CHECKED int op_service_restart(struct ak *ak, const struct op_service_args *args,
				   const struct op_events *ev, struct err *e);

struct op_service_list_args {
	const char *name;
};
struct op_service_list_result {
	struct services services;
	struct control_service *shown; /* of a running sandbox, one for each; else NULL */
};
void op_service_list_result_done(struct op_service_list_result *r); /* may run twice */
ERR_CHECKED int op_service_list(struct ak *ak, const struct op_service_list_args *args,
				const struct op_events *ev, struct op_service_list_result *ret,
				struct err *e);
struct json;
void op_service_add_json(const struct op_service_list_result *r, struct json *j); /* "services" */
const char *op_service_state_word(const struct op_service_list_result *r, unsigned index);

/* The services of a new sandbox: [[services]] of its configuration, and its main command. */
ERR_CHECKED int op_service_compose(const struct request *r, char *const *main_words,
				   struct services *ret, struct err *e);
