#pragma once
/*
 * mem - allocation that does not fail.
 *
 * Running out of memory aborts, because such branches cannot be tested. This is safe because every
 * size from outside is checked against a named maximum before it gets here.
 */
#include <stdarg.h>
#include <stddef.h>

/*
 * Call once, before any other allocation. musl unmaps a group of blocks when its last block is
 * freed, and a run opens a directory now and then: each time an mmap and a munmap, which interrupts
 * the other CPUs. So one block of a DIR's size is kept allocated.
 */
void mem_hold_group(void);

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull)); /* zeroed */
void *mem_grow(void *old, size_t count, size_t size) __attribute__((returns_nonnull));
char *mem_dup(const char *text) __attribute__((malloc, returns_nonnull));
char *mem_dup_bytes(const char *bytes, size_t len) __attribute__((malloc, returns_nonnull));
char *mem_format(const char *fmt, ...)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
char *mem_vformat(const char *fmt, va_list args)
	__attribute__((malloc, returns_nonnull, format(printf, 1, 0)));
