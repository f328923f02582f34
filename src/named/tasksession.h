#pragma once
/*
 * tasksession - takes part in a detached command: its output from its log as it comes, its input.
 *
 * Any number of processes may do so at once, and join at any time with the output that was missed.
 * A reader that is too slow for the log (protocol/tasklog) loses output and is told how much.
 */
#include "base/err.h"
#include "named/logs.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

struct tasksession {
	struct logs logs;
	int watch_fd;   /* readable when the log has grown (inotify) */
	int control_fd; /* readable when the sandbox has ended */
	int input_fd; /* of the command, non-blocking: a pipe, or its terminal; -1: it takes none */
	bool has_tty;
};

void tasksession_init(struct tasksession *s);
void tasksession_done(struct tasksession *s); /* may run twice */

/* `offset`: of the first byte of output. A command that has ended has output, and no input. */
ERR_CHECKED int tasksession_open(const struct ak *ak, const char *sandbox, const char *id,
				 uint64_t offset, struct tasksession *ret, struct err *e);
/* Clears watch_fd, then reads what there is; *ret_skipped: lost bytes. */
ERR_CHECKED int tasksession_read(struct tasksession *s, logs_fn *fn, void *context,
				 uint64_t *ret_skipped, struct err *e);
void tasksession_end_input(struct tasksession *s);
void tasksession_resize(struct tasksession *s, uint16_t rows, uint16_t columns);
void tasksession_signal(struct tasksession *s, int number);
