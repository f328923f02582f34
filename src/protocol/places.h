#pragma once
/*
 * places - the message ORDER_PLACES (protocol/order.h): the host directories that a sandbox shows
 * which was built before they were known.
 *
 * Descriptors of the message: first the one to report to once the sandbox is complete, then the
 * mounts.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/frame.h"
#include "protocol/rootspec.h"

#define PLACES_MAX 256u
#define PLACES_GUARDS_MAX 16384u
#define PLACES_TREES_MAX (FRAME_DESCRIPTORS_MAX - 2u) /* one for a large body: base/frame */

/*
 * Writes the message; ret_fds (PLACES_TREES_MAX) borrows the mounts. False if there are too many or
 * `out` is too small.
 */
bool places_format(const struct rootspec_shown *s, struct buf *out, int *ret_fds,
		   unsigned *ret_count);

/* What a message held. */
struct places {
	struct rootspec_place *places;
	struct rootspec_guard *guards;
};

/* Parses the message strictly. *ret borrows from `p` and `f`, whose mounts it takes. */
ERR_CHECKED int places_parse(struct frame *f, struct places *p, struct rootspec_shown *ret,
			     struct err *e);
