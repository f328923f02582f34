#pragma once
/*
 * events - what an operation tells its face while it works.
 *
 * Operations never write to stderr themselves: the command line prints remarks, a worker process
 * sends them to its caller as notes. A face that has no use for one of them leaves it NULL.
 */

struct op_events {
	/* A sentence for whoever asked: something was left out, replaced or noticed. */
	void (*remark)(void *context, const char *text);
	/* From the first call to the second, standard error belongs to the command. */
	void (*command_begins)(void *context);
	void (*command_ended)(void *context);
	/*
	 * From here on the operation watches its caller itself and removes what it made when that
	 * is gone; before, a caller that is gone may end this process.
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
