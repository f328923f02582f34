/*
 * signals - resets inherited signal settings; see signals.h.
 *
 * By signal number and system call: the C library reserves a few signals, which a caller may have
 * ignored too.
 */
#include "base/signals.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIGNAL_LAST 64
#define SIGACTION_BYTES 64 /* at least as large as the kernel's on any architecture */

void signals_reset(void)
{
	static const char default_action[SIGACTION_BYTES]; /* the kernel's struct, all zero */
	static const uint64_t none;

	for (int number = 1; number <= SIGNAL_LAST; number++)
		(void)syscall(SYS_rt_sigaction, number, default_action, NULL, sizeof(none));
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}
