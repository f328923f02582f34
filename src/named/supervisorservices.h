#pragma once
/*
 * supervisorservices - the services of a running sandbox: started in order, watched, restarted.
 *
 * A service starts when those that it needs are ready. One with a port is ready when that port
 * answers, another one at once. One that ends is started again after a delay that doubles, up to
 * SERVICES_DELAY_MAX_MS, and begins anew when it has run for SERVICES_STEADY_MS.
 */
#include "base/err.h"
#include "named/control.h"
#include "named/services.h"

#include <stdbool.h>
#include <stdint.h>

struct supervisorstate;
struct turn;

#define SERVICES_DELAY_FIRST_MS 100u
#define SERVICES_DELAY_MAX_MS 30000u
#define SERVICES_STEADY_MS 10000u
#define SERVICES_PROBE_FIRST_MS 10u /* between two looks whether the port answers; it doubles */
#define SERVICES_PROBE_MAX_MS 500u
#define SERVICES_FRESH_MS 2000u /* a service that names no port may open any, so long */
#define SERVICES_HOLD_MS 30000u /* connections to its port wait for its first start */

struct supervisorservice {
	struct service spec;
	enum control_service_state state;
	uint32_t task_id;              /* 0: never started */
	unsigned restarts, quick_ends; /* in all; since it last ran steadily */
	uint64_t started_ms, at_ms;    /* its start; the next start or probe, 0: none */
	uint64_t probe_ms;             /* interval */
	int report_fd;                 /* why it could not be started; -1: none */
	int answer_fd, probe_fd;       /* of a probe (base/dialin.h); -1: none */
	unsigned family;               /* of the probe */
	unsigned answer_slot, probe_slot;
	uint64_t release_at_ms; /* connections to its port wait until then; 0: they do not */
	bool is_removed;        /* it ends, and is forgotten then */
	bool is_restarted;      /* it ends, and starts again at once */
};

struct supervisorservices {
	struct supervisorservice *list;
	unsigned count;
};

/* At the sandbox's start: as supervisorservices_load(), and connections wait for the services. */
ERR_CHECKED int supervisorservices_begin(struct supervisorstate *k, struct err *e);
/* Reads the file of services again: new ones start, others end or start anew. */
ERR_CHECKED int supervisorservices_load(struct supervisorstate *k, struct err *e);
void supervisorservices_done(struct supervisorservices *s);

void supervisorservices_watch(struct supervisorstate *k, struct turn *t);
void supervisorservices_on_turn(struct supervisorstate *k, const struct turn *t);
void supervisorservices_on_end(struct supervisorstate *k, uint32_t task_id);

ERR_CHECKED int supervisorservices_restart(struct supervisorstate *k, const char *name,
					   struct err *e);

/* Do connections wait for the first start of a service? */
bool supervisorservices_are_awaited(const struct supervisorstate *k);

/* For CONTROL_SERVICES: a row for each. */
unsigned supervisorservices_show(const struct supervisorstate *k,
				 struct control_service out[SERVICES_MAX]);
/* The first service's port; 0: none has one. */
uint32_t supervisorservices_main_port(const struct supervisorstate *k);
enum control_readiness supervisorservices_readiness(const struct supervisorstate *k, uint32_t port);
