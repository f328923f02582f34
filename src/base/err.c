/* err - one way to fail; see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CUT_MARK "..."

/* snprintf()'s answer says how long the text would have been: mark the cut. */
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

/*
 * How many bytes of UTF-8 make a character that a terminal only shows; 0 for none. Not shown but
 * obeyed are U+0080..U+009F (U+009B is "ESC [") and those that turn the direction of text.
 */
static size_t shown_length(const unsigned char *p)
{
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

	if (len == 1)
		return p[0] >= ' ' && p[0] != 0x7f;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xc2 && p[1] < 0xa0) || p[0] > 0xf4)
		return 0;
	if (p[0] == 0xe2 && ((p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae) ||
			     (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9)))
		return 0;
	return len;
}

void err_sanitize_text(char *text)
{
	for (char *p = text; *p;) {
		size_t len = shown_length((const unsigned char *)p);

		if (len == 0)
			*p = '?';
		p += len ? len : 1;
	}
}

void err_sanitize(struct err *e)
{
	if ((int)e->code <= ERR_NONE || e->code >= ERR_CODE_COUNT)
		e->code = ERR_SYSTEM;
	e->msg[sizeof(e->msg) - 1] = '\0';
	err_sanitize_text(e->msg);
}
