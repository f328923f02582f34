#pragma once
/*
 * tty - a terminal of the sandbox's own.
 *
 * The pair is made inside, on the sandbox's devpts, so that the command finds its terminal by
 * name there; the master travels out over a socket. The caller's terminal is never passed in:
 * the supervisor puts it into raw mode and copies bytes both ways.
 */
#include "base/err.h"

#include <stdbool.h>
#include <termios.h>

/* Inside, after the pivot: makes a pair, sends the master through socket_fd, gives the slave. */
ERR_CHECKED int tty_open_inside(int socket_fd, int *ret_slave_fd, struct err *e);

/* As above, on the devpts at pts_fd; both ends are the caller's to close. */
ERR_CHECKED int tty_open_pair(int pts_fd, int *ret_master_fd, int *ret_slave_fd, struct err *e);

/* The caller's terminal in raw mode, and back. */
struct tty_mode {
	bool is_raw;
	int fd;
	struct termios saved;
};
void tty_set_raw(struct tty_mode *m, int fd);
void tty_restore(struct tty_mode *m); /* may run twice */

/* Gives the sandbox's terminal the size of the caller's. */
void tty_copy_size(int from_fd, int master_fd);
