#pragma once
/*
 * events - callbacks of a running operation to the command line or worker that called it.
 *
 * Operations never write to stderr themselves: the command line prints remarks, a worker process
 * sends them to its caller as notes. Callbacks may be NULL.
 */

struct op_events {
	/* A sentence for the caller: something was left out, replaced or noticed. */
	void (*remark)(void *context, const char *text);
	/* Between these calls, standard error belongs to the command. */
	void (*command_begins)(void *context);
	void (*command_ended)(void *context);
	/*
	 * From here on the operation itself checks whether its caller is gone, and then removes
	 * what it created; before, the end of the caller may end this process.
	 */
	void (*guards_lifeline)(void *context);
	void *context;
};

void op_remark(const struct op_events *ev, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void op_remark_all(const struct op_events *ev, char *const *texts); /* NULL: none */
void op_command_begins(const struct op_events *ev);
void op_command_ended(const struct op_events *ev);
void op_guards_lifeline(const struct op_events *ev);
