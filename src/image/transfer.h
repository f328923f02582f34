#pragma once
/*
 * transfer - what moves files into and out of sandboxes, and layers into and out of archives.
 *
 * Each operation works with the directory TOOL_DIR_FD and runs as whoever the launcher made it:
 * for a sandbox's files as the sandbox's own root. Words are "key=value":
 *
 *	files-pack    a tar of one file or tree to stdout
 *		name=PATH    in the directory
 *		as=NAME      what it is called in the archive; "." makes a directory its root
 *		root=yes     the directory is a root: PATH and its links are looked up within it;
 *		             else as this process would (an absolute PATH is one of the host)
 *		follow=yes   if PATH is a symbolic link, what it leads to; else the link itself
 *	files-unpack  a tar from stdin into the directory (image/fileunpack.h)
 *		name=PATH    a directory in it, which must be there
 *		root=yes     as above
 *		owners=keep  the archive's owners and set-id bits; else this process's own, and none
 *	              answers entries=, file-bytes=
 *	layer-pack    an overlay's upper directory as a layer to stdout
 *		form=zstd|gzip|plain
 *	              answers diff-id=, archive-bytes= (uncompressed), digest=, bytes= (as written)
 *	layer-unpack  a layer from stdin into the directory, which is empty
 *		owners=one   all belongs to this process; else the archive's owners
 *	              answers the same four but bytes=, and entries=, file-bytes=,
 *root-opaque=yes|no layer-digest  answers diff-id=, archive-bytes= of the layer that layer-pack
 *would write raw=yes      of the directory as it is instead, also if that cannot be told in a layer
 *(files called ".wh.x"): for comparing with itself only
 *
 * An answer is lines on TOOL_ANSWER_FD, if that is open.
 */
#include "base/err.h"

struct transfer;

const struct transfer *transfer_find(const char *operation); /* NULL: there is no such operation */
ERR_CHECKED int transfer_run(const struct transfer *t, char **words, struct err *e);
