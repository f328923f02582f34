#pragma once
/* layerentry - creates one entry of a layer's archive as a file. */
#include "base/err.h"
#include "image/layer.h"
#include "image/layerdirs.h"
#include "image/layerstream.h"

#include <archive.h>
#include <archive_entry.h>

/* All pointers are borrowed. */
struct layerentry_target {
	struct layerdirs *dirs;
	struct archive *archive;          /* for the contents of files */
	const struct layerstream *stream; /* has the reason if reading fails */
	const struct layer_limits *limits;
	unsigned flags; /* enum layer_flags */
	uid_t uid;      /* owner of the files that this process creates */
	gid_t gid;

	/* updated by layerentry_make() */
	uint64_t file_bytes;
	uint64_t room_bytes; /* may be written before the free space is checked again */
	bool is_root_opaque;
};

/* Messages begin with the entry's name. */
ERR_CHECKED int layerentry_make(struct layerentry_target *t, struct archive_entry *entry,
				struct err *e);

/* Sets `e` after libarchive has failed. */
int layerentry_explain(const struct layerentry_target *t, struct err *e);
