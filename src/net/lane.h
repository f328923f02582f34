#pragma once
/*
 * lane - one direction of a connection: what is read from one socket is written to another.
 *
 * The owner sees all bytes first and pushes those that may go on. Each of its functions may end the
 * lane; where that is told, it is told by false.
 */
#include "base/buf.h"

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct event_base;
struct lane;
struct throttle;

#define LANE_READ_MAX_BYTES (256u << 10) /* at once */
#define LANE_PENDING_MAX_BYTES                                                                     \
	(32u << 20) /* unsent, of all lanes; beyond, they get small turns                          \
		     */
#define LANE_READ_SMALL_BYTES (4u << 10)
#define LANE_PAUSE_MS 10

struct lane_owner {
	bool (*on_bytes)(struct lane *l, const uint8_t *bytes, size_t len);
	bool (*on_end)(struct lane *l);    /* nothing more will be read */
	void (*on_shut)(struct lane *l);   /* all is sent, and the far side knows that it was all */
	void (*on_broken)(struct lane *l); /* a socket has failed */
};

/* What the lanes of one gate share. */
struct lanes {
	struct event_base *base;
	const struct lane_owner *owner;
	size_t unsent_bytes; /* of all */
	struct event unpause;
	TAILQ_HEAD(, lane) paused;
	uint8_t bytes[LANE_READ_MAX_BYTES]; /* what is being read, of any lane */
};

struct lane_options {
	void *context;
	int from_fd, to_fd; /* borrowed */
	size_t turn_max_bytes;
	size_t unsent_max_bytes; /* the most that is pushed between two reads */
	struct throttle *throttle;
	uint64_t *counts[2]; /* each grows by what is read */
};

struct lane {
	struct lanes *all;
	struct lane_options options; /* turn_max_bytes may be changed at any time */
	bool has_ended;              /* nothing more will be read */
	bool is_shut;                /* and the other side knows */
	bool is_paused;              /* waits for bandwidth */
	struct buf unsent;
	size_t unsent_at;
	struct event readable, writable;
	TAILQ_ENTRY(lane) in_paused;
};

void lane_init_all(struct lanes *all, struct event_base *base, const struct lane_owner *owner);
void lane_done_all(struct lanes *all); /* after every lane */

void lane_open(struct lane *l, struct lanes *all, const struct lane_options *o);
void lane_done(struct lane *l);

/* Sends what can be sent, keeps the rest. Returns false when the lane is gone. */
bool lane_push(struct lane *l, const void *bytes, size_t len);
