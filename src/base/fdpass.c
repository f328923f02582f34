/* fdpass - passes descriptors over a unix socket; see fdpass.h. */
#include "base/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(FDPASS_MAX * sizeof(int))];
};

int fdpass_send(int socket_fd, const int *fds, unsigned count)
{
	union control control = { 0 };
	char byte = 'd';
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int fdpass_receive(int socket_fd, int ret_fds[FDPASS_MAX], unsigned *ret_count)
{
	union control control = { 0 };
	char byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *header;

	if (recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len < CMSG_LEN(sizeof(int)))
		return -EPIPE;
	*ret_count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(ret_fds, CMSG_DATA(header), *ret_count * sizeof(int));
	return 0;
}

/*
 * Sends the descriptor into a socket together with that socket itself. After we close ours nobody
 * can receive them, and the kernel's garbage collector for such cycles closes them asynchronously.
 */
void fdpass_close_later(int *fd)
{
	int ends[2];

	if (*fd < 0)
		return;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) < 0)
		ends[0] = ends[1] = -1;
	else
		(void)fdpass_send(ends[0], (const int[]){ *fd, ends[1] }, 2);
	(void)close(*fd); /* first: closing the socket starts the collector */
	*fd = -1;
	if (ends[0] >= 0) {
		(void)close(ends[1]);
		(void)close(ends[0]);
	}
}
