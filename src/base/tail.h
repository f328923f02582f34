#pragma once
/*
 * tail - selects a part of an output: from an offset on, the last bytes, the last lines.
 *
 * No system calls. Lines are counted within the size of one answer: if lines are longer than that,
 * fewer are returned.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tail_range {
	bool has_offset;
	uint64_t offset;
	uint64_t length; /* maximum of bytes read */
	uint64_t bytes;  /* the last so many; 0: not requested, like the next */
	uint64_t lines;
};

/* Only one way of selecting may be used at a time. */
ERR_CHECKED int tail_check(const struct tail_range *r, struct err *e);
/* The offset and number of bytes to read, of `total`. */
void tail_find(const struct tail_range *r, uint64_t total, uint64_t *ret_offset,
	       uint64_t *ret_length);
/* The offset of the last lines in the bytes read; 0 if no lines were requested. */
size_t tail_skip(const struct tail_range *r, const char *bytes, size_t len);
