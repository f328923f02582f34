/* test_logs - stored output is read as it was written, also while it is being written. */
#include "named/logs.h"
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 2048u /* in a chunk */
#define FLOOD_CHUNKS 40000u

struct reading {
	struct logs logs;
	uint64_t last; /* last number read */
	uint64_t wrong;
};

/* Opens the same file again: writer and reader have their own position. */
static int reopen(int fd)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The output is a sequence of numbers: within a chunk none is missing, and none is repeated. */
static void check_bytes(void *context, enum tasklog_stream stream, const char *bytes, size_t len)
{
	struct reading *r = context;
	uint64_t number = 0;

	(void)stream;
	for (size_t at = 0; at + sizeof(number) <= len; at += sizeof(number)) {
		memcpy(&number, bytes + at, sizeof(number));
		r->wrong += at == 0 ? number <= r->last : number != r->last + 1;
		r->last = number;
	}
}

static _Noreturn void flood(int first_fd, int second_fd)
{
	static uint64_t numbers[NUMBERS];
	struct tasklog log;
	uint64_t last = 0;

	tasklog_init(&log, first_fd, second_fd);
	for (unsigned i = 0; i < FLOOD_CHUNKS; i++) {
		for (unsigned n = 0; n < NUMBERS; n++)
			numbers[n] = ++last;
		tasklog_write(&log, TASKLOG_STDOUT, numbers, sizeof(numbers));
	}
	_exit(0);
}

static void a_flood_is_read_without_a_torn_byte(void **state)
{
	int fds[2] = { memfd_create("a", MFD_CLOEXEC), memfd_create("b", MFD_CLOEXEC) };
	struct reading r = { 0 };
	uint64_t skipped;
	struct err e = { 0 };
	pid_t writer;
	int status;

	(void)state;
	logs_init(&r.logs);
	r.logs.fds[0] = reopen(fds[0]);
	r.logs.fds[1] = reopen(fds[1]);
	assert_true(r.logs.fds[0] >= 0 && r.logs.fds[1] >= 0);
	writer = fork();
	if (writer == 0)
		flood(fds[0], fds[1]);
	while (waitpid(writer, &status, WNOHANG) == 0) {
		if (logs_read(&r.logs, check_bytes, &r, &skipped, &e) < 0) {
			(void)kill(writer, SIGKILL);
			(void)waitpid(writer, &status, 0);
			fail_msg("%s", e.msg);
		}
	}
	assert_int_equal(logs_read(&r.logs, check_bytes, &r, &skipped, &e), 0);
	assert_int_equal(r.wrong, 0);
	assert_int_equal(r.last, (uint64_t)FLOOD_CHUNKS * NUMBERS);
	logs_done(&r.logs);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_is_read_without_a_torn_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
