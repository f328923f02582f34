/* err - error codes and messages; see err.h. */
#include "base/err.h"

#include "base/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CUT_MARK "..."

/* `wanted` is the length that snprintf() would have needed: marks a truncated message. */
static void mark_cut(struct err *e, size_t wanted)
{
	if (wanted >= sizeof(e->msg))
		memcpy(e->msg + sizeof(e->msg) - sizeof(CUT_MARK), CUT_MARK, sizeof(CUT_MARK));
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list args;
	int len;

	e->code = code;
	e->sys = 0;
	va_start(args, fmt);
	len = vsnprintf(e->msg, sizeof(e->msg), fmt, args);
	va_end(args);
	mark_cut(e, len < 0 ? 0 : (size_t)len);
	return -1;
}

int err_sys(struct err *e, int sys, const char *fmt, ...)
{
	size_t used;
	va_list args;
	int len;

	e->code = ERR_SYSTEM;
	e->sys = sys;
	va_start(args, fmt);
	len = vsnprintf(e->msg, sizeof(e->msg), fmt, args);
	va_end(args);
	mark_cut(e, len < 0 ? 0 : (size_t)len);

	used = strlen(e->msg);
	len = snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", strerror(sys));
	mark_cut(e, used + (len < 0 ? 0 : (size_t)len));
	return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char inner[sizeof(e->msg)];
	size_t used;
	va_list args;
	int len;

	memcpy(inner, e->msg, sizeof(inner));
	va_start(args, fmt);
	len = vsnprintf(e->msg, sizeof(e->msg), fmt, args);
	va_end(args);
	mark_cut(e, len < 0 ? 0 : (size_t)len);

	used = strlen(e->msg);
	len = snprintf(e->msg + used, sizeof(e->msg) - used, ": %s", inner);
	mark_cut(e, used + (len < 0 ? 0 : (size_t)len));
	return -1;
}

void err_sanitize(struct err *e)
{
	if ((int)e->code <= ERR_NONE || e->code >= ERR_CODE_COUNT)
		e->code = ERR_SYSTEM;
	e->msg[sizeof(e->msg) - 1] = '\0';
	shown_replace(e->msg);
}
