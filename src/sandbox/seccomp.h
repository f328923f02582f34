#pragma once
/*
 * seccomp - the last wall: which system calls exist for the command.
 *
 * The programs are compiled while building (seccomp_rules.c is the list to read); at run time
 * one is chosen by its variant flags and handed to the kernel, nothing is generated.
 */
#include "base/err.h"

enum seccomp_variant {
	SECCOMP_STRICT = 1 << 0,     /* no chroot, no ptrace, not even of its own processes */
	SECCOMP_NO_SET_ID = 1 << 1,  /* no set-id bits on files: they would count outside too */
	SECCOMP_PINNED = 1 << 2,     /* the cpu affinity is a limit and stays as it is */
	SECCOMP_NO_CUTTING = 1 << 3, /* no file is cut off that is not open for writing */
	SECCOMP_ONE_OWNER =
		1 << 4, /* there is root and nobody else: giving files away is no error */

	SECCOMP_VARIANT_COUNT = 1 << 5
};

/* Locks the calling thread in for ever. no_new_privs must be set. */
ERR_CHECKED int seccomp_install(unsigned variant, struct err *e);
