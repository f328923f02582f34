/* follower - prints and follows log files; see follower.h. */
#include "cli/follower.h"

#include "base/cleanup.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define OUTPUT_MAX_BYTES (16u << 20)
#define INTERVAL_MS 200

void follower_init(struct follower *f, const char *path, follower_fn *fn, void *context)
{
	*f = (struct follower){ .path = path, .fn = fn, .context = context, .fd = -1 };
}

void follower_done(struct follower *f)
{
	cleanup_closep(&f->fd);
}

static void take(struct follower *f, int fd)
{
	cleanup_closep(&f->fd);
	f->fd = fd;
	f->len = 0;
	f->is_skipping = false;
}

static void show(struct follower *f, char *line, size_t len, struct buf *out)
{
	if (f->is_skipping)
		f->fn(f->context, NULL, 0, out);
	else
		f->fn(f->context, line, len, out);
	f->is_skipping = false;
}

static void cut_lines(struct follower *f, struct buf *out)
{
	size_t start = 0;
	char *end;

	while ((end = memchr(f->bytes + start, '\n', f->len - start))) {
		*end = '\0';
		show(f, f->bytes + start, (size_t)(end - f->bytes) - start, out);
		start = (size_t)(end - f->bytes) + 1;
	}
	f->len -= start;
	memmove(f->bytes, f->bytes + start, f->len);
	if (f->len < FOLLOWER_LINE_MAX_BYTES)
		return;
	f->is_skipping = true;
	f->len = 0;
}

/* Prints what can be read. Returns 1, 0 at the end, -1. */
static int print_more(struct follower *f, struct err *e)
{
	cleanup_buf struct buf out;
	ssize_t n;

	buf_init(&out, OUTPUT_MAX_BYTES);
	n = f->fd < 0 ? 0 : read(f->fd, f->bytes + f->len, FOLLOWER_LINE_MAX_BYTES - f->len);
	if (n < 0 && errno != EINTR)
		return err_sys(e, errno, "read '%s'", f->path);
	if (n <= 0)
		return n < 0;
	f->len += (size_t)n;
	cut_lines(f, &out);
	return cli_print(&out, e) < 0 ? -1 : 1;
}

/* Prints the rest of a log that nobody appends to any more. */
static int print_rest(struct follower *f, struct err *e)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, OUTPUT_MAX_BYTES);
	while ((r = print_more(f, e)) > 0)
		continue;
	if (r < 0)
		return -1;
	f->bytes[f->len] = '\0';
	if (f->len > 0 || f->is_skipping)
		show(f, f->bytes, f->len, &out);
	f->len = 0;
	return cli_print(&out, e);
}

int follower_print(struct follower *f, int fd, struct err *e)
{
	take(f, fd);
	return print_rest(f, e);
}

/* Opens the log that replaced ours, or the first one; -1: none. */
static int open_next(const struct follower *f)
{
	cleanup_fd int fd = open(f->path, O_RDONLY | O_CLOEXEC);
	struct stat ours, now;

	if (fd < 0 || fstat(fd, &now) < 0)
		return -1;
	if (f->fd >= 0 && fstat(f->fd, &ours) == 0 && ours.st_ino == now.st_ino &&
	    ours.st_dev == now.st_dev)
		return -1;
	return take_fd(&fd);
}

/* Prints the rest of the old log first, which may have grown before it was replaced. */
static int change_over(struct follower *f, struct err *e)
{
	cleanup_fd int next_fd = open_next(f);

	if (next_fd < 0)
		return 0;
	if (f->fd >= 0 && print_rest(f, e) < 0)
		return -1;
	take(f, take_fd(&next_fd));
	return 0;
}

int follower_follow(struct follower *f, int fd, struct err *e)
{
	take(f, fd);
	for (;;) {
		struct pollfd reader = { .fd = STDOUT_FILENO };
		int r = print_more(f, e);

		if (r < 0)
			return -1;
		if (r > 0)
			continue;
		if (poll(&reader, 1, INTERVAL_MS) > 0 && (reader.revents & POLLERR))
			return 0;
		if (change_over(f, e) < 0)
			return -1;
	}
}
