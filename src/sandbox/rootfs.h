#pragma once
/*
 * rootfs - the file system that a sandbox sees.
 *
 * A base (sandbox/hostroot: the host's programs; sandbox/imageroot: an overlay of an image or of a
 * named sandbox), an own /dev and /proc, and the host directories of the policy. Writes go to one
 * tmpfs with a size limit, or to a named sandbox's disk. Runs in the child, in its new namespaces,
 * and ends with the pivot: after it no path leads to the host's other files.
 */
#include "base/err.h"
#include "host/cgroup.h"
#include "protocol/rootspec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct limitfiles;
struct limitfiles_figures;
struct placement;
struct policy;
struct rootfs_options;

struct rootfs_options {
	const struct policy *policy;
	struct rootspec_shown shown;
	char *const *etc_private;   /* names in /etc that only this caller may read; or NULL */
	const char *etc_layer_path; /* cached layer of whiteouts that hides them; NULL: none */
	int etc_host_tree_fd;       /* a root caller's /etc without mounts inside it; -1: none */
	int etc_tree_fd;            /* the layer as a root caller's detached tree; -1: by path */
	const char *resolv_conf;    /* text of /etc/resolv.conf; NULL: none */
	const struct rootspec_image *image; /* NULL: the host's programs and a temporary root */
	const char *host_name;              /* NULL: the default of unnamed sandboxes */
	const char *machine_id;             /* NULL: none */
	const struct limitfiles_figures *figures; /* contents of the files about limits */
	const char *limits_path;      /* where limitfiles_make() already ran; NULL: nowhere */
	int limits_tree_fd;           /* the same as a root caller's detached tree; -1: by path */
	struct limitfiles *limits;    /* filled in if the limits can change later */
	enum cgroup_kind cgroup_kind; /* what enforces the limits */

	/* Called before the host's tree is unmounted and before places are awaited; maybe twice. */
	int (*before_unmount)(void *context, struct err *e);
	void *before_unmount_context;

	/*
	 * Called when all but the places is mounted; fills them in. NULL: they are known already.
	 */
	int (*await_places)(struct placement *context, struct rootfs_options *o, struct err *e);
	struct placement *placement;
	bool has_only_trees; /* every directory of the host among them comes as a tree */
};

/* Writable even if the root is read-only, as is the home directory. Ended by NULL. */
extern const char *const rootfs_always_writable[];

ERR_CHECKED int rootfs_enter(const struct rootfs_options *o, struct err *e);
