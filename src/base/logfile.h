#pragma once
/*
 * logfile - log lines of a long-running process for its operator, in a bounded file.
 *
 * A line is "2025-03-01T12:30:00.250Z [PID] words" and one write() to a file opened with O_APPEND,
 * so several processes may share one. At LOGFILE_MAX_BYTES the file is renamed to NAME.1, replacing
 * the previous one. Text that a sandbox may have chosen is escaped (base/shown). A line that cannot
 * be written is lost, and counted in the next one that can.
 */
#include <stdint.h>

#define LOGFILE_MAX_BYTES (256u << 10)
#define LOGFILE_LINE_MAX_BYTES 1024u

struct logfile {
	int dir_fd; /* borrowed */
	const char *name;
	int fd;        /* -1: not open */
	unsigned lost; /* lines since the last written one */
};

/* The first line opens the file. Borrows dir_fd and name; dir_fd -1: nothing is written. */
void logfile_init(struct logfile *l, int dir_fd, const char *name);
void logfile_done(struct logfile *l); /* may run twice */

void logfile_say(struct logfile *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
