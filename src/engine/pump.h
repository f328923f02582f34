#pragma once
/*
 * pump - copies bytes from one descriptor to another, or into a buffer.
 *
 * Used only where descriptors cannot be passed on: terminals and captured output. A pump reads
 * when it is empty and writes when it is full, one poll slot either way, so a slow reader holds
 * up the writer inside and nothing else.
 *
 * It must not block in a write: pieces are at most what a writable pipe takes whole, and other
 * destinations (terminals) are in non-blocking mode, on a descriptor of our own.
 */
#include "base/buf.h"

#include <poll.h>
#include <stdbool.h>

#define PUMP_PIECE_BYTES 4096u /* PIPE_BUF */
#define PUMP_STOP '\x1d'       /* Ctrl-] */

enum pump_flags {
	PUMP_OWNS_FROM = 1 << 0,   /* closed when nobody reads the other end any more */
	PUMP_OWNS_TO = 1 << 1,     /* end-of-file is passed on by closing it */
	PUMP_EOF_IS_BYTE = 1 << 2, /* ... or by the terminal's end-of-file character */
	PUMP_INPUT = 1 << 3,       /* into the sandbox: nothing to drain when that is gone */
	PUMP_STOPS = 1 << 4,       /* at the byte PUMP_STOP, which is not passed on */
};

struct pump {
	int from_fd;        /* -1 once it has ended */
	int to_fd;          /* -1 with a buffer, and when nobody reads it any more */
	struct buf *to_buf; /* NULL with a descriptor */
	unsigned flags;
	bool has_met_stop;
	size_t start, len; /* what waits in `piece` */
	char piece[PUMP_PIECE_BYTES];
};

void pump_init(struct pump *p, int from_fd, int to_fd, unsigned flags);
void pump_done(struct pump *p); /* closes what it owns; may run twice */

bool pump_is_open(const struct pump *p);

/* Bytes come in that nobody takes: they are dropped, so that the writer does not hang. */
bool pump_has_lost_reader(const struct pump *p);

bool pump_has_met_stop(const struct pump *p); /* PUMP_STOPS */

/* What to wait for; and what to do when it has happened. */
struct pollfd pump_poll(const struct pump *p);
void pump_on_ready(struct pump *p);

/*
 * Passes on what is left when the writer is gone. Waits for a slow reader up to `wait_ms` (-1:
 * as long as it takes), or until stop_fd becomes readable.
 */
void pump_drain(struct pump *p, int stop_fd, int wait_ms);
