/* streams - the command's stdin, stdout and stderr; see streams.h. */
#include "engine/streams.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "host/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PIPEFS_MAGIC 0x50495045

static struct pump *add_pump(struct streams *s, int from_fd, int to_fd, unsigned flags)
{
	struct pump *p = &s->pumps[s->pump_count++];

	pump_init(p, from_fd, to_fd, flags);
	return p;
}

/*
 * Opens a terminal again for non-blocking writes, because the caller's descriptor shares its mode
 * with the caller. -1 if it may not be opened (after su), or is no terminal.
 */
static int open_nonblocking(int stream)
{
	char path[32];

	if (!isatty(stream))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", stream);
	return open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* Writes to the caller's stream, through our own descriptor if possible. */
static struct pump *add_output_pump(struct streams *s, int from_fd, int stream, unsigned flags)
{
	int own_fd = open_nonblocking(stream);

	if (own_fd >= 0)
		return add_pump(s, from_fd, own_fd, flags | PUMP_OWNS_TO);
	return add_pump(s, from_fd, stream, flags);
}

static void give(struct streams *s, int stream, int fd)
{
	s->command_fd[stream] = fd;
	s->owned_fd[stream] = fd;
}

/* The command writes into a pipe, which a pump reads. */
static int open_output_pipe(struct streams *s, int stream, struct buf *to_buf, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe for stream %d", stream);
	give(s, stream, ends[1]);
	if (to_buf)
		add_pump(s, ends[0], -1, PUMP_OWNS_FROM)->to_buf = to_buf;
	else
		(void)add_output_pump(s, ends[0], stream, PUMP_OWNS_FROM);
	return 0;
}

static int open_input_pipe(struct streams *s, struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe for stdin");
	give(s, STDIN_FILENO, ends[0]);
	(void)add_pump(s, STDIN_FILENO, ends[1], PUMP_OWNS_TO | PUMP_INPUT);
	return 0;
}

void streams_init(struct streams *s)
{
	s->has_tty = s->is_captured = s->can_leave = false;
	s->pump_count = 0;
	s->mode.is_raw = false;
	for (int stream = 0; stream < 3; stream++) {
		s->command_fd[stream] = stream;
		s->owned_fd[stream] = -1;
		s->loans[stream].path_fd = -1;
	}
	for (int i = 0; i < 2; i++)
		buf_init(&s->captured[i], STREAMS_CAPTURE_MAX_BYTES);
}

/* Refuses a directory, because ".." leads out of the root. A closed stream is none. */
static int check_no_directory(int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return errno == EBADF ? 0 : err_sys(e, errno, "look at stream %d", fd);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "stream %d is a directory", fd);
	return 0;
}

/* True also if fstat() fails. */
static bool is_plain_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? S_ISREG(st.st_mode) : errno != EBADF;
}

int streams_open(struct streams *s, enum streams_tty tty, unsigned flags, struct err *e)
{
	bool is_captured = flags & STREAMS_CAPTURED;
	bool is_terminal[3];

	s->is_captured = is_captured;
	s->can_leave = flags & STREAMS_CAN_LEAVE;
	for (int stream = 0; stream < 3; stream++) {
		if (check_no_directory(stream, e) < 0)
			return -1;
		is_terminal[stream] = isatty(stream) && wall_stands(WALL_OWN_TERMINAL);
	}
	s->has_tty = tty == STREAMS_TTY_ON ||
		     (tty == STREAMS_TTY_AUTO && is_terminal[0] && is_terminal[1] && !is_captured);
	if (s->has_tty)
		return 0;
	for (int stream = 0; stream < 3 && flags & STREAMS_NO_FILES; stream++)
		is_terminal[stream] = is_terminal[stream] || is_plain_file(stream);
	if (is_terminal[0] && open_input_pipe(s, e) < 0)
		return -1;
	for (int stream = 1; stream < 3; stream++) {
		if (is_captured && open_output_pipe(s, stream, &s->captured[stream - 1], e) < 0)
			return -1;
		if (!is_captured && is_terminal[stream] && open_output_pipe(s, stream, NULL, e) < 0)
			return -1;
	}
	return 0;
}

/* With a terminal, captured output is what the terminal shows: one stream. */
static void start_terminal(struct streams *s, int master_fd)
{
	unsigned flags =
		(isatty(STDIN_FILENO) ? 0 : PUMP_EOF_IS_BYTE) | (s->can_leave ? PUMP_STOPS : 0);

	tty_set_raw(&s->mode, STDIN_FILENO);
	(void)fcntl(master_fd, F_SETFL, O_RDWR | O_NONBLOCK);
	(void)add_pump(s, STDIN_FILENO, master_fd, flags | PUMP_INPUT);
	if (s->is_captured)
		add_pump(s, master_fd, -1, 0)->to_buf = &s->captured[0];
	else
		(void)add_output_pump(s, master_fd, STDOUT_FILENO, 0);
}

void streams_started(struct streams *s, int tty_master_fd)
{
	for (int stream = 0; stream < 3; stream++)
		cleanup_closep(&s->owned_fd[stream]);
	if (s->has_tty) {
		start_terminal(s, tty_master_fd);
		return;
	}
	/*
	 * From here on only the command has the passed streams: when it closes its stdout, the
	 * reader sees end of file. stderr stays open for our messages. /dev/null keeps the numbers
	 * occupied, so that nothing opened later gets them.
	 */
	for (int stream = 0; stream < 2; stream++) {
		int null_fd;

		if (s->command_fd[stream] != stream)
			continue;
		null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null_fd < 0)
			continue;
		(void)dup2(null_fd, stream);
		(void)close(null_fd);
	}
}

static bool is_anonymous_pipe(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC;
}

void streams_lend_pipes(struct streams *s, gid_t gid)
{
	for (int stream = 0; stream < 3; stream++) {
		struct streams_loan *loan = &s->loans[stream];
		mode_t way = stream == STDIN_FILENO ? S_IRGRP : S_IWGRP;
		int fd = s->command_fd[stream];
		char path[32];
		struct stat st;

		if (s->has_tty || !is_anonymous_pipe(fd) || fstat(fd, &st) < 0)
			continue;
		/* lent already, by a concurrent run or for another stream */
		if (st.st_gid >= IDMAP_FIRST_ID)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		loan->path_fd = open(path, O_PATH | O_CLOEXEC);
		loan->gid = st.st_gid;
		loan->mode = st.st_mode & 07777;
		/* if this fails, only opening by name fails */
		if (loan->path_fd >= 0 && fchown(fd, (uid_t)-1, gid) == 0)
			(void)fchmod(fd, (loan->mode & ~(mode_t)S_IRWXG) | way);
	}
}

static void return_pipes(struct streams *s)
{
	for (int stream = 2; stream >= 0; stream--) {
		struct streams_loan *loan = &s->loans[stream];
		char path[32];

		if (loan->path_fd < 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", loan->path_fd);
		(void)chown(path, (uid_t)-1, loan->gid);
		(void)chmod(path, loan->mode);
		cleanup_closep(&loan->path_fd);
	}
}

void streams_done(struct streams *s)
{
	tty_restore(&s->mode);
	return_pipes(s);
	for (int stream = 0; stream < 3; stream++)
		cleanup_closep(&s->owned_fd[stream]);
	for (unsigned i = 0; i < s->pump_count; i++)
		pump_done(&s->pumps[i]);
	for (int i = 0; i < 2; i++)
		buf_done(&s->captured[i]);
	s->pump_count = 0;
}
