/* test_ruling - a gate accepts complete orders, and nothing else. */
#include "unit.h"

#include "net/gatemessage.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

static const char no_order[] = "the supervisor sent an invalid message";

static void open_pair(int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static int new_rules(const char *allowed)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e;
	int fd = -1;

	egress_set_fallback(&g, EGRESS_BLOCK, "test");
	if (allowed)
		assert_int_equal(egress_add(&g, EGRESS_ALLOW, allowed, EGRESS_PATTERNS, "x", &e),
				 0);
	assert_int_equal(gatemessage_write(&g, &fd, &e), 0);
	return fd;
}

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* What a faulty supervisor could send: any bytes, any number of descriptors. */
static void send_raw(int socket_fd, const char *bytes, size_t len, const int *fds, unsigned count)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(16 * sizeof(int))];
	} control = { 0 };
	struct iovec data = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (count) {
		message.msg_control = control.room;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(socket_fd, &message, 0), (ssize_t)len);
}

static void an_order_arrives_whole(void **state)
{
	CLEANUP(gatemessage_done) struct gatemessage o = { .listen_fd = -1 };
	struct egress_decision d;
	struct err e;
	int pair[2], rules_fd = new_rules("a.example");
	unsigned before;

	(void)state;
	open_pair(pair);
	before = count_descriptors();
	assert_int_equal(gatemessage_receive(pair[1], &o, &e), 0);
	assert_int_equal(o.kind, GATEMESSAGE_NONE);
	assert_int_equal(gatemessage_send(pair[0], rules_fd, 1234567), 0);
	assert_int_equal(gatemessage_receive(pair[1], &o, &e), 0);
	assert_int_equal(o.kind, GATEMESSAGE_RULES);
	assert_int_equal(o.bandwidth_bytes_per_s, 1234567);
	egress_decide_name(&o.egress, "a.example", 443, &d);
	assert_true(d.is_allowed);
	egress_decide_name(&o.egress, "b.example", 443, &d);
	assert_false(d.is_allowed);
	assert_int_equal(count_descriptors(), before);
	(void)close(rules_fd);
	(void)close(pair[0]);
	assert_int_equal(gatemessage_receive(pair[1], &o, &e), 0);
	assert_int_equal(o.kind, GATEMESSAGE_END);
	(void)close(pair[1]);
}

static void expect_refused(const char *bytes, size_t len, const int *fds, unsigned count,
			   const char *words)
{
	CLEANUP(gatemessage_done) struct gatemessage o = { .listen_fd = -1 };
	struct err e = { 0 };
	int pair[2];
	unsigned before;

	open_pair(pair);
	before = count_descriptors();
	send_raw(pair[0], bytes, len, fds, count);
	if (gatemessage_receive(pair[1], &o, &e) == 0)
		fail_msg("'%s' with %u descriptors is taken", bytes, count);
	assert_string_equal(e.msg, words);
	assert_int_equal(e.code, ERR_CORRUPT);
	assert_int_equal(count_descriptors(), before); /* no received descriptor stays open */
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void anything_else_is_refused(void **state)
{
	static const char *const texts[] = {
		"x",
		"rules",
		"rules ",
		"rules -1",
		"rules 1 ",
		" rules 1",
		"rules 0x10",
		"rules 1099511627777",
		"Rules 1",
		"rules 99999999999999999999",
		"traffic 1 2",
		"rules 1000000000000000000000000000000000000000000000000000000000000",
	};
	int fd = new_rules(NULL);
	const int many[] = { fd, fd, fd, fd, fd, fd, fd, fd };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		expect_refused(texts[i], strlen(texts[i]), &fd, 1, no_order);
	expect_refused("rules 1\0", 8, &fd, 1, no_order);
	expect_refused("rules 1\n", 8, &fd, 1, no_order);
	expect_refused("rules 1", 7, NULL, 0, no_order);
	for (unsigned count = 2; count <= COUNT_OF(many); count++)
		expect_refused("rules 1", 7, many, count, no_order);
	(void)close(fd);
}

static void rules_must_be_sealed_memory(void **state)
{
	static const char text[] = "block\tdefault\tx\n";
	int memory_fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	FILE *file = tmpfile();
	int file_fd = fileno(file);

	(void)state;
	assert_int_equal(write(memory_fd, text, strlen(text)), (ssize_t)strlen(text));
	assert_int_equal(write(file_fd, text, strlen(text)), (ssize_t)strlen(text));
	expect_refused("rules 1", 7, &memory_fd, 1, "the network rules are not in sealed memory");
	expect_refused("rules 1", 7, &file_fd, 1, "the network rules are not in sealed memory");
	expect_refused("rules 1", 7, &null_fd, 1, "the network rules are not in sealed memory");
	assert_int_equal(fcntl(memory_fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL),
			 0);
	expect_refused("rules 1", 7, &memory_fd, 1, "the network rules are not in sealed memory");
	(void)close(memory_fd);
	(void)close(null_fd);
	(void)fclose(file);
}

static int sealed(const char *text, size_t len, size_t size)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(write(fd, text, len), (ssize_t)len);
	if (size)
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL),
		0);
	return fd;
}

static void damaged_rules_are_refused(void **state)
{
	int fds[] = {
		sealed("block\tdefault\tx\n\0", 17, 0),
		sealed("block\tdefault\tx\n", 16,
		       (size_t)1 << 40), /* and it is not read to the end */
		sealed("", 0, 0),
		sealed("block\ta.example\tx\n", 18, 0),
	};
	static const char *const words[] = {
		"the network rules are damaged",
		"the network rules are damaged",
		"network rules without a default",
		"network rules without a default",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		expect_refused("rules 1", 7, &fds[i], 1, words[i]);
		(void)close(fds[i]);
	}
}

static void written_rules_cannot_be_changed(void **state)
{
	int fd = new_rules("a.example");

	(void)state;
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_ptr_equal(mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	(void)close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_arrives_whole),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(rules_must_be_sealed_memory),
		cmocka_unit_test(damaged_rules_are_refused),
		cmocka_unit_test(written_rules_cannot_be_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
