/*
 * dialin - a connection into a sandbox; see dialin.h.
 *
 * Hostile input: requests may come from a gate that a packet took over, so init checks sizes and
 * counts, and makes nothing but a connection to the sandbox's own loopback. An answer
 * comes from init; its descriptor is used as a socket and as nothing else.
 */
#include "base/dialin.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWERS_A_TURN 64u /* init has other work too */

enum { FRAME_TARGET = 1, FRAME_ANSWER };

/* ---- outside ---- */

int dialin_ask(int dial_fd, const struct dialin_target *target, int *ret_answer_fd)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	r = frame_send_now(dial_fd, FRAME_TARGET, target, sizeof(*target), ends[1]);
	(void)close(ends[1]);
	if (r < 0)
		(void)close(ends[0]);
	else
		*ret_answer_fd = ends[0];
	return r;
}

int dialin_take(int answer_fd, int *ret_fd)
{
	struct dialin_answer answer;
	struct frame f;
	int r = frame_receive(answer_fd, FRAME_NO_WAIT, &f);

	if (r == 0)
		return -EPIPE;
	if (r < 0)
		return r;
	r = -EPROTO;
	if (f.kind == FRAME_ANSWER && f.len == sizeof(answer)) {
		memcpy(&answer, f.bytes, sizeof(answer));
		if (answer.error > 0)
			r = -answer.error;
		else if (f.fd_count == 1) {
			*ret_fd = take_fd(&f.fds[0]);
			r = 0;
		}
	}
	frame_done(&f);
	return r;
}

/* ---- inside ---- */

static socklen_t find_address(const struct dialin_target *t, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;

	*ret = (struct sockaddr_storage){ 0 };
	switch (t->family) {
	case DIALIN_IPV4:
		v4->sin_family = AF_INET;
		v4->sin_port = htons(t->port);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*v4);
	case DIALIN_IPV6:
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(t->port);
		v6->sin6_addr = in6addr_loopback;
		return sizeof(*v6);
	}
	return 0;
}

static int start_connecting(const struct dialin_target *t, int *ret_fd)
{
	struct sockaddr_storage address;
	socklen_t len = find_address(t, &address);
	cleanup_fd int fd = -1;

	if (len == 0)
		return -EINVAL;
	fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, len) < 0 && errno != EINPROGRESS)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static void answer_one(const struct frame *f)
{
	struct dialin_answer answer = { 0 };
	struct dialin_target target;
	cleanup_fd int fd = -1;

	if (f->kind != FRAME_TARGET || f->len != sizeof(target) || f->fd_count != 1)
		return;
	memcpy(&target, f->bytes, sizeof(target));
	answer.error = -start_connecting(&target, &fd);
	(void)frame_send_now(f->fds[0], FRAME_ANSWER, &answer, sizeof(answer), fd);
}

bool dialin_answer_all(int dial_fd)
{
	struct frame f;

	for (unsigned i = 0; i < ANSWERS_A_TURN; i++) {
		int r = frame_receive(dial_fd, FRAME_NO_WAIT, &f);

		if (r == 0 || r == -ECONNRESET)
			return false;
		if (r < 0 && r != -EPROTO && r != -EPROTONOSUPPORT)
			return true;
		if (r != 1)
			continue; /* garbage: the frame is gone */
		answer_one(&f);
		frame_done(&f);
	}
	return true;
}
