#pragma once
/*
 * placement - the directories of the host for a sandbox that was built before anybody knew them.
 *
 * A sandbox that waits ready (pool/warm) and will show a workspace stops in the middle of
 * building its root: all of it is there but what the policy shows of the host. Whoever claims the
 * sandbox checks these directories as at any start (workspace/hostfiles) and sends them with
 * ORDER_PLACES; a root caller sends mounts that it made, for an ordinary caller the child opens the
 * paths itself and compares what it finds. Then the child goes on: the same code, in the same
 * order, as for a sandbox that did not wait. No command has run before, and the host's tree is let
 * go of before one does (sandbox/rootfs).
 *
 * The descriptors of ORDER_PLACES: where to say that the walls stand, then the mounts.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/frame.h"
#include "sandbox/rootfs.h"

#define PLACEMENT_PLACES_MAX 256u
#define PLACEMENT_GUARDS_MAX 16384u
#define PLACEMENT_TREES_MAX (FRAME_DESCRIPTORS_MAX - 2u) /* one is for a large body: base/frame */

/* ret_fds has room for PLACEMENT_TREES_MAX, and borrows them; false: there are more, or of more
 * bytes than `out` takes. */
bool placement_format(const struct rootfs_options *o, struct buf *out, int *ret_fds,
		      unsigned *ret_count);

struct placement {
	int orders_fd, report_fd, lifeline_fd; /* init's, borrowed */

	int placed_fd; /* -1: nobody has claimed it. report_started() there: the walls stand */
	struct frame frame;
	struct rootfs_place *places;
	struct rootfs_guard *guards;
};

/*
 * In the child: reports that it waits, waits, and puts what it was sent into `o`, which borrows it
 * from `p`. It is the last thing that this process keeps: nobody frees it.
 */
ERR_CHECKED int placement_await(struct placement *p, struct rootfs_options *o, struct err *e);

/* The other half of placement_format(), strict: into p->places and p->guards, from p->frame. */
ERR_CHECKED int placement_parse(struct placement *p, struct rootfs_options *o, struct err *e);
