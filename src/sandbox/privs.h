#pragma once
/*
 * privs - what a process inside may do by right of who it is: ids, capabilities, keys.
 *
 * All capabilities are in the sandbox's own user namespace and mean nothing outside it. The
 * set for package managers lets them own, change and install files and drop to other users.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Nobody may look into, trace or write to this process or its executable through /proc. */
ERR_CHECKED int privs_hide(struct err *e);

/* A new, empty session keyring in place of the caller's. */
ERR_CHECKED int privs_fresh_keyring(struct err *e);

/* For the command, just before Landlock and seccomp; there is no way back. */
struct privs_options {
	uint32_t uid, gid;
	const uint32_t *groups; /* besides gid; only where ids can be switched */
	unsigned group_count;
	bool can_switch_ids; /* the namespace has more than one id, so this process must take its
				own */
	bool has_capabilities;
};
ERR_CHECKED int privs_drop(const struct privs_options *o, struct err *e);

enum privs_init_flags {
	PRIVS_WATCHES = 1 << 0, /* init looks at the memory of processes that have capabilities */
	PRIVS_SERVES = 1 << 1,  /* it starts commands, as any user and with what they may have */
	PRIVS_BOUNDED = 1 << 2, /* privs_bound_init() was called before */
};

/* What a serving init can never have again, nor what it starts: the bounding set. Its own
 * capabilities stay. */
ERR_CHECKED int privs_bound_init(struct err *e);

/* For init, which otherwise needs no capability at all. */
ERR_CHECKED int privs_drop_init(unsigned flags, struct err *e);

/*
 * SIGKILL when the supervisor dies, also while this process waits in the kernel and does not see
 * its lifeline close: a command that is stopped before its exec keeps vfork() waiting. After the
 * last change of ids and capabilities, which clears it.
 */
ERR_CHECKED int privs_die_with_parent(struct err *e);

/* No capability is left to this process. */
ERR_CHECKED int privs_clear(struct err *e);
