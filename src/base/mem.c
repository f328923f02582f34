/* mem - allocation that does not fail; see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void out_of_memory(void)
{
	static const char words[] = "agentkernel: out of memory\n";

	(void)!write(STDERR_FILENO, words, sizeof(words) - 1);
	abort();
}

#define DIRECTORY_STREAM_BYTES 2072u /* musl's DIR */

void mem_hold_group(void)
{
	static void *held;

	held = malloc(DIRECTORY_STREAM_BYTES);
	(void)held; /* only an optimisation: failure is harmless */
}

void *mem_alloc(size_t size)
{
	void *block = calloc(1, size ? size : 1);

	if (!block)
		out_of_memory();
	return block;
}

void *mem_grow(void *old, size_t count, size_t size)
{
	size_t bytes;
	void *block;

	if (__builtin_mul_overflow(count, size, &bytes))
		out_of_memory();
	block = realloc(old, bytes ? bytes : 1);
	if (!block)
		out_of_memory();
	return block;
}

char *mem_dup_bytes(const char *bytes, size_t len)
{
	char *copy = mem_alloc(len + 1);

	memcpy(copy, bytes, len);
	return copy;
}

char *mem_dup(const char *text)
{
	return mem_dup_bytes(text, strlen(text));
}

char *mem_vformat(const char *fmt, va_list args)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		out_of_memory();
	return text;
}

char *mem_format(const char *fmt, ...)
{
	char *text;
	va_list args;

	va_start(args, fmt);
	text = mem_vformat(fmt, args);
	va_end(args);
	return text;
}
