#pragma once
/*
 * layerpack - writes files as a tar archive: a root directory or a sandbox's changes as a layer, or
 * any tree for a transfer.
 *
 * Writes owners, modes, times, links, holes, user.* and security.capability attributes. Sockets are
 * left out, as are devices, which layer_unpack() would refuse, and user.overlay.* attributes,
 * unless the flags say otherwise. The same tree gives the same bytes: names are sorted in each
 * directory.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum layerpack_flags {
	/*
	 * The tree is an overlay's upper directory: a device 0:0 is written as ".wh.NAME", an
	 * opaque directory with ".wh..wh..opq" in it. A socket hides lower entries too, so it
	 * becomes a whiteout.
	 */
	LAYERPACK_WHITEOUTS = 1 << 0,
	/* Names that begin with ".wh." are ordinary names; otherwise they are refused. */
	LAYERPACK_ANY_NAME = 1 << 1,
	/* Writes everything unchanged, also devices 0:0 and user.overlay.opaque: for digests. */
	LAYERPACK_AS_IS = 1 << 2,
};

struct layerpack_sink {
	/* Destination of the bytes; returns -errno. */
	int (*write)(void *context, const void *bytes, size_t len);
	void *context;

	/* Gets what the entries are without their times, so that it is the same for a tree that was
	 * made again; NULL: nobody asks. */
	void (*note)(void *context, const void *bytes, size_t len);
	/* Times after this second become this second, in the archive and in the tree; 0: stay. */
	int64_t latest_s;
};

/* Writes the tree beneath dir_fd as a layer. `excluded` are names at the top, NULL-ended. */
ERR_CHECKED int layerpack_write(int dir_fd, int archive_fd, const char *const *excluded,
				struct err *e);

/* Writes the tree beneath dir_fd. */
ERR_CHECKED int layerpack_write_tree(int dir_fd, unsigned flags, const struct layerpack_sink *sink,
				     struct err *e);

/*
 * Writes dir_fd/name, of any type, with everything beneath it, under the name `as`; "" makes a
 * directory the root of the archive. Without `name`, writes dir_fd itself, a file or a directory
 * that is open for reading.
 */
ERR_CHECKED int layerpack_write_entry(int dir_fd, const char *name, const char *as, unsigned flags,
				      const struct layerpack_sink *sink, struct err *e);
