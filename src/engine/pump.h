#pragma once
/*
 * pump - copies bytes from one descriptor to another, or into a buffer.
 *
 * Used only if descriptors cannot be passed to the command: for terminals and captured output. A
 * pump reads when it is empty and writes when it is full, with one poll slot, so a slow reader
 * blocks only the writer inside.
 *
 * A write must not block: a piece fits into any writable pipe, and other destinations (terminals)
 * are in non-blocking mode, on a descriptor of our own.
 */
#include "base/buf.h"

#include <poll.h>
#include <stdbool.h>

#define PUMP_PIECE_BYTES 4096u /* PIPE_BUF */
#define PUMP_STOP '\x1d'       /* Ctrl-] */

enum pump_flags {
	PUMP_OWNS_FROM = 1 << 0,   /* closed when the destination has no reader */
	PUMP_OWNS_TO = 1 << 1,     /* closed at end of file */
	PUMP_EOF_IS_BYTE = 1 << 2, /* sends the terminal's EOF character at end of file */
	PUMP_INPUT = 1 << 3,       /* into the sandbox: not drained at its end */
	PUMP_STOPS = 1 << 4,       /* at the byte PUMP_STOP, which is dropped */
};

struct pump {
	int from_fd;        /* -1 after end of file */
	int to_fd;          /* -1 with a buffer, or without a reader */
	struct buf *to_buf; /* NULL with a descriptor */
	unsigned flags;
	bool has_met_stop;
	size_t start, len; /* unwritten part of `piece` */
	char piece[PUMP_PIECE_BYTES];
};

void pump_init(struct pump *p, int from_fd, int to_fd, unsigned flags);
void pump_done(struct pump *p); /* closes what it owns; may run twice */

bool pump_is_open(const struct pump *p);

/* True if bytes arrive that nobody reads: they are dropped, so that the writer does not block. */
bool pump_has_lost_reader(const struct pump *p);

bool pump_has_met_stop(const struct pump *p); /* PUMP_STOPS */

/* The event to poll for, and its handler. */
struct pollfd pump_poll(const struct pump *p);
void pump_on_ready(struct pump *p);

/*
 * Copies what is left after the writer ended. Waits for a slow reader up to `wait_ms` (-1: no
 * limit), or until stop_fd becomes readable.
 */
void pump_drain(struct pump *p, int stop_fd, int wait_ms);
