/*
 * fuzz_control - bytes on a supervisor's socket: a frame with a command.
 *
 * The input is sent as one message, like a client could. An accepted command must meet init's
 * assumptions; nothing may stay open.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/frame.h"
#include "protocol/order.h"
#include "protocol/tasklog.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void check_command(const char *bytes, size_t len)
{
	CLEANUP(order_texts_done) struct order_texts t = { 0 };
	struct order_command c;
	struct err e = { 0 };

	if (order_parse_command(bytes, len, &c, &t, &e) < 0) {
		FUZZ_CHECK(e.code != ERR_NONE);
		return;
	}
	FUZZ_CHECK(t.workdir[0] == '/' && t.argv[0] && c.uid <= POLICY_ID_MAX);
	for (uint32_t i = 0; i < c.argc; i++)
		FUZZ_CHECK(t.argv[i]);
	FUZZ_CHECK(!t.argv[c.argc] && !t.envp[c.envc]);
}

static void check_log(const char *bytes, size_t len)
{
	struct tasklog_chunk chunk;
	size_t at = 0, size = 0;

	while (tasklog_read_chunk(bytes, len, at, &chunk, &size) == 1) {
		FUZZ_CHECK(size >= sizeof(chunk) && at + size <= len);
		at += size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame f;
	int ends[2];

	check_command((const char *)data, size);
	check_log((const char *)data, size);
	if (size == 0 || size > 65536 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) < 0)
		return 0;
	if (send(ends[0], data, size, MSG_DONTWAIT) == (ssize_t)size &&
	    frame_receive(ends[1], FRAME_NO_WAIT, &f) == 1) {
		FUZZ_CHECK(f.len <= size && f.fd_count == 0);
		check_command(f.bytes, f.len);
		frame_done(&f);
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	return 0;
}
