#pragma once
/*
 * hostfiles - the files and directories of this machine that a sandbox will see: the home, the
 * workspace and the mounts of a policy, checked and put in order.
 *
 * Root callers' sandboxes have ids of their own, to which the owner of such a directory is
 * mapped; the mounts are made here, while this process may still open them. Ordinary callers
 * are the owner inside too: their child opens the paths itself.
 */
#include "base/err.h"
#include "policy/policy.h"
#include "sandbox/rootfs.h"

struct idmap;

#define HOSTFILES_MAX (POLICY_MOUNTS_MAX + 2u) /* and the home, and the workspace */

struct hostfiles {
	struct rootfs_mount mounts[HOSTFILES_MAX]; /* parents before children */
	unsigned count;
};

/* Names in the policy are borrowed. */
ERR_CHECKED int hostfiles_open(struct hostfiles *h, const struct policy *p,
			       const struct idmap *map, struct err *e);
void hostfiles_done(struct hostfiles *h);
