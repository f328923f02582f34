#pragma once
/*
 * pump - copies bytes from one descriptor to another, or into a buffer, without ever blocking.
 *
 * Used only where descriptors cannot be passed on: terminals and captured output. A pump reads
 * when it is empty and writes when it is full, one poll slot either way, in pieces small enough
 * that a writable pipe takes them whole; the caller's descriptors stay in blocking mode.
 */
#include "base/buf.h"

#include <poll.h>
#include <stdbool.h>

#define PUMP_PIECE_BYTES 4096u

enum pump_flags {
	PUMP_CLOSES_TO = 1 << 0,   /* end-of-file is passed on by closing to_fd */
	PUMP_EOF_IS_BYTE = 1 << 1, /* ... or by the terminal's end-of-file character */
};

struct pump {
	int from_fd;	    /* -1 once it has ended */
	int to_fd;	    /* -1 with a buffer */
	struct buf *to_buf; /* NULL with a descriptor */
	unsigned flags;
	size_t start, len; /* what waits in `piece` */
	char piece[PUMP_PIECE_BYTES];
};

bool pump_is_open(const struct pump *p);

/* What to wait for; and what to do when it has happened. */
struct pollfd pump_poll(const struct pump *p);
void pump_on_ready(struct pump *p);

/* Reads what is left without waiting for more; for the end of a sandbox. */
void pump_drain(struct pump *p);
