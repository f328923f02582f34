#pragma once
/*
 * rootspec - what a sandbox's root is made of, for any backend: the directories that hold its
 * layers and its disk, and what it shows of the host.
 *
 * Who starts a sandbox finds these and checks them (workspace/hostfiles, named/rootplan,
 * engine/images); a backend mounts them. Everything in the layers and in the host's directories is
 * hostile, so whoever mounts them compares identities and resolves names inside the root only.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- what it shows of the host ---- */

enum rootspec_kind {
	ROOTSPEC_HOST,  /* a file or directory of the host */
	ROOTSPEC_TMPFS, /* an empty directory in memory */
};

/* A mount that the policy adds to the root. */
struct rootspec_place {
	enum rootspec_kind kind;
	const char *target; /* absolute, inside; borrowed */

	/* ROOTSPEC_HOST */
	const char *source; /* host path; borrowed */
	char *real_path;    /* `source` with links resolved; the creator of the place frees it */
	int tree_fd;        /* detached tree made by a root caller; -1: open `source` here */
	dev_t device;       /* identity of `source` when it was checked; another file is refused */
	ino_t inode;
	bool is_dir;
	bool is_read_only;
	bool is_ours; /* may lie in our own directory */

	/* ROOTSPEC_TMPFS */
	uint64_t size_bytes;
};

/* Protection for a file or directory inside a place. */
enum rootspec_care {
	ROOTSPEC_PINNED,    /* cannot be renamed or removed */
	ROOTSPEC_PROTECTED, /* pinned and read-only */
	ROOTSPEC_MASKED,    /* appears empty */
};

struct rootspec_guard {
	enum rootspec_care care;
	const char *target; /* the place's target */
	char *name;         /* path below it; a missing file is ignored */
};

/* Borrowed; parents before children in both lists. */
struct rootspec_shown {
	const struct rootspec_place *places;
	const struct rootspec_guard *guards;
	unsigned place_count, guard_count;
};

/* ---- what it is an overlay of ---- */

/* The host directories that a root is mounted from. */
enum rootspec_source {
	ROOTSPEC_LAYERS,      /* holds the image's layers */
	ROOTSPEC_CHECKPOINTS, /* holds checkpoints' layers */
	ROOTSPEC_DISK,        /* a named sandbox's own; "upper" and "work" are created in it */

	ROOTSPEC_SOURCE_COUNT
};

#define ROOTSPEC_LAYERS_MAX 192u /* of the image and of checkpoints together */

struct rootspec_dir {
	const char *path; /* NULL: not needed */
	dev_t device;     /* identity of that path when it was checked */
	ino_t inode;
	/*
	 * A root caller's detached copy of the directory; the backend maps its owners and passes
	 * it inside. -1: the path is opened inside.
	 */
	int tree_fd;
};

struct rootspec_image {
	struct rootspec_dir dirs[ROOTSPEC_SOURCE_COUNT];
	/* names in the first two directories, highest layer first, separated by ':'; may be NULL */
	const char *layers;
	const char *checkpoints;
};

static inline void rootspec_init(struct rootspec_image *i) /* no directories, no layers */
{
	*i = (struct rootspec_image){ 0 };
	for (unsigned n = 0; n < ROOTSPEC_SOURCE_COUNT; n++)
		i->dirs[n].tree_fd = -1;
}
