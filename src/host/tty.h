#pragma once
/*
 * tty - a terminal of the sandbox's own.
 *
 * The pair is opened inside, on the sandbox's devpts, so that the command finds its terminal by
 * name; the master is sent out over a socket. The caller's terminal is never passed in: the
 * supervisor puts it into raw mode and copies bytes both ways.
 */
#include "base/err.h"

#include <stdbool.h>
#include <termios.h>

/* Inside, after the pivot: opens a pair, sends the master over socket_fd, returns the slave. */
ERR_CHECKED int tty_open_inside(int socket_fd, int *ret_slave_fd, struct err *e);

/* Opens a pair on the devpts at pts_fd; the caller closes both ends. */
ERR_CHECKED int tty_open_pair(int pts_fd, int *ret_master_fd, int *ret_slave_fd, struct err *e);

/* Puts the caller's terminal into raw mode, and restores it. */
struct tty_mode {
	bool is_raw;
	int fd;
	struct termios saved;
};
void tty_set_raw(struct tty_mode *m, int fd);
void tty_restore(struct tty_mode *m); /* may run twice */

/* Copies the window size of from_fd's terminal to the sandbox's. */
void tty_copy_size(int from_fd, int master_fd);
