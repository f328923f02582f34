#pragma once
/*
 * copylist - the files that a COPY or ADD takes: from a context, or from a stage's root.
 *
 * Sources are names or patterns beneath a root; links are followed within that root only, so
 * nothing outside can be named, not with "..", not with a link. What .dockerignore names is left
 * out.
 *
 * Hostile input: everything beneath the root. Names, depth and number are limited; devices and
 * sockets are refused by name.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct ignore;

#define COPYLIST_ENTRIES_MAX (1u << 20)
#define COPYLIST_NAMES_MAX_BYTES (256u << 20) /* of all paths together */
#define COPYLIST_PATH_MAX_BYTES 4096u
#define COPYLIST_DEPTH_MAX 256u

struct copylist_entry {
	char *path; /* beneath the root; "" is the root itself */
	mode_t mode;
	uint64_t size_bytes;
	struct timespec modified;
	uid_t uid;
	gid_t gid;
	uint64_t inode, device;
	struct timespec changed;
};

/* One name that was given, or one that a pattern matched. */
struct copylist_source {
	char *path;  /* beneath the root, links resolved */
	char *given; /* as named, or as the pattern found it */
	bool is_dir;
	size_t first, count; /* its entries: itself, then what is below, parents first */
};

struct copylist {
	struct copylist_source *sources;
	size_t source_count;
	struct copylist_entry *entries;
	size_t count;
	size_t name_bytes;
};

struct copylist_options {
	int root_fd;
	const struct ignore *ignored;  /* paths beneath the root; NULL: nothing */
	const struct ignore *excluded; /* paths beneath a source; NULL: nothing */
	const char *where;             /* "the context", "stage 'x'": for messages */
};

/* Adds what a word of the instruction names. */
ERR_CHECKED int copylist_add(struct copylist *l, const struct copylist_options *o, const char *word,
			     struct err *e);
void copylist_done(struct copylist *l); /* may run twice, and on a zeroed struct */

/* Changes when any of the files may have. Not a digest: it tells nothing about contents. */
#define COPYLIST_PRINT_BYTES 33u
void copylist_fingerprint(const struct copylist *l, char out[COPYLIST_PRINT_BYTES]);
