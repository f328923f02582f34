#pragma once
/*
 * follower - prints and follows log files that others append to, and rename when full.
 *
 * Each line is passed to a function that adds its formatted text to the output. Lines of
 * FOLLOWER_LINE_MAX_BYTES or more are damaged: NULL is passed for them.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <sys/types.h>

#define FOLLOWER_LINE_MAX_BYTES (1u << 16)

/* `line` is NUL-terminated, without its newline, and may be written to. */
typedef void follower_fn(void *context, char *line, size_t len, struct buf *out);

struct follower {
	const char *path; /* path of the log, which may not exist yet */
	follower_fn *fn;
	void *context;
	int fd;           /* -1: does not exist yet */
	bool is_skipping; /* inside a line that is too long */
	size_t len;
	char bytes[FOLLOWER_LINE_MAX_BYTES + 1]; /* an incomplete line, and new bytes */
};

void follower_init(struct follower *f, const char *path, follower_fn *fn, void *context);
void follower_done(struct follower *f);

/* Prints all of fd, which it takes, also a last line without a newline. */
ERR_CHECKED int follower_print(struct follower *f, int fd, struct err *e);

/*
 * Follows fd (-1: the file that will appear at `path`) and every log that replaces it, until the
 * reader of the output closes it or a signal arrives.
 */
ERR_CHECKED int follower_follow(struct follower *f, int fd, struct err *e);
