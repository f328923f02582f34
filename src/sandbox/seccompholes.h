#pragma once
/*
 * seccompholes - removes single groups from the system call filter; only in builds for tests.
 *
 * A second filter cannot loosen the first, because the strictest answer wins. So instructions in
 * front of the filter allow the calls that a test wants open (base/wall.h, seccomp-*).
 */
#include <linux/filter.h>

#ifdef AGENTKERNEL_TESTING

/* Replaces the program by a longer one in static memory. */
void seccompholes_cut(struct sock_fprog *program);

#else

static inline void seccompholes_cut(struct sock_fprog *program)
{
	(void)program;
}

#endif
