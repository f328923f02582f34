/* tty - a terminal of the sandbox's own; see tty.h. */
#include "host/tty.h"

#include "base/cleanup.h"
#include "base/fdpass.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

int tty_open_pair(int pts_fd, int *ret_master_fd, int *ret_slave_fd, struct err *e)
{
	cleanup_fd int master_fd = openat(pts_fd, "ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	cleanup_fd int slave_fd = -1;
	int unlock = 0;

	if (master_fd < 0)
		return err_sys(e, errno, "open a terminal");
	if (ioctl(master_fd, TIOCSPTLCK, &unlock) < 0)
		return err_sys(e, errno, "unlock the terminal");
	slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave_fd < 0)
		return err_sys(e, errno, "open the terminal's other side");
	*ret_master_fd = take_fd(&master_fd);
	*ret_slave_fd = take_fd(&slave_fd);
	return 0;
}

int tty_open_inside(int socket_fd, int *ret_slave_fd, struct err *e)
{
	cleanup_fd int pts_fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int master_fd = -1, slave_fd = -1;
	int r;

	if (pts_fd < 0)
		return err_sys(e, errno, "open /dev/pts");
	if (tty_open_pair(pts_fd, &master_fd, &slave_fd, e) < 0)
		return -1;
	/* before the command can query it; our stdin and stdout are still the caller's */
	tty_copy_size(isatty(STDIN_FILENO) ? STDIN_FILENO : STDOUT_FILENO, master_fd);
	r = fdpass_send(socket_fd, &master_fd, 1);
	if (r < 0)
		return err_sys(e, -r, "hand the terminal out");
	*ret_slave_fd = take_fd(&slave_fd);
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
		/* FLUSH: the shell must not read the terminal's replies to the command */
		(void)tcsetattr(m->fd, TCSAFLUSH, &m->saved);
	m->is_raw = false;
}

void tty_copy_size(int from_fd, int master_fd)
{
	struct winsize size;

	if (ioctl(from_fd, TIOCGWINSZ, &size) == 0)
		(void)ioctl(master_fd, TIOCSWINSZ, &size);
}
