/* report - messages from a starting or ending command to its supervisor; see report.h. */
#include "protocol/report.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

static_assert(sizeof(struct report) <= PIPE_BUF, "two reports could mix");

/* A write error is ignored: it means that the supervisor is dead, and we will be killed soon. */
static void send_report(int report_fd, const struct report *r)
{
	(void)!write(report_fd, r, sizeof(*r));
}

void report_failed(int report_fd, const struct err *e)
{
	const struct report r = { .kind = REPORT_FAILED, .error = *e };

	send_report(report_fd, &r);
}

/*
 * A program that ran out of space rarely used the very last block, and ext4 reserves some: less
 * than a hundredth free counts as full, or less than FULL_BYTES on a small disk.
 */
#define FULL_BYTES (512u << 10)
#define FULL_PART 100u
static bool is_disk_full(void)
{
	struct statfs st;
	uint64_t least;

	if (statfs("/", &st) < 0 || st.f_bsize <= 0)
		return false;
	least = st.f_blocks / FULL_PART;
	if (least < FULL_BYTES / (uint64_t)st.f_bsize)
		least = FULL_BYTES / (uint64_t)st.f_bsize;
	return st.f_bavail <= least || (st.f_files > 0 && st.f_ffree == 0);
}

void report_ended(int report_fd, int wait_status, unsigned flags)
{
	bool has_failed = !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0;
	const struct report r = {
		.kind = REPORT_ENDED,
		.wait_status = wait_status,
		.flags = flags | (has_failed && is_disk_full() ? REPORT_DISK_FULL : 0),
	};

	send_report(report_fd, &r);
}

void report_started(int report_fd)
{
	const struct report r = { .kind = REPORT_STARTED };

	send_report(report_fd, &r);
}

void report_limit_reached(int report_fd, enum report_limit limit)
{
	const struct report r = { .kind = REPORT_LIMIT, .limit = limit };

	send_report(report_fd, &r);
}

int report_read(int report_fd, struct report *ret, struct err *e)
{
	ssize_t n;

	do
		n = read(report_fd, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n < 0)
		return err_sys(e, errno, "read the sandbox's report");
	if (n != (ssize_t)sizeof(*ret))
		return err_set(e, ERR_SYSTEM, "the sandbox left half a report");
	err_sanitize(&ret->error);
	return 1;
}
