/* cpuset - the CPUs that a sandbox runs on; see cpuset.h. */
#include "host/cpuset.h"

#include "base/clock.h"

#include <errno.h>
#include <unistd.h>

/* The first CPU, varied so that concurrent sandboxes do not share one while others idle. */
static unsigned choose_first(const cpu_set_t *allowed, unsigned flags)
{
	unsigned skip = (unsigned)(clock_now_us() % (unsigned)CPU_COUNT(allowed));
	int near = flags & CPUSET_NEAR ? sched_getcpu() : -1;
	unsigned cpu = 0;

	if (near >= 0 && near < CPU_SETSIZE && CPU_ISSET(near, allowed))
		return (unsigned)near;
	while (!CPU_ISSET(cpu, allowed) || skip-- > 0)
		cpu++;
	return cpu;
}

int cpuset_choose(unsigned count, unsigned flags, cpu_set_t *ret, struct err *e)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return err_sys(e, errno, "read the cpu affinity");
	*ret = allowed;
	if ((unsigned)CPU_COUNT(&allowed) <= count)
		return 0;
	CPU_ZERO(ret);
	for (unsigned i = choose_first(&allowed, flags); count > 0; i = (i + 1) % CPU_SETSIZE) {
		if (!CPU_ISSET(i, &allowed))
			continue;
		CPU_SET(i, ret);
		count--;
	}
	return 0;
}
