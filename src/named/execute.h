#pragma once
/*
 * execute - a command in a named sandbox that runs.
 *
 * The command gets this process's own streams through the supervisor: no byte is copied, unless a
 * terminal has to be emulated or output captured (engine/streams). Its end is reported to us by
 * init itself. Detached, it goes on without us and its output is kept (named/logs).
 */
#include "base/err.h"
#include "named/execution.h"

#include <stdint.h>

/* Waits for its end. Of *ret only what one command has: no memory, no network. */
ERR_CHECKED int execute_command(const struct execute_options *o, struct run_result *ret,
				struct err *e);

/* Only starts it; `tty` STREAMS_TTY_ON gives it a terminal that can be attached to. */
ERR_CHECKED int execute_detached(const struct execute_options *o, uint32_t *ret_id, struct err *e);

/*
 * At the terminal of a detached command (id 0: the login shell, which is started if there is none)
 * until that ends or the user leaves: *ret_has_left.
 */
ERR_CHECKED int execute_attach(const struct execute_options *o, uint32_t id, struct run_result *ret,
			       bool *ret_has_left, struct err *e);
