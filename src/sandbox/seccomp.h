#pragma once
/*
 * seccomp - the last layer: the system calls that the command may make.
 *
 * The filters are compiled during the build (seccomp_rules.c is the readable list); at run time one
 * is chosen by its variant flags and installed.
 */
#include "base/err.h"

#include <linux/filter.h>

enum seccomp_variant {
	SECCOMP_STRICT = 1 << 0,     /* no chroot and no ptrace, not even of its own processes */
	SECCOMP_NO_SET_ID = 1 << 1,  /* no set-id bits on files: they would count outside too */
	SECCOMP_PINNED = 1 << 2,     /* the CPU affinity is a limit and cannot be changed */
	SECCOMP_NO_CUTTING = 1 << 3, /* a file that is not open for writing cannot be truncated */
	SECCOMP_ONE_OWNER =
		1 << 4, /* root is the only id: chown to another does nothing, without an error */

	SECCOMP_VARIANT_COUNT = 1 << 5,

	/* for init before its root is finished: seccomp_begin_mounting() */
	SECCOMP_MOUNTING = SECCOMP_VARIANT_COUNT,
	SECCOMP_PROGRAM_COUNT = 1 << 6
};

/* Installs the filter in the calling thread for good. no_new_privs must be set. */
ERR_CHECKED int seccomp_install(unsigned variant, struct err *e);

/*
 * The same in two steps, for a sandbox that waits to be told what it shows: the variant and the
 * calls that still have to mount it; then, before any command, a few instructions that refuse
 * those calls, too. Installing the second takes the kernel a tenth of the time of the first.
 */
ERR_CHECKED int seccomp_begin_mounting(unsigned variant, struct err *e);
ERR_CHECKED int seccomp_end_mounting(unsigned variant, struct err *e);

#define SECCOMP_END_MOUNTING_MAX 16 /* instructions */
/* What seccomp_end_mounting() installs. Returns how many instructions these are. */
unsigned seccomp_format_end_mounting(unsigned variant,
				     struct sock_filter ret[SECCOMP_END_MOUNTING_MAX]);
