#pragma once
/* throttle - a token bucket: a rate per second, and a burst. */
#include <stdint.h>

struct throttle {
	uint64_t rate_per_s; /* 0: no limit */
	uint64_t burst;
	uint64_t level_milli; /* thousandths, so that slow rates add up */
	uint64_t filled_ms;   /* when it was last filled */
};

void throttle_init(struct throttle *t, uint64_t rate_per_s, uint64_t burst, uint64_t now_ms);

/* The amount available now; UINT64_MAX without a limit. */
uint64_t throttle_available(struct throttle *t, uint64_t now_ms);
void throttle_spend(struct throttle *t, uint64_t amount);
