#pragma once
/*
 * relay - one direction of a connection: copies bytes from one socket to another.
 *
 * The owner sees all bytes first and pushes those that may be forwarded. Each of the owner's
 * functions may free the relay; those that return bool then return false.
 */
#include "base/buf.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct event_base;
struct relay;
struct throttle;

#define RELAY_READ_MAX_BYTES (256u << 10) /* per read */
#define RELAY_PENDING_MAX_BYTES                                                                    \
	(32u << 20) /* unsent, of all relays; above it, they read in small pieces */
#define RELAY_READ_SMALL_BYTES (4u << 10)
#define RELAY_PAUSE_MS 10

struct relay_owner {
	bool (*on_bytes)(struct relay *l, const uint8_t *bytes, size_t len);
	bool (*on_end)(struct relay *l);    /* nothing more will be read */
	void (*on_shut)(struct relay *l);   /* everything is sent, the other side got end-of-file */
	void (*on_broken)(struct relay *l); /* a socket has failed */
};

/* Shared by the relays of one gate. */
struct relays {
	struct event_base *base;
	const struct relay_owner *owner;
	size_t unsent_bytes; /* of all */
	struct event unpause;
	TAILQ_HEAD(, relay) paused;
	uint8_t bytes[RELAY_READ_MAX_BYTES]; /* read buffer, used by all relays in turn */
};

struct relay_options {
	void *context;
	int from_fd, to_fd; /* borrowed */
	size_t turn_max_bytes;
	size_t unsent_max_bytes; /* maximum pushed between two reads */
	struct throttle *throttle;
	uint64_t *counts[2]; /* each is increased by the bytes read */
};

struct relay {
	struct relays *all;
	struct relay_options options; /* turn_max_bytes may be changed at any time */
	bool has_ended;               /* nothing more will be read */
	bool is_shut;                 /* the other side got end-of-file */
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

/* Sends what the socket accepts, keeps the rest. Returns false if the relay was freed. */
bool relay_push(struct relay *l, const void *bytes, size_t len);
