#pragma once
/*
 * hostfiles - prepares the mounts that a policy puts into a sandbox's root: the home, the
 * workspace, the mounts and the tmpfs directories, checked and sorted.
 *
 * A root caller's sandbox has its own ids, to which the owner of such a directory is mapped; these
 * mounts are made here, while this process may still open the directories. An ordinary caller has
 * the same id inside: the child opens the paths itself, in its own mount namespace, and compares
 * their identity with the one checked here.
 */
#include "base/err.h"
#include "workspace/workspace.h"
#include "policy/policy.h"
#include "protocol/rootspec.h"

struct ak;

struct idmap;

#define HOSTFILES_HOST_MAX                                                                         \
	(POLICY_MOUNTS_MAX + 3u) /* plus home, workspace and its git directory                     \
				  */
#define HOSTFILES_MAX (2u * HOSTFILES_HOST_MAX + POLICY_TMPFS_MAX)

struct hostfiles {
	struct rootspec_place places[HOSTFILES_MAX]; /* parents before children */
	unsigned count;
	char *hidden[HOSTFILES_HOST_MAX]; /* targets where the state directory would be visible */
	unsigned hidden_count;
	struct workspace workspace; /* zeroed if there is none */
};

/*
 * Adds the real paths of the policy's home, workspace and mounts to *places, unless recorded
 * already. For a sandbox that is restarted later: part of a path may be in a directory that a
 * sandbox writes to, and must not lead elsewhere then. The list becomes part of the policy.
 */
ERR_CHECKED int hostfiles_note(const struct policy *p, char ***places, struct err *e);

void hostfiles_init(struct hostfiles *h); /* "nothing is shown" */
/* Names in the policy are borrowed. Our own state directory is never shown. */
ERR_CHECKED int hostfiles_open(struct hostfiles *h, const struct policy *p, const struct ak *ak,
			       const struct idmap *map, struct err *e);
void hostfiles_done(struct hostfiles *h);
