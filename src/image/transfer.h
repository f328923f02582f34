#pragma once
/*
 * transfer - copies files into and out of sandboxes, and layers to and from archives.
 *
 * Each operation works with the directory TOOL_DIR_FD and runs with the ids that the launcher
 * chose: for a sandbox's files as the sandbox's own root. Arguments are "key=value":
 *
 *   files-pack    writes a tar of one file or tree to stdout
 *     name=PATH     in the directory
 *     as=NAME       its name in the archive; "." makes a directory the root
 *     root=yes      resolve PATH and its links within the directory; else as this
 *                   process would (an absolute PATH is one of the host)
 *     follow=yes    if PATH is a symbolic link, write its target; else the link itself
 *   files-unpack  unpacks a tar from stdin into the directory (image/fileunpack.h)
 *     name=PATH     a directory in it, which must exist
 *     root=yes      as above
 *     owners=keep   use the archive's owners and set-id bits; else our own ids and no bits
 *                 answers entries=, file-bytes=
 *   layer-pack    writes an overlay's upper directory as a layer to stdout
 *     form=zstd|gzip|plain
 *                 answers diff-id=, archive-bytes= (uncompressed), digest=, bytes= (written)
 *   layer-unpack  unpacks a layer from stdin into the directory, which is empty
 *     owners=one    everything belongs to this process; else the archive's owners
 *                 answers diff-id=, archive-bytes=, digest=, entries=, file-bytes=,
 *                 root-opaque=yes|no
 *   layer-digest  answers diff-id=, archive-bytes= of the layer that layer-pack would write
 *     raw=yes       of the unchanged directory instead, even if a layer cannot represent it
 *                   (files called ".wh.x"): only for comparing with itself
 * *   fetch         writes what an address holds to stdout; needs no directory
 *     name=URL      http or https
 *     as=DIGEST     that it has to have; ".": any
 *
 * An answer is lines on TOOL_ANSWER_FD, if that is open.
 */
#include "base/err.h"

#define TRANSFER_FETCH_MAX_BYTES (16ull << 30)

struct transfer;

const struct transfer *transfer_find(const char *operation); /* NULL: there is no such operation */
ERR_CHECKED int transfer_run(const struct transfer *t, char **words, struct err *e);
