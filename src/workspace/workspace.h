#pragma once
/*
 * workspace - what needs care in a directory that a sandbox may write to.
 *
 * What something outside would run or obey later (policy/credential, and whatever else git would
 * use: workspace/gitprotect) is read-only inside where it exists; what --mask names appears empty.
 * A protected name that does not exist cannot be protected by a mount. It is listed in `absent`,
 * and workspace/newnames takes it away should it appear; with --protect-new strict a placeholder
 * occupies it (workspace/standins).
 */
#include "base/err.h"
#include "workspace/standins.h"
#include "policy/policy.h"
#include "sandbox/rootfs.h"

#include <sys/types.h>

struct ak;

#define WORKSPACE_GUARDS_MAX 16384u
#define WORKSPACE_ABSENT_MAX 32768u

/* A protected name that does not exist: "DIR/REST" below a place. */
struct workspace_absent {
	int place_fd;   /* dir_fd or git_fd of the workspace */
	char *name;     /* relative to that */
	size_t dir_len; /* name[0..dir_len) exists, and cannot be moved aside inside; 0: the place
			 */
};

/* A repository that was there before: its directory, or the file or link that leads to it. */
struct workspace_repository {
	int place_fd; /* as above */
	char *path;   /* relative to that */
	dev_t device;
	ino_t inode;
	ino_t hooks_inode; /* 0: it had none */
	char **settings;   /* of its own that are not harmless, "section.sub.key=value"; or NULL */
};

struct workspace {
	char *path;
	int dir_fd;      /* which is that one; -1: none */
	char *git_dir;   /* outside; see workspace/gitlinks.h. NULL: none */
	int git_fd;      /* which is that one; -1: none */
	char *own_state; /* our own directory, relative to the workspace; NULL: it is elsewhere */
	struct rootfs_guard *guards;
	unsigned guard_count;
	struct workspace_absent *absent;
	unsigned absent_count;
	struct workspace_repository *repositories;
	unsigned repository_count;
	struct standins standins;
};

/* Opens a directory that may be a workspace (workspace/hostpath); a link or a file is refused. */
ERR_CHECKED int workspace_open_dir(const char *path, int *ret_fd, struct err *e);

/* Of a policy that has one; dir_fd is what workspace_open_dir() gave, and is borrowed. */
ERR_CHECKED int workspace_open(struct workspace *w, const struct policy *p, int dir_fd,
			       const struct ak *ak, struct err *e);
void workspace_init(struct workspace *w); /* "there is none" */
/* When nothing runs inside any more. May run twice. */
void workspace_done(struct workspace *w);

/* ---- for workspace/gitprotect ---- */

/* The place that a name is relative to: the workspace, or a git directory outside. */
struct workspace_place {
	const char *target;
	int fd;
};

struct credential_protected;

/*
 * Protects place/name as `row` says. What --unprotect names, in full or by the row's own path, is
 * left alone.
 */
ERR_CHECKED int workspace_protect(struct workspace *w, const struct policy *p,
				  const struct workspace_place *place, const char *name,
				  const struct credential_protected *row, struct err *e);
/* The one that was found at place/path; takes none of the names. Until the next is added. */
struct workspace_repository *workspace_add_repository(struct workspace *w,
						      const struct workspace_place *place,
						      const char *path, dev_t device, ino_t inode);
