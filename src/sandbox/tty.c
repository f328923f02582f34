/* tty - a terminal of the sandbox's own; see tty.h. */
#include "sandbox/tty.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static int send_fd(int socket_fd, int fd)
{
	union control control = { 0 };
	char byte = 'm';
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int tty_open_inside(int socket_fd, int *ret_slave_fd, struct err *e)
{
	cleanup_fd int master_fd = -1;
	cleanup_fd int slave_fd = -1;
	int unlock = 0;
	int r;

	master_fd = open("/dev/pts/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master_fd < 0)
		return err_sys(e, errno, "open a terminal");
	if (ioctl(master_fd, TIOCSPTLCK, &unlock) < 0)
		return err_sys(e, errno, "unlock the terminal");
	slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave_fd < 0)
		return err_sys(e, errno, "open the terminal's other side");
	r = send_fd(socket_fd, master_fd);
	if (r < 0)
		return err_sys(e, -r, "hand the terminal out");
	*ret_slave_fd = take_fd(&slave_fd);
	return 0;
}

int tty_receive_master(int socket_fd, int *ret_master_fd, struct err *e)
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
		return err_sys(e, errno, "receive the sandbox's terminal");
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return err_set(e, ERR_SYSTEM, "the sandbox ended before it had a terminal");
	memcpy(ret_master_fd, CMSG_DATA(header), sizeof(int));
	return 0;
}

void tty_set_raw(struct tty_mode *m, int fd)
{
	struct termios raw;

	m->is_raw = false;
	if (tcgetattr(fd, &m->saved) < 0)
		return; /* not a terminal: nothing to set, nothing to restore */
	raw = m->saved;
	cfmakeraw(&raw);
	m->fd = fd;
	m->is_raw = tcsetattr(fd, TCSADRAIN, &raw) == 0;
}

void tty_restore(struct tty_mode *m)
{
	if (m->is_raw)
		/* what a terminal answered to the command is not for the shell to read */
		(void)tcsetattr(m->fd, TCSAFLUSH, &m->saved);
	m->is_raw = false;
}

void tty_copy_size(int from_fd, int master_fd)
{
	struct winsize size;

	if (ioctl(from_fd, TIOCGWINSZ, &size) == 0)
		(void)ioctl(master_fd, TIOCSWINSZ, &size);
}
