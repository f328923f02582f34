#pragma once
/*
 * hostfiles - the places that a policy puts into a sandbox's root: the home, the workspace, the
 * mounts and the tmpfs directories, checked and put in order.
 *
 * Root callers' sandboxes have ids of their own, to which the owner of such a directory is
 * mapped; the mounts are made here, while this process may still open them. Ordinary callers
 * are the owner inside too: their child opens the paths itself, in its own mount namespace, and
 * compares what it finds with what was checked here.
 */
#include "base/err.h"
#include "workspace/workspace.h"
#include "policy/policy.h"
#include "sandbox/rootfs.h"

struct ak;

struct idmap;

#define HOSTFILES_HOST_MAX (POLICY_MOUNTS_MAX + 3u) /* home, workspace and its git directory */
#define HOSTFILES_MAX (2u * HOSTFILES_HOST_MAX + POLICY_TMPFS_MAX)

struct hostfiles {
	struct rootfs_place places[HOSTFILES_MAX]; /* parents before children */
	unsigned count;
	char *hidden[HOSTFILES_HOST_MAX]; /* targets: the state directory, where it would be seen */
	unsigned hidden_count;
	struct workspace workspace; /* zeroed where there is none */
};

/*
 * Adds to *places where the policy's home, workspace and mounts lead now, unless it says so
 * already. For a sandbox that starts again later: a part of the way may lie in a directory that a
 * sandbox writes to, and must not lead elsewhere then. The list goes into the policy.
 */
ERR_CHECKED int hostfiles_note(const struct policy *p, char ***places, struct err *e);

void hostfiles_init(struct hostfiles *h); /* "nothing is shown" */
/* Names in the policy are borrowed. Our own state directory is never shown. */
ERR_CHECKED int hostfiles_open(struct hostfiles *h, const struct policy *p, const struct ak *ak,
			       const struct idmap *map, struct err *e);
void hostfiles_done(struct hostfiles *h);
