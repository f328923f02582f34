#pragma once
/*
 * workspace - lists what to protect in a directory that a sandbox may write.
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
#include "protocol/rootspec.h"

#include <sys/types.h>

struct ak;

#define WORKSPACE_GUARDS_MAX 16384u
#define WORKSPACE_ABSENT_MAX 32768u

/* A protected name that does not exist: "DIR/REST" below a place. */
struct workspace_absent {
	int place_fd;   /* dir_fd or git_fd of the workspace */
	char *name;     /* relative to the place */
	size_t dir_len; /* name[0..dir_len) exists and is pinned; 0: the place itself */
};

/* A repository that existed before: its directory, or the file or link that leads to it. */
struct workspace_repository {
	int place_fd; /* dir_fd or git_fd of the workspace */
	char *path;   /* relative to the place */
	dev_t device;
	ino_t inode;
	ino_t hooks_inode; /* 0: it had no hooks */
	char **settings;   /* its harmful settings, "section.sub.key=value"; or NULL */
};

struct workspace {
	char *path;
	int dir_fd;      /* descriptor of `path`; -1: none */
	char *git_dir;   /* a git directory outside; see workspace/gitlinks.h. NULL: none */
	int git_fd;      /* descriptor of `git_dir`; -1: none */
	char *own_state; /* our state directory, relative to the workspace; NULL: not in it */
	struct rootspec_guard *guards;
	unsigned guard_count;
	struct workspace_absent *absent;
	unsigned absent_count;
	struct workspace_repository *repositories;
	unsigned repository_count;
	struct standins standins;
};

/* Opens a directory that may be a workspace (workspace/hostpath); refuses links and files. */
ERR_CHECKED int workspace_open_dir(const char *path, int *ret_fd, struct err *e);

/* For a policy that has a workspace; dir_fd comes from workspace_open_dir() and is borrowed. */
ERR_CHECKED int workspace_open(struct workspace *w, const struct policy *p, int dir_fd,
			       const struct ak *ak, struct err *e);
void workspace_init(struct workspace *w); /* "there is none" */
/* When nothing runs inside any more. May run twice. */
void workspace_done(struct workspace *w);

/* ---- for workspace/gitprotect ---- */

/* The directory that a name is relative to: the workspace, or a git directory outside. */
struct workspace_place {
	const char *target;
	int fd;
};

struct credential_protected;

/*
 * Protects place/name according to `row`, unless --unprotect names it in full or by the row's own
 * path.
 */
ERR_CHECKED int workspace_protect(struct workspace *w, const struct policy *p,
				  const struct workspace_place *place, const char *name,
				  const struct credential_protected *row, struct err *e);
/* Records a repository found at place/path; copies the names. Valid until the next is added. */
struct workspace_repository *workspace_add_repository(struct workspace *w,
						      const struct workspace_place *place,
						      const char *path, dev_t device, ino_t inode);
