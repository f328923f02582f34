#pragma once
/*
 * execute - runs a command in a running named sandbox.
 *
 * The command gets this process's own streams through the supervisor: no byte is copied, unless a
 * terminal has to be emulated or output captured (engine/streams). The sandbox's init reports the
 * command's end to us. A detached command continues without us, and named/logs stores its output.
 */
#include "base/err.h"
#include "named/execution.h"

#include <stdint.h>

/* Waits until the command ends. *ret has only the fields of one command: no memory, no network. */
ERR_CHECKED int execute_command(const struct execute_options *o, struct run_result *ret,
				struct err *e);

/* Only starts the command; `tty` STREAMS_TTY_ON gives it a terminal for execute_attach(). */
ERR_CHECKED int execute_detached(const struct execute_options *o, uint32_t *ret_id, struct err *e);

/*
 * Attaches to the terminal of a detached command (id 0: the login shell, started if there is none)
 * until the command ends or the user detaches (*ret_has_left).
 */
ERR_CHECKED int execute_attach(const struct execute_options *o, uint32_t id, struct run_result *ret,
			       bool *ret_has_left, struct err *e);
