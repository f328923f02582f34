#pragma once
/*
 * follower - logs of lines that others append to and move away when they are full.
 *
 * A line is shown to a function that adds to the output what people shall see of it. Lines of
 * FOLLOWER_LINE_MAX_BYTES or more are no lines of ours: they are shown as NULL.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define FOLLOWER_LINE_MAX_BYTES (1u << 16)

/* `line` is NUL-terminated, without its newline, and may be written to. */
typedef void follower_fn(void *context, char *line, size_t len, struct buf *out);

struct follower {
	const char *path; /* where the log is, or will be */
	follower_fn *fn;
	void *context;
	int fd;           /* -1: not there yet */
	bool is_skipping; /* the rest of a line that is too long */
	size_t len;
	char bytes[FOLLOWER_LINE_MAX_BYTES +
		   1]; /* a line that is not whole yet, and what was read */
};

void follower_init(struct follower *f, const char *path, follower_fn *fn, void *context);
void follower_done(struct follower *f);

/* All there is in fd, which becomes the follower's; also a last line without its end. */
ERR_CHECKED int follower_print(struct follower *f, int fd, struct err *e);

/*
 * Goes on with fd (-1: with what comes to be at `path`), through every log that takes its place,
 * until the reader of the output goes away or a signal comes.
 */
ERR_CHECKED int follower_follow(struct follower *f, int fd, struct err *e);
