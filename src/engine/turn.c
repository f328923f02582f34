/* turn - one turn of an event loop; see turn.h. */
#include "engine/turn.h"

#include "base/mem.h"
#include "engine/gatekeeper.h"
#include "workspace/newnames.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

void turn_init(struct turn *t)
{
	t->polled = t->own;
	t->capacity = TURN_OWN_SLOTS;
	turn_begin(t);
}

void turn_done(struct turn *t)
{
	if (t->polled != t->own)
		free(t->polled);
	turn_init(t);
}

void turn_begin(struct turn *t)
{
	t->count = t->gate_count = 0;
	t->gatekeeper = NULL;
	t->wait_ms = -1;
}

static void make_room(struct turn *t, unsigned more)
{
	struct pollfd *larger;

	if (t->count + more <= t->capacity)
		return;
	t->capacity = 2 * (t->count + more);
	larger = mem_alloc(t->capacity * sizeof(*larger));
	memcpy(larger, t->polled, t->count * sizeof(*larger));
	if (t->polled != t->own)
		free(t->polled);
	t->polled = larger;
}

unsigned turn_watch(struct turn *t, int fd, short events)
{
	make_room(t, 1);
	t->polled[t->count] = (struct pollfd){ .fd = fd, .events = events };
	return t->count++;
}

void turn_watch_gate(struct turn *t, struct gatekeeper *g)
{
	if (!g)
		return;
	make_room(t, GATEKEEPER_POLL_MAX);
	t->gatekeeper = g;
	t->first_gate = t->count;
	t->gate_count = gatekeeper_poll(g, t->polled + t->count);
	t->count += t->gate_count;
	if (gatekeeper_wait_ms(g) >= 0)
		turn_wake_in(t, (uint64_t)gatekeeper_wait_ms(g));
}

unsigned turn_watch_names(struct turn *t, const struct newnames *n)
{
	if (n && newnames_wait_ms(n) >= 0)
		turn_wake_in(t, (uint64_t)newnames_wait_ms(n));
	return turn_watch(t, n ? newnames_poll_fd(n) : -1, POLLIN);
}

void turn_wake_in(struct turn *t, uint64_t ms)
{
	int wait_ms = ms > INT_MAX ? INT_MAX : (int)ms;

	if (t->wait_ms < 0 || wait_ms < t->wait_ms)
		t->wait_ms = wait_ms;
}

void turn_wake_at(struct turn *t, uint64_t then_ms, uint64_t now_ms)
{
	if (then_ms)
		turn_wake_in(t, then_ms > now_ms ? then_ms - now_ms : 0);
}

int turn_wait(struct turn *t, struct err *e)
{
	if (poll(t->polled, t->count, t->wait_ms) < 0) {
		for (unsigned i = 0; i < t->count; i++)
			t->polled[i].revents = 0;
		return errno == EINTR ? 0 : err_sys(e, errno, "wait for events");
	}
	for (unsigned i = 0; i < t->gate_count; i++) {
		if (!t->polled[t->first_gate + i].revents)
			continue;
		gatekeeper_on_ready(t->gatekeeper);
		break;
	}
	return 1;
}

bool turn_is_ready(const struct turn *t, unsigned slot)
{
	return t->polled[slot].revents;
}
