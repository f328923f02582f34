#pragma once
/*
 * seccomp - the last layer: the system calls that the command may make.
 *
 * The filters are compiled during the build (seccomp_rules.c is the readable list); at run time one
 * is chosen by its variant flags and installed.
 */
#include "base/err.h"

enum seccomp_variant {
	SECCOMP_STRICT = 1 << 0,     /* no chroot and no ptrace, not even of its own processes */
	SECCOMP_NO_SET_ID = 1 << 1,  /* no set-id bits on files: they would count outside too */
	SECCOMP_PINNED = 1 << 2,     /* the CPU affinity is a limit and cannot be changed */
	SECCOMP_NO_CUTTING = 1 << 3, /* a file that is not open for writing cannot be truncated */
	SECCOMP_ONE_OWNER =
		1 << 4, /* root is the only id: chown to another does nothing, without an error */

	SECCOMP_VARIANT_COUNT = 1 << 5
};

/* Installs the filter in the calling thread for good. no_new_privs must be set. */
ERR_CHECKED int seccomp_install(unsigned variant, struct err *e);
