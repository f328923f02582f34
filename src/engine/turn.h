#pragma once
/*
 * turn - one turn of an event loop: which descriptors to watch, until when to wait, what is ready.
 *
 * The three processes that stay with a sandbox use it (engine/supervise, named/supervisor,
 * pool/warm). They register everything again each turn, because the set changes with nearly every
 * event; a turn therefore remembers nothing but its memory. The session's gate is served here.
 */
#include "base/err.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct gatekeeper;
struct newnames;

#define TURN_OWN_SLOTS 24u /* without allocating */

struct turn {
	struct pollfd own[TURN_OWN_SLOTS];
	struct pollfd *polled; /* .own, or allocated */
	unsigned count, capacity;
	unsigned first_gate, gate_count;
	struct gatekeeper *gatekeeper;
	int wait_ms; /* -1: no limit */
};

void turn_init(struct turn *t);
void turn_done(struct turn *t); /* may run twice */

/* Forgets what was registered. */
void turn_begin(struct turn *t);
/* Returns the slot for turn_is_ready(). fd -1: never ready. */
unsigned turn_watch(struct turn *t, int fd, short events);
/* The gate's descriptors and deadlines; turn_wait() serves them. NULL: there is none. */
void turn_watch_gate(struct turn *t, struct gatekeeper *g);
/* Names that appear in a workspace, also those that wait to be looked at. NULL: none. */
unsigned turn_watch_names(struct turn *t, const struct newnames *n);
void turn_wake_in(struct turn *t, uint64_t ms);
void turn_wake_at(struct turn *t, uint64_t then_ms, uint64_t now_ms); /* 0: never */

/* 1: something is ready or it is time; 0: interrupted by a signal; -1 and *e. */
ERR_CHECKED int turn_wait(struct turn *t, struct err *e);
bool turn_is_ready(const struct turn *t, unsigned slot);
