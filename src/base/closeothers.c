/* closeothers - closes all descriptors but a few; see closeothers.h. */
#include "base/closeothers.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int closeothers_but(int *kept, unsigned count)
{
	unsigned first = 0;

	if (count > 1)
		qsort(kept, count, sizeof(*kept), by_number);
	for (unsigned i = 0; i < count; i++) {
		unsigned fd = (unsigned)kept[i];

		if (kept[i] < 0)
			continue;
		if (fd > first && syscall(SYS_close_range, first, fd - 1, 0) < 0)
			return -1;
		if (fd >= first)
			first = fd + 1;
	}
	return (int)syscall(SYS_close_range, first, ~0u, 0);
}
