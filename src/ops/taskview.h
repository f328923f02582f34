#pragma once
/* taskview - a command of a named sandbox as JSON, the same for every face. */
#include "base/json.h"
#include "named/tasks.h"

/*
 * Adds an object. Its exit code is 128 + N after signal N, as a shell has it; null while it runs,
 * as are `signal` and `ended_ms`. A supervisor of an older build has no argument list: then `argv`
 * is left out.
 */
void taskview_add_object(struct json *j, const struct ak *ak, const char *sandbox,
			 const struct control_task *t);
