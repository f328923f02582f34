#pragma once
/*
 * relay - one direction of a connection: what is read from one socket is written to another.
 *
 * The owner sees all bytes first and pushes those that may go on. Each of its functions may end the
 * relay; where that is told, it is told by false.
 */
#include "base/buf.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct event_base;
struct relay;
struct throttle;

#define RELAY_READ_MAX_BYTES (256u << 10) /* at once */
#define RELAY_PENDING_MAX_BYTES                                                                    \
	(32u << 20) /* unsent, of all relays; beyond, they get small turns                         \
		     */
#define RELAY_READ_SMALL_BYTES (4u << 10)
#define RELAY_PAUSE_MS 10

struct relay_owner {
	bool (*on_bytes)(struct relay *l, const uint8_t *bytes, size_t len);
	bool (*on_end)(struct relay *l);  /* nothing more will be read */
	void (*on_shut)(struct relay *l); /* all is sent, and the far side knows that it was all */
	void (*on_broken)(struct relay *l); /* a socket has failed */
};

/* What the relays of one gate share. */
struct relays {
	struct event_base *base;
	const struct relay_owner *owner;
	size_t unsent_bytes; /* of all */
	struct event unpause;
	TAILQ_HEAD(, relay) paused;
	uint8_t bytes[RELAY_READ_MAX_BYTES]; /* what is being read, of any relay */
};

struct relay_options {
	void *context;
	int from_fd, to_fd; /* borrowed */
	size_t turn_max_bytes;
	size_t unsent_max_bytes; /* the most that is pushed between two reads */
	struct throttle *throttle;
	uint64_t *counts[2]; /* each grows by what is read */
};

struct relay {
	struct relays *all;
	struct relay_options options; /* turn_max_bytes may be changed at any time */
	bool has_ended;               /* nothing more will be read */
	bool is_shut;                 /* and the other side knows */
	bool is_paused;               /* waits for bandwidth */
	struct buf unsent;
	size_t unsent_at;
	struct event readable, writable;
	TAILQ_ENTRY(relay) in_paused;
};

void relay_init_all(struct relays *all, struct event_base *base, const struct relay_owner *owner);
void relay_done_all(struct relays *all); /* after every relay */

void relay_open(struct relay *l, struct relays *all, const struct relay_options *o);
void relay_done(struct relay *l);

/* Sends what can be sent, keeps the rest. Returns false when the relay is gone. */
bool relay_push(struct relay *l, const void *bytes, size_t len);
