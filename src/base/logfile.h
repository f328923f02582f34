#pragma once
/*
 * logfile - what a process that lives long has to tell its operator: lines in a bounded file.
 *
 * A line is "2025-03-01T12:30:00.250Z [PID] words" and one write() to a file opened for appending,
 * so several processes may share one. At LOGFILE_MAX_BYTES the file becomes NAME.1, whose lines are
 * lost. Whatever a sandbox could have chosen in a line is escaped (base/shown). A line that cannot
 * be written is lost, and counted in the next one that can.
 */
#include <stdint.h>

#define LOGFILE_MAX_BYTES (256u << 10)
#define LOGFILE_LINE_MAX_BYTES 1024u

struct logfile {
	int dir_fd; /* borrowed */
	const char *name;
	int fd;        /* -1: not open */
	unsigned lost; /* lines since the last that was written */
};

/* Opened by the first line. dir_fd and name have to live as long; dir_fd -1: nothing is written. */
void logfile_init(struct logfile *l, int dir_fd, const char *name);
void logfile_done(struct logfile *l); /* may run twice */

void logfile_say(struct logfile *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
