#pragma once
/* tasks - lists and signals the commands of a named sandbox. */
#include "base/err.h"
#include "named/control.h"

#include <stdbool.h>
#include <stddef.h>

struct ak;

#define TASKS_ID_MAX_BYTES 9 /* eight hexadecimal digits */

struct tasks_list {
	struct control_task *entries; /* in the order of their start */
	size_t count;
};
ERR_CHECKED int tasks_list(const struct ak *ak, const char *sandbox, struct tasks_list *ret,
			   struct err *e);
void tasks_list_done(struct tasks_list *l);

/* The arguments and the pid inside, also after the end while it is in the supervisor's table. */
struct tasks_command {
	char **argv; /* NULL-terminated */
	bool is_cut; /* arguments beyond CONTROL_WORDS_MAX_BYTES are missing */
	int pid;     /* 0: not started yet */
};
ERR_CHECKED int tasks_describe(const struct ak *ak, const char *sandbox, uint32_t id,
			       struct tasks_command *ret, struct err *e);
void tasks_command_done(struct tasks_command *c); /* may run twice, and on a zeroed struct */

void tasks_format_id(uint32_t id, char out[TASKS_ID_MAX_BYTES]);
ERR_CHECKED int tasks_parse_id(const char *text, uint32_t *ret, struct err *e);
ERR_CHECKED int tasks_kill(const struct ak *ak, const char *sandbox, uint32_t id, int number,
			   struct err *e);
/* Statistics of the whole sandbox. */
ERR_CHECKED int tasks_stats(const struct ak *ak, const char *sandbox, struct control_stats *ret,
			    struct err *e);
