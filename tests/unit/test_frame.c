/* Messages between our processes: frames, orders to init, the logs of detached commands. */
#include "base/frame.h"
#include "base/mem.h"
#include "protocol/order.h"
#include "protocol/tasklog.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void open_pair(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
}

static void close_pair(const int ends[2])
{
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void bytes_and_descriptors_arrive(void **state)
{
	int ends[2], pipe_ends[2], before;
	struct frame f;
	char byte = 0;

	(void)state;
	open_pair(ends);
	assert_int_equal(pipe(pipe_ends), 0);
	before = count_descriptors();
	assert_int_equal(frame_send(ends[0], 7, "hello", 5, pipe_ends, 2), 0);
	assert_int_equal(frame_receive(ends[1], FRAME_WAIT, &f), 1);
	assert_int_equal(f.kind, 7);
	assert_int_equal(f.len, 5);
	assert_string_equal(f.bytes, "hello");
	assert_int_equal(f.fd_count, 2);
	assert_int_equal(write(f.fds[1], "x", 1), 1);
	assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
	assert_true(fcntl(f.fds[0], F_GETFD) & FD_CLOEXEC);
	frame_done(&f);
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(frame_receive(ends[1], FRAME_NO_WAIT, &f), -EAGAIN);
	(void)close(ends[0]);
	assert_int_equal(frame_receive(ends[1], FRAME_WAIT, &f), 0);
	assert_int_equal(frame_send(ends[1], 1, NULL, 0, NULL, 0), -EPIPE);
	(void)close(ends[1]);
	(void)close(pipe_ends[0]);
	(void)close(pipe_ends[1]);
}

static void a_large_body_arrives_too(void **state)
{
	size_t len = FRAME_BODY_MAX_BYTES;
	cleanup_free char *body = mem_alloc(len);
	int ends[2], before;
	struct frame f;

	(void)state;
	memset(body, 'x', len);
	body[len - 1] = 'y';
	open_pair(ends);
	before = count_descriptors();
	assert_int_equal(frame_send(ends[0], 1, body, len, &ends[1], 1), 0);
	assert_int_equal(frame_receive(ends[1], FRAME_WAIT, &f), 1);
	assert_int_equal(f.len, len);
	assert_memory_equal(f.bytes, body, len);
	assert_int_equal(f.fd_count, 1);
	frame_done(&f);
	assert_int_equal(count_descriptors(), before);
	assert_int_equal(frame_send(ends[0], 1, body, len + 1, NULL, 0), -EMSGSIZE);
	close_pair(ends);
}

/* The header as frame.c writes it. */
struct raw {
	uint32_t magic;
	uint16_t version, is_in_file;
	uint32_t kind, len;
	char body[8];
};

static int feed(const void *bytes, size_t len, const int *fds, unsigned count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(16 * sizeof(int))];
	} control = { 0 };
	struct iovec data = { (void *)bytes, len };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	struct frame f = { 0 };
	int ends[2], before, r;

	open_pair(ends);
	if (count) {
		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	before = count_descriptors();
	assert_true(sendmsg(ends[0], &message, 0) >= 0);
	r = frame_receive(ends[1], FRAME_WAIT, &f);
	if (r == 1)
		frame_done(&f);
	assert_int_equal(count_descriptors(), before);
	close_pair(ends);
	return r;
}

static void garbage_is_refused_and_leaks_nothing(void **state)
{
	struct raw good = { 0x6b666b61u, FRAME_VERSION, 0, 1, 8, "12345678" };
	int fds[12], unsealed = memfd_create("unsealed", 0);
	struct raw bad;

	(void)state;
	assert_true(unsealed >= 0);
	for (unsigned i = 0; i < COUNT_OF(fds); i++)
		fds[i] = unsealed;
	assert_int_equal(feed(&good, sizeof(good), NULL, 0), 1);
	assert_int_equal(feed(&good, sizeof(good) - 1, NULL, 0), -EPROTO);
	assert_int_equal(feed(&good, 3, NULL, 0), -EPROTO);
	assert_int_equal(feed("garbage garbage garbage", 23, NULL, 0), -EPROTO);
	bad = good;
	bad.version = FRAME_VERSION + 1;
	assert_int_equal(feed(&bad, sizeof(bad), NULL, 0), -EPROTONOSUPPORT);
	bad = good;
	bad.len = UINT32_MAX;
	assert_int_equal(feed(&bad, sizeof(bad), NULL, 0), -EPROTO);
	/* a body in a file that is missing, not sealed, or of another size */
	bad = good;
	bad.is_in_file = 1;
	assert_int_equal(feed(&bad, 16, NULL, 0), -EPROTO);
	assert_int_equal(feed(&bad, 16, fds, 1), -EPROTO);
	assert_int_equal(feed(&good, sizeof(good), fds, 12), -EPROTO);
	(void)close(unsealed);
}

static void a_command_comes_back(void **state)
{
	char *argv[] = { (char *)"ls", (char *)"", (char *)"-l", NULL };
	char *envp[] = { (char *)"A=1", NULL };
	const struct order_command c = { .id = 9,
					 .flags = ORDER_TTY,
					 .uid = 5,
					 .gid = 6,
					 .group_count = 1,
					 .groups = { 7 },
					 .timeout_ms = 8 };
	CLEANUP(order_texts_done) struct order_texts texts = { 0 };
	struct order_command back;
	cleanup_buf struct buf out;
	struct err e = { 0 };

	(void)state;
	buf_init(&out, 4096);
	order_format_command(&c, "/work", argv, envp, &out);
	assert_int_equal(order_parse_command(out.bytes, out.len, &back, &texts, &e), 0);
	assert_int_equal(back.id, 9);
	assert_string_equal(texts.workdir, "/work");
	assert_string_equal(texts.argv[1], "");
	assert_string_equal(texts.argv[2], "-l");
	assert_null(texts.argv[3]);
	assert_string_equal(texts.envp[0], "A=1");
	assert_null(texts.envp[1]);
}

static int parse_changed(const struct buf *good, size_t len, void (*change)(struct order_command *))
{
	CLEANUP(order_texts_done) struct order_texts texts = { 0 };
	cleanup_free char *bytes = mem_dup_bytes(good->bytes, good->len);
	struct order_command c;
	struct err e = { 0 };

	if (change) {
		memcpy(&c, bytes, sizeof(c));
		change(&c);
		memcpy(bytes, &c, sizeof(c));
	}
	return order_parse_command(bytes, len, &c, &texts, &e);
}

static void more_words(struct order_command *c)
{
	c->argc++;
}
static void fewer_words(struct order_command *c)
{
	c->envc--;
}
static void many_words(struct order_command *c)
{
	c->argc = UINT32_MAX;
}
static void many_groups(struct order_command *c)
{
	c->group_count = POLICY_GROUPS_MAX + 1;
}
static void high_user(struct order_command *c)
{
	c->uid = POLICY_ID_MAX + 1;
}
static void high_group(struct order_command *c)
{
	c->groups[0] = UINT32_MAX;
}
static void no_words(struct order_command *c)
{
	c->argc = 0;
	c->envc = 2;
}

static void a_command_that_makes_no_sense_is_refused(void **state)
{
	char *argv[] = { (char *)"ls", NULL };
	char *envp[] = { (char *)"A=1", NULL };
	const struct order_command c = { .group_count = 1 };
	cleanup_buf struct buf out;
	cleanup_buf struct buf relative;

	(void)state;
	buf_init(&out, 4096);
	buf_init(&relative, 4096);
	order_format_command(&c, "/", argv, envp, &out);
	assert_int_equal(parse_changed(&out, out.len, NULL), 0);
	for (size_t len = 0; len < out.len; len++)
		assert_int_equal(parse_changed(&out, len, NULL), -1);
	assert_int_equal(parse_changed(&out, out.len, more_words), -1);
	assert_int_equal(parse_changed(&out, out.len, fewer_words), -1);
	assert_int_equal(parse_changed(&out, out.len, many_words), -1);
	assert_int_equal(parse_changed(&out, out.len, many_groups), -1);
	assert_int_equal(parse_changed(&out, out.len, high_user), -1);
	assert_int_equal(parse_changed(&out, out.len, high_group), -1);
	assert_int_equal(parse_changed(&out, out.len, no_words), -1);
	order_format_command(&c, "relative", argv, envp, &relative);
	assert_int_equal(parse_changed(&relative, relative.len, NULL), -1);
}

static size_t read_log(int fd, uint64_t *ret_first, uint64_t *ret_end)
{
	char *bytes = mem_alloc(2u * TASKLOG_FILE_MAX_BYTES);
	ssize_t len = pread(fd, bytes, 2u * TASKLOG_FILE_MAX_BYTES, 0);
	struct tasklog_chunk chunk;
	size_t at = 0, size = 0, count = 0;

	while (tasklog_read_chunk(bytes, (size_t)len, at, &chunk, &size) == 1) {
		if (count++ == 0)
			*ret_first = chunk.offset;
		*ret_end = chunk.offset + chunk.len;
		at += size;
	}
	assert_int_equal(at, len);
	free(bytes);
	return count;
}

static void a_log_keeps_the_last_bytes_and_no_more(void **state)
{
	int fds[2] = { memfd_create("a", 0), memfd_create("b", 0) };
	uint64_t first[2] = { 0 }, end[2] = { 0 }, total = 10u << 20;
	struct tasklog_end last = { 7, 0 };
	struct tasklog l;
	char piece[5000];

	(void)state;
	memset(piece, 'p', sizeof(piece));
	tasklog_init(&l, dup(fds[0]), dup(fds[1]));
	for (uint64_t done = 0; done < total; done += sizeof(piece))
		tasklog_write(&l, TASKLOG_STDOUT, piece, sizeof(piece));
	total = l.offset;
	tasklog_write(&l, TASKLOG_END, &last, sizeof(last));
	tasklog_done(&l);
	for (int i = 0; i < 2; i++) {
		assert_true(lseek(fds[i], 0, SEEK_END) <= (off_t)TASKLOG_FILE_MAX_BYTES);
		assert_true(read_log(fds[i], &first[i], &end[i]) > 0);
	}
	/* contiguous up to the end */
	assert_true(end[0] == first[1] || end[1] == first[0]);
	assert_true((end[0] > end[1] ? end[0] : end[1]) >= total);
	assert_true(total - (first[0] < first[1] ? first[0] : first[1]) >=
		    TASKLOG_FILE_MAX_BYTES / 2);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_descriptors_arrive),
		cmocka_unit_test(a_large_body_arrives_too),
		cmocka_unit_test(garbage_is_refused_and_leaks_nothing),
		cmocka_unit_test(a_command_comes_back),
		cmocka_unit_test(a_command_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_log_keeps_the_last_bytes_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
