#pragma once
/*
 * filecopy - copies trees, or tar archives of them, between this machine and a named sandbox.
 *
 * Two processes and a pipe: one packs, one unpacks (the image helper's files-pack and
 * files-unpack), each with the identity of its side: the caller outside, the sandbox's user inside.
 * Neither side can redirect the other: paths of the sandbox are resolved in its root, and no link
 * is followed below the directory that is unpacked into.
 */
#include "base/err.h"

struct files;

enum filecopy_flags {
	FILECOPY_OWNERS = 1 << 0, /* keep numeric owners; else the unpacking user */
	FILECOPY_FOLLOW = 1 << 1, /* follow a source that is a link */
};

/*
 * Like cp and docker cp: a target that is a directory receives the source, any other target is its
 * new name; "DIR/." means the content of the directory.
 */
ERR_CHECKED int filecopy_in(struct files *f, const char *host_path, const char *path,
			    unsigned flags, struct err *e);
ERR_CHECKED int filecopy_out(struct files *f, const char *path, const char *host_path,
			     unsigned flags, struct err *e);

/* Unpacks a tar from in_fd into the directory `path`; packs `path` to out_fd. */
ERR_CHECKED int filecopy_in_tar(struct files *f, int in_fd, const char *path, unsigned flags,
				struct err *e);
ERR_CHECKED int filecopy_out_tar(struct files *f, const char *path, int out_fd, unsigned flags,
				 struct err *e);
