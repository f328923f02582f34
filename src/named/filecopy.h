#pragma once
/*
 * filecopy - trees between this machine and a named sandbox, and tar archives of them.
 *
 * Two processes and a pipe: one packs, one unpacks (the image helper's files-pack and
 * files-unpack), each with the identity of its side: the caller's here, the sandbox's user there.
 * Neither side can make the other look anywhere: paths of the sandbox are resolved in its root, and
 * below the directory that is unpacked into no link is followed.
 */
#include "base/err.h"

struct files;

enum filecopy_flags {
	FILECOPY_OWNERS = 1 << 0, /* keep owners by number; else who unpacks owns all */
	FILECOPY_FOLLOW = 1 << 1, /* a source that is a link: what it leads to */
};

/*
 * As cp and docker cp have it: a target that is a directory gets the source in it, another is what
 * the source will be called; "DIR/." means what is in the directory.
 */
ERR_CHECKED int filecopy_in(struct files *f, const char *host_path, const char *path,
			    unsigned flags, struct err *e);
ERR_CHECKED int filecopy_out(struct files *f, const char *path, const char *host_path,
			     unsigned flags, struct err *e);

/* A tar from in_fd into the directory `path`; one of `path` to out_fd. */
ERR_CHECKED int filecopy_in_tar(struct files *f, int in_fd, const char *path, unsigned flags,
				struct err *e);
ERR_CHECKED int filecopy_out_tar(struct files *f, const char *path, int out_fd, unsigned flags,
				 struct err *e);
