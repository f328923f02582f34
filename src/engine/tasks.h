#pragma once
/* tasks - the commands of a named sandbox: which there are, and signals for them. */
#include "base/err.h"
#include "engine/control.h"

#include <stddef.h>

#define TASKS_ID_MAX_BYTES 9 /* eight hexadecimal digits */

struct tasks_list {
	struct control_task *entries; /* as they were started */
	size_t count;
};
ERR_CHECKED int tasks_list(char *const *environ_list, const char *sandbox, struct tasks_list *ret,
			   struct err *e);
void tasks_list_done(struct tasks_list *l);

ERR_CHECKED int tasks_parse_id(const char *text, uint32_t *ret, struct err *e);
ERR_CHECKED int tasks_kill(char *const *environ_list, const char *sandbox, uint32_t id, int number,
			   struct err *e);
/* Figures of the whole sandbox. */
ERR_CHECKED int tasks_stats(char *const *environ_list, const char *sandbox,
			    struct control_stats *ret, struct err *e);
