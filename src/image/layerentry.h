#pragma once
/*
 * layerentry - one entry of a layer's archive becomes a file.
 */
#include "base/err.h"
#include "image/layer.h"
#include "image/layerdirs.h"
#include "image/layerstream.h"

#include <archive.h>
#include <archive_entry.h>

/* All is borrowed. */
struct layerentry_target {
	struct layerdirs *dirs;
	struct archive *archive;          /* for the contents of files */
	const struct layerstream *stream; /* knows why reading failed */
	const struct layer_limits *limits;
	unsigned flags; /* enum layer_flags */
	uid_t uid;      /* whose the files are that this process makes */
	gid_t gid;

	/* kept up to date */
	uint64_t file_bytes;
	uint64_t room_bytes; /* that may be written before the file system is looked at again */
	bool is_root_opaque;
};

/* The words begin with the entry's name. */
ERR_CHECKED int layerentry_make(struct layerentry_target *t, struct archive_entry *entry,
				struct err *e);

/* Fills `e` after libarchive has failed. */
int layerentry_explain(const struct layerentry_target *t, struct err *e);
