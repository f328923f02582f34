/* events - callbacks of a running operation; see events.h. */
#include "ops/events.h"

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

void op_remark(const struct op_events *ev, const char *fmt, ...)
{
	char text[ERR_MESSAGE_MAX_BYTES];
	va_list args;

	if (!ev || !ev->remark)
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ev->remark(ev->context, text);
}

void op_remark_all(const struct op_events *ev, char *const *texts)
{
	for (; ev && ev->remark && texts && *texts; texts++)
		ev->remark(ev->context, *texts);
}

void op_command_begins(const struct op_events *ev)
{
	if (ev && ev->command_begins)
		ev->command_begins(ev->context);
}

void op_command_ended(const struct op_events *ev)
{
	if (ev && ev->command_ended)
		ev->command_ended(ev->context);
}

void op_guards_lifeline(const struct op_events *ev)
{
	if (ev && ev->guards_lifeline)
		ev->guards_lifeline(ev->context);
}
