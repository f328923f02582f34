#pragma once
/*
 * rootfs - the file system that a sandbox sees.
 *
 * A base (sandbox/hostroot: this machine's programs; sandbox/imageroot: an overlay of an image or
 * of a sandbox that stays), an own /dev and /proc, and the directories of the host that the policy
 * shows. What is written goes to one tmpfs with a size, or to a named sandbox's disk. Runs in the
 * child, in its new namespaces, and ends with the pivot: after it the host's files have no name.
 */
#include "base/err.h"
#include "sandbox/cgroup.h"
#include "sandbox/imageroot.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct limitfiles;
struct limitfiles_figures;
struct placement;
struct policy;
struct rootfs_options;

enum rootfs_kind {
	ROOTFS_HOST,  /* a file or directory of the host */
	ROOTFS_TMPFS, /* an empty directory in memory */
};

/* Something that the policy puts into the root. */
struct rootfs_place {
	enum rootfs_kind kind;
	const char *target; /* absolute, inside; borrowed */

	/* ROOTFS_HOST */
	const char *source; /* host path; borrowed */
	char *real_path;    /* where that leads; whoever made the place frees it */
	int tree_fd;        /* detached tree made by a root caller; -1: open `source` here */
	dev_t device;       /* what `source` was when it was checked; another is refused */
	ino_t inode;
	bool is_dir;
	bool is_read_only;

	/* ROOTFS_TMPFS */
	uint64_t size_bytes;
};

/* Something in a place that has to be treated with care. */
enum rootfs_care {
	ROOTFS_PINNED,    /* cannot be renamed or removed */
	ROOTFS_PROTECTED, /* and is read-only */
	ROOTFS_MASKED,    /* appears empty */
};

struct rootfs_guard {
	enum rootfs_care care;
	const char *target; /* of the place */
	char *name;         /* below it; what is not there is left out */
};

struct rootfs_options {
	const struct policy *policy;
	const struct rootfs_place *places; /* parents before children */
	unsigned place_count;
	const struct rootfs_guard *guards; /* parents before children */
	unsigned guard_count;
	char *const *etc_private;      /* names in /etc that are not for all; or NULL */
	const char *etc_layer_path;    /* a layer that hides them, kept; NULL: none */
	int etc_host_tree_fd;          /* /etc without mounts in it, of a root caller; -1: none */
	int etc_tree_fd;               /* that, as a detached tree of a root caller; -1: by path */
	const char *resolv_conf;       /* text of /etc/resolv.conf; NULL: none */
	const struct imageroot *image; /* NULL: the host's own programs, and nothing stays */
	const char *host_name;         /* NULL: that of every sandbox without a name */
	const char *machine_id;        /* NULL: none */
	const struct limitfiles_figures *figures; /* what it is told about its limits */
	const char *limits_path;      /* limitfiles_make() was there already; NULL: not */
	int limits_tree_fd;           /* that, as a detached tree of a root caller; -1: by path */
	struct limitfiles *limits;    /* filled in where they can be changed */
	enum cgroup_kind cgroup_kind; /* what keeps them */

	/* Called when all but the places is there, and fills these in. NULL: they are known
	 * already. */
	int (*await_places)(struct placement *context, struct rootfs_options *o, struct err *e);
	struct placement *placement;
};

/* Writable also where the root is not; the home directory is one more. Ended by NULL. */
extern const char *const rootfs_always_writable[];

ERR_CHECKED int rootfs_enter(const struct rootfs_options *o, struct err *e);
