#pragma once
/*
 * privs - ids, capabilities and keyrings of processes inside.
 *
 * All capabilities are in the sandbox's own user namespace and mean nothing outside it. The set for
 * package managers lets them own, change and install files and switch to other users.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Clears the dumpable flag, so that other processes cannot read, trace or write this one through
 * /proc, and replaces the caller's session keyring by a new, empty one.
 */
ERR_CHECKED int privs_seclude(struct err *e);

/* For the command, just before Landlock and seccomp; cannot be undone. */
struct privs_options {
	uint32_t uid, gid;
	const uint32_t *groups; /* supplementary groups; only if ids can be switched */
	unsigned group_count;
	bool can_switch_ids; /* the namespace has more than one id, so this process must switch
			      * to its own */
	bool has_capabilities;
};
ERR_CHECKED int privs_drop(const struct privs_options *o, struct err *e);

enum privs_init_flags {
	PRIVS_WATCHES = 1 << 0, /* init reads the memory use of processes that have capabilities */
	PRIVS_SERVES = 1 << 1,  /* init starts commands, as any user and with capabilities */
	PRIVS_BOUNDED = 1 << 2, /* privs_bound_init() was called before */
};

/*
 * For a serving init: drops from the bounding set every capability that no command may have. Its
 * current capabilities stay.
 */
ERR_CHECKED int privs_bound_init(struct err *e);

/* For init, which needs no capability unless a flag says so. */
ERR_CHECKED int privs_drop_init(unsigned flags, struct err *e);

/*
 * Makes the kernel send SIGKILL when the supervisor dies, even while this process is blocked in the
 * kernel and cannot see its lifeline close (a command stopped before exec keeps vfork() blocked).
 * Call it after the last change of ids and capabilities, because that clears the setting.
 */
ERR_CHECKED int privs_die_with_parent(struct err *e);

/* Drops all capabilities of this process. */
ERR_CHECKED int privs_clear(struct err *e);
