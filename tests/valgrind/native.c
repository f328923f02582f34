/*
 * native FD CALL ARG... - makes one system call that valgrind does not know, for
 * tests/valgrind/preload.c: sends its result to the socket FD, together with the descriptor if it
 * is one.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void send_result(int socket_fd, long result, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { &result, sizeof(result) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		message.msg_control = space;
		message.msg_controllen = sizeof(space);
		c = CMSG_FIRSTHDR(&message);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		(void)memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	(void)sendmsg(socket_fd, &message, MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
	long result = -1;

	errno = EINVAL;
	if (argc == 8 && strcmp(argv[2], "openat2") == 0) {
		const struct open_how how = { .flags = strtoull(argv[5], NULL, 10),
					      .mode = strtoull(argv[6], NULL, 10),
					      .resolve = strtoull(argv[7], NULL, 10) };

		result = syscall(SYS_openat2, atoi(argv[3]), argv[4], &how, sizeof(how));
	} else if (argc == 5 && strcmp(argv[2], "pidfd_open") == 0) {
		result = syscall(SYS_pidfd_open, atoi(argv[3]), atoi(argv[4]));
	} else if (argc == 5 && strcmp(argv[2], "pidfd_send_signal") == 0) {
		result = syscall(SYS_pidfd_send_signal, atoi(argv[3]), atoi(argv[4]), NULL, 0);
		send_result(atoi(argv[1]), result < 0 ? -errno : result, -1);
		return 0;
	}
	send_result(atoi(argv[1]), result < 0 ? -errno : 0, (int)result);
	return 0;
}
