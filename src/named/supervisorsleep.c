/*
 * supervisorsleep - a running sandbox that nobody uses falls asleep; see supervisorsleep.h.
 *
 * Theory of operation. idle_since_ms is 0 while the sandbox is in use; each turn of the loop looks
 * whether that has changed. A doze is a freeze of its own: freeze_count has one for it, so a
 * checkpoint of a dozing sandbox freezes nothing more, and a pause takes it over.
 */
#include "named/supervisorsleep.h"

#include "base/clock.h"
#include "engine/turn.h"
#include "named/portholder.h"
#include "named/supervisorstate.h"

void supervisorsleep_touch(struct supervisorstate *k)
{
	k->idle_since_ms = 0;
}

static bool is_client_using(const struct supervisorstate_client *c)
{
	return c->is_holding || c->held.kind || c->awaited_request || c->is_freezing;
}

static bool is_in_use(const struct supervisorstate *k)
{
	if (k->is_stopping || k->is_paused || k->checkpoints.pid ||
	    k->session.gatekeeper.has_inbound || tasktable_count_commands(&k->tasks) > 0 ||
	    supervisorservices_are_awaited(k))
		return true;
	for (unsigned i = 0; i < k->client_count; i++)
		if (is_client_using(&k->clients[i]))
			return true;
	return false;
}

static uint64_t sleep_at_ms(const struct supervisorstate *k)
{
	uint64_t timeout_ms = k->options.policy->idle_timeout_ms;

	return timeout_ms && k->idle_since_ms && !k->is_dozing ? k->idle_since_ms + timeout_ms : 0;
}

void supervisorsleep_set_deadline(const struct supervisorstate *k, struct turn *t)
{
	turn_wake_at(t, sleep_at_ms(k), clock_now_ms());
}

int supervisorsleep_wake(struct supervisorstate *k, struct err *e)
{
	supervisorsleep_touch(k);
	if (k->falls_asleep)
		return err_set(e, ERR_BUSY, "sandbox '%s' is falling asleep",
			       k->options.named->name);
	if (!k->is_dozing)
		return 0;
	k->is_dozing = false;
	if (supervisorstate_thaw(k, e) < 0) {
		k->is_dozing = true;
		return -1;
	}
	supervisorstate_set_state(k, NAMED_RUNNING);
	return 0;
}

static void doze(struct supervisorstate *k)
{
	struct err e = { 0 };

	if (supervisorstate_freeze(k, &e) < 0) {
		supervisorsleep_touch(k); /* the next try is after another idle time */
		return;
	}
	k->is_dozing = true;
	supervisorstate_set_state(k, NAMED_DOZING);
}

void supervisorsleep_check(struct supervisorstate *k)
{
	struct err ignored;
	uint64_t now_ms;

	if (is_in_use(k)) {
		k->idle_since_ms = 0;
		if (k->is_dozing && k->session.gatekeeper.has_inbound)
			(void)!supervisorsleep_wake(k, &ignored);
		return;
	}
	now_ms = clock_now_ms();
	if (!k->idle_since_ms)
		k->idle_since_ms = now_ms;
	if (!sleep_at_ms(k) || now_ms < sleep_at_ms(k))
		return;
	if (!k->options.policy->stops_when_idle) {
		doze(k);
		return;
	}
	k->falls_asleep = true;
	logfile_say(&k->log, "idle: it falls asleep");
	supervisorstate_begin_stop(k, SUPERVISOR_STOP_DEFAULT_MS);
}

void supervisorsleep_hand_over(struct supervisorstate *k)
{
	struct published *ports = &k->session.gatekeeper.published;
	struct err e = { 0 };

	if (ports->count == 0)
		return;
	if (portholder_give(k->options.ak, k->options.named, ports, &e) < 0)
		logfile_say(&k->log, "its published ports cannot wake it: %s", e.msg);
}
