#pragma once
/*
 * tasktable - the supervisor's table of commands: running ones, and the last detached ones that
 * ended, with the files of their output.
 */
#include "base/buf.h"
#include "base/err.h"
#include "state/audit.h"
#include "named/control.h"

#include <stdbool.h>
#include <stdint.h>

struct order_command;

#define TASKTABLE_ENDED_MAX 32u /* kept for ps; older ones are removed with their logs */

struct task {
	struct control_task shown;
	struct control_command command;
	struct buf words; /* NUL-terminated arguments */
	bool is_service;
	uint64_t kill_at_ms;           /* 0: no pending SIGKILL */
	uint32_t asker_uid, asker_pid; /* starter of a detached command; pid 0: unknown */
	char asker_program[AUDIT_PROGRAM_MAX_BYTES];
};

struct tasktable {
	int dir_fd;        /* the sandbox's directory, borrowed */
	struct task *rows; /* in the order of their start */
	unsigned count;
};

/* NULL if there is none. */
struct task *tasktable_find(const struct tasktable *t, uint32_t id);
struct task *
tasktable_find_shell(const struct tasktable *t); /* the latest detached one with a terminal */

bool tasktable_is_alive(const struct task *task);
unsigned tasktable_count_alive(const struct tasktable *t);
unsigned tasktable_count_commands(const struct tasktable *t); /* alive, without services */

uint32_t tasktable_choose_id(const struct tasktable *t); /* an unused id */
void tasktable_add(struct tasktable *t, const struct order_command *c, char *const *argv);

/* Removes ended attached commands, and the oldest ended detached ones beyond the maximum. */
void tasktable_forget_ended(struct tasktable *t);

/* Creates the two files that take turns storing a detached command's output: protocol/tasklog. */
ERR_CHECKED int tasktable_open_log(const struct tasktable *t, uint32_t id, int ret_fds[2],
				   struct err *e);
