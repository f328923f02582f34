#pragma once
/*
 * tasktable - the commands of a named sandbox as its supervisor knows them: those that run, and of
 * the detached ones that have ended the last few, with the files of their output.
 */
#include "base/buf.h"
#include "base/err.h"
#include "state/audit.h"
#include "named/control.h"

#include <stdbool.h>
#include <stdint.h>

struct order_command;

#define TASKTABLE_ENDED_MAX 32u /* remembered for ps; older logs are removed with them */

struct task {
	struct control_task shown;
	struct control_command command;
	struct buf words;              /* the argument list, each word ended by a NUL */
	uint64_t kill_at_ms;           /* 0: not to be killed */
	uint32_t asker_uid, asker_pid; /* of a detached one: whose act it is; pid 0: not known */
	char asker_program[AUDIT_PROGRAM_MAX_BYTES];
};

struct tasktable {
	int dir_fd;        /* the sandbox's, borrowed */
	struct task *rows; /* as they were started */
	unsigned count;
};

/* NULL: there is none. */
struct task *tasktable_find(const struct tasktable *t, uint32_t id);
struct task *tasktable_find_shell(const struct tasktable *t); /* the latest with a terminal */

bool tasktable_is_alive(const struct task *task);
unsigned tasktable_count_alive(const struct tasktable *t);

uint32_t tasktable_choose_id(const struct tasktable *t); /* one that no command has */
void tasktable_add(struct tasktable *t, const struct order_command *c, char *const *argv);

/* Attached ones are forgotten at once, of the others the oldest. */
void tasktable_forget_ended(struct tasktable *t);

/* The two files that take a detached command's output in turns: sandbox/tasklog. */
ERR_CHECKED int tasktable_open_log(const struct tasktable *t, uint32_t id, int ret_fds[2],
				   struct err *e);
