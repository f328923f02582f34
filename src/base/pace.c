/* pace - keeps work at a rate of bytes per second by sleeping; see pace.h. */
#include "base/pace.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

#define WAIT_MIN_US 2000u /* shorter waits are left to the next one */

void pace_count(struct pace *p, uint64_t bytes)
{
	uint64_t now_us;

	if (!p->bytes_per_s)
		return;
	now_us = clock_now_us();
	if (p->free_at_us < now_us)
		p->free_at_us = now_us;
	p->free_at_us += (uint64_t)((double)bytes * 1e6 / (double)p->bytes_per_s);
}

void pace_wait(const struct pace *p)
{
	uint64_t now_us = p->bytes_per_s ? clock_now_us() : 0;
	struct timespec left;

	if (p->free_at_us < now_us + WAIT_MIN_US)
		return;
	left = (struct timespec){ .tv_sec = (time_t)((p->free_at_us - now_us) / 1000000),
				  .tv_nsec = (long)((p->free_at_us - now_us) % 1000000) * 1000 };
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		continue;
}
