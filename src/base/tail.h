#pragma once
/*
 * tail - which part of an output somebody wants: from an offset on, the last bytes, the last lines.
 *
 * Pure. Lines are counted in what one answer may hold: the last lines of an output whose lines are
 * longer than that are fewer.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tail_range {
	bool has_offset;
	uint64_t offset;
	uint64_t length; /* at most so many bytes are read */
	uint64_t bytes;  /* the last so many; 0: not asked for, as the next */
	uint64_t lines;
};

/* Only one way of choosing at a time. */
ERR_CHECKED int tail_check(const struct tail_range *r, struct err *e);
/* Where to begin reading of `total` bytes, and how many. */
void tail_find(const struct tail_range *r, uint64_t total, uint64_t *ret_offset,
	       uint64_t *ret_length);
/* Of the bytes so read: where the last lines begin; 0 where no lines were asked for. */
size_t tail_skip(const struct tail_range *r, const char *bytes, size_t len);
