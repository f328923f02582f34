#pragma once
/*
 * pace - keeps work at a rate of bytes per second by sleeping.
 *
 * Bytes may be counted without a wait, where waiting would do harm; a later pace_wait() makes up
 * for them. Time that was not used is not saved for later.
 */
#include <stdint.h>

struct pace {
	uint64_t bytes_per_s; /* 0: no limit */
	uint64_t free_at_us;  /* when all bytes counted so far are paid for */
};

void pace_count(struct pace *p, uint64_t bytes);
void pace_wait(const struct pace *p);
