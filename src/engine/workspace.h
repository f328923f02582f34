#pragma once
/*
 * workspace - what needs care in a directory that a sandbox may write to.
 *
 * What something outside would run or obey later (policy/credential) is read-only inside, also in
 * submodules and linked worktrees below; what --mask names appears empty. A name that does not
 * exist yet cannot be protected by a mount, so it is kept free: an empty directory (for git's own
 * files a file that says nothing) stands in for it while the sandbox runs and is removed
 * afterwards. Its mode tells it from what somebody made, and a lock tells whether another sandbox
 * still needs it, so what a crash leaves is removed by whoever comes next.
 */
#include "base/err.h"
#include "policy/policy.h"
#include "sandbox/rootfs.h"

#define WORKSPACE_GUARDS_MAX 8192u
#define WORKSPACE_MASKED_MAX 512u       /* files that patterns match */
#define WORKSPACE_LOOKED_AT_MAX 200000u /* names, for patterns with ** in them */
#define WORKSPACE_DEPTH_MAX 32u

struct workspace_standin {
	int parent_fd, fd;
	char *name;
	const char *text; /* of a file; NULL: it is a directory */
};

struct workspace {
	char *path;
	char *git_dir; /* outside; see engine/gitlinks.h. NULL: none */
	int git_fd;    /* which is that one; -1: none */
	struct rootfs_guard *guards;
	unsigned guard_count;
	struct workspace_standin *standins;
	unsigned standin_count;
};

/* Opens a directory that may be a workspace (engine/hostpath); a link or a file is refused. */
ERR_CHECKED int workspace_open_dir(const char *path, int *ret_fd, struct err *e);

/* Of a policy that has one; dir_fd is what workspace_open_dir() gave, and is borrowed. */
ERR_CHECKED int workspace_open(struct workspace *w, const struct policy *p, int dir_fd,
			       struct err *e);
void workspace_init(struct workspace *w); /* "there is none" */
/* When nothing runs inside any more. May run twice. */
void workspace_done(struct workspace *w);
