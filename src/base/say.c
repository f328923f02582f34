/* say - lines of our own on stderr; see say.h. */
#include "base/say.h"

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/shown.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void say(const char *fmt, ...)
{
	struct err words = { 0 };
	char line[ERR_MESSAGE_MAX_BYTES + 32];
	va_list args;
	int len;

	va_start(args, fmt);
	(void)vsnprintf(words.msg, sizeof(words.msg), fmt, args);
	va_end(args);
	err_sanitize(&words);
	len = snprintf(line, sizeof(line), "agentkernel: %s\n", words.msg);
	/* one write, so that lines of several processes do not mix */
	(void)file_write_all(STDERR_FILENO, line, (size_t)len);
}

void say_text(const char *text)
{
	cleanup_free char *line = mem_format("agentkernel: %s", text);
	size_t len;

	shown_replace(line);
	len = strlen(line);
	line[len] = '\n'; /* overwrites the NUL: one write of a whole line */
	(void)file_write_all(STDERR_FILENO, line, len + 1);
}
