#pragma once
/*
 * seccompholes - takes single groups out of the system call filter, in builds for tests alone.
 *
 * A filter cannot be loosened by another: the strictest answer counts. So what a test wants open
 * (base/wall.h, seccomp-*) is answered by instructions in front of the filter.
 */
#include <linux/filter.h>

#ifdef AGENTKERNEL_TESTING

/* The program, or a longer one that stays valid. */
void seccompholes_cut(struct sock_fprog *program);

#else

static inline void seccompholes_cut(struct sock_fprog *program)
{
	(void)program;
}

#endif
