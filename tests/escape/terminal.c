/* terminal - the caller's terminal, and the streams; see escape.h. */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* A terminal of our own, where only the filter refuses. */
static int open_own_terminal(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, slave;
	pid_t pid = fork(); /* a process group leader, like a case, cannot start a session */

	if (pid < 0)
		say_broken("no process: %s", errno_name(errno));
	if (pid > 0) {
		(void)waitpid(pid, NULL, 0);
		_exit(0);
	}
	if (master < 0)
		say_broken("no terminal: %s", errno_name(errno));
	(void)ioctl(master, TIOCSPTLCK, &unlock);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	if (slave < 0)
		say_broken("no terminal: %s", errno_name(errno));
	if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0)
		say_broken("the terminal is not ours: %s", errno_name(errno));
	return slave;
}

static void type_into(void)
{
	struct tally t = { 0 };

	for (int fd = 0; fd < 3 && !has_canary("outside"); fd++)
		tally_result(&t, ioctl(fd, TIOCSTI, "x"), "typing into a stream");
	tally_result(&t, ioctl(open_own_terminal(), TIOCSTI, "x"), "typing into a terminal");
	tally_say(&t);
}

static void type_with_high_bits(void)
{
	struct tally t = { 0 };
	unsigned long request = 0xdead00000000ul | TIOCSTI;

	for (int fd = 0; fd < 3 && !has_canary("outside"); fd++)
		tally_result(&t, syscall(SYS_ioctl, fd, request, "x"), "typing into a stream");
	tally_result(&t, syscall(SYS_ioctl, open_own_terminal(), request, "x"),
		     "typing into a terminal");
	tally_say(&t);
}

/* ENOTTY and EINVAL come from the terminal: the request has reached it. */
static void console_requests(void)
{
	static const struct {
		unsigned long request;
		const char *name;
	} requests[] = { { TIOCLINUX, "TIOCLINUX" },
			 { TIOCCONS, "TIOCCONS" },
			 { TIOCSETD, "TIOCSETD" } };
	struct tally t = { 0 };
	int terminal = open_own_terminal(), zero = 0;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		if (has_canary("outside") && requests[i].request == TIOCCONS)
			continue; /* it would work and redirect the console output to us */
		if (ioctl(terminal, requests[i].request, &zero) >= 0 || errno != EPERM)
			say_escaped("%s is answered: %s", requests[i].name, errno_name(errno));
		tally_error(&t, errno);
	}
	tally_say(&t);
}

static void open_callers_terminal(void)
{
	struct tally t = { 0 };
	char path[64];
	struct stat st;

	tally_result(&t, open("/dev/console", O_RDWR | O_NOCTTY), "/dev/console");
	if (!has_canary("own_terminal") && !has_canary("outside"))
		tally_result(&t, open("/dev/tty", O_RDWR), "/dev/tty");
	/* the caller's terminal is on another devpts */
	(void)snprintf(path, sizeof(path), "/dev/pts/%ld", canary_number("pts"));
	if (stat(path, &st) == 0 && (long)st.st_dev == canary_number("pts_dev"))
		say_escaped("%s is the host's", path);
	tally_add(&t, "own /dev/pts");
	tally_say(&t);
}

static void hold_callers_terminal(void)
{
	struct stat st;

	for (int fd = 0; fd < 3; fd++)
		if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
		    (long)st.st_dev == canary_number("pts_dev") && major(st.st_rdev) == 136)
			say_escaped("stream %d is the caller's terminal", fd);
	say_denied_as("none");
}

/* /proc allows to open a stream again, also in the other direction. */
static void turn_streams_round(void)
{
	struct tally t = { 0 };
	struct stat st;

	for (int fd = 0; fd < 3; fd++) {
		char path[64];
		int opened;

		if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		opened = open(path, (fd == 0 ? O_WRONLY : O_RDONLY) | O_NONBLOCK);
		tally_result(&t, opened,
			     fd == 0 ? "writing into our stdin" : "reading our output back");
	}
	if (t.count == 0)
		say_denied_as("no pipes");
	tally_say(&t);
}

/* A listener that the caller left open, which we could answer in its place. */
static void callers_listeners(void)
{
	for (int fd = 3; fd < 1024; fd++) {
		int is_listening = 0;
		socklen_t len = sizeof(is_listening);

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) == 0 &&
		    is_listening)
			say_escaped("descriptor %d takes connections of the host", fd);
	}
	say_denied_as("no listener");
}

const struct escape_case cases_terminal[] = {
	{ "TT01a", "type into the caller's terminal (TIOCSTI)",
	  "seccomp, own terminal, own session", "EPERM", type_into },
	{ "TT01b", "the same with rubbish in the argument's high half",
	  "seccomp, own terminal, own session", "EPERM", type_with_high_bits },
	{ "TT02", "paste into a console, take its output, load a line discipline", "seccomp",
	  "EPERM", console_requests },
	{ "TT03", "open the caller's terminal: /dev/tty, console, its pts", "own /dev, own session",
	  "ENOENT|ENXIO|own /dev/pts", open_callers_terminal },
	{ "TT04", "hold the caller's terminal as a stream", "own terminal", "none",
	  hold_callers_terminal },
	{ "TT06", "take connections by a listener that the caller left open", "descriptors closed",
	  "no listener", callers_listeners },
	{ "TT07", "open a stream's pipe for the other direction", "user namespace",
	  "EACCES|no pipes", turn_streams_round },
	{ 0 },
};
