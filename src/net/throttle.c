/* throttle - a token bucket; see throttle.h. */
#include "net/throttle.h"

void throttle_init(struct throttle *t, uint64_t rate_per_s, uint64_t burst, uint64_t now_ms)
{
	*t = (struct throttle){
		.rate_per_s = rate_per_s,
		.burst = burst,
		.level_milli = burst * 1000,
		.filled_ms = now_ms,
	};
}

uint64_t throttle_available(struct throttle *t, uint64_t now_ms)
{
	uint64_t full = t->burst * 1000;
	uint64_t elapsed_ms = now_ms - t->filled_ms;
	uint64_t full_ms; /* time to fill it */

	if (t->rate_per_s == 0)
		return UINT64_MAX;
	full_ms = full / t->rate_per_s + 1;
	t->filled_ms = now_ms;
	if (elapsed_ms > full_ms) /* it is full by then, and nothing overflows */
		elapsed_ms = full_ms;
	t->level_milli += elapsed_ms * t->rate_per_s;
	if (t->level_milli > full)
		t->level_milli = full;
	return t->level_milli / 1000;
}

void throttle_spend(struct throttle *t, uint64_t amount)
{
	if (t->rate_per_s == 0)
		return;
	t->level_milli = amount * 1000 < t->level_milli ? t->level_milli - amount * 1000 : 0;
}
