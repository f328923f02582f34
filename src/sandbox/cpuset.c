/* cpuset - a cpu limit without a cgroup; see cpuset.h. */
#include "sandbox/cpuset.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

int cpuset_pin(unsigned count, struct err *e)
{
	cpu_set_t allowed, chosen;
	unsigned skip, left;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return err_sys(e, errno, "read the cpu affinity");
	if ((unsigned)CPU_COUNT(&allowed) <= count)
		return 0;
	/* not always the first ones: sandboxes side by side should not share while others idle */
	skip = (unsigned)getpid() % (unsigned)CPU_COUNT(&allowed);
	left = count;
	CPU_ZERO(&chosen);
	for (unsigned i = 0; left > 0; i = (i + 1) % CPU_SETSIZE) {
		if (!CPU_ISSET(i, &allowed))
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		CPU_SET(i, &chosen);
		left--;
	}
	if (sched_setaffinity(0, sizeof(chosen), &chosen) < 0)
		return err_sys(e, errno, "set the cpu affinity");
	return 0;
}
