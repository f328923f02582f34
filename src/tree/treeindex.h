#pragma once
/*
 * treeindex - what is known about every entry of a tree that is copied again and again.
 *
 * A node is an entry of the tree: the state in which it was last copied, and where that copy is. An
 * inode number and a time of change (ctime, which programs cannot set) identify a state. The index
 * is a file between two copies (named/layertake), so the second one copies only what has changed.
 *
 * A layer that holds only differences stands on a complete one, the base; so the index also has the
 * names of the base, even if the tree has lost them since.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define TREEINDEX_ENTRIES_MAX (16u << 20) /* about 150 bytes of memory each */
#define TREEINDEX_TEXT_MAX_BYTES 64u

enum treeindex_place {
	TREEINDEX_NOWHERE,
	TREEINDEX_BASE,     /* in the complete layer */
	TREEINDEX_PREVIOUS, /* in the layer of the last copy */
	TREEINDEX_LAYER,    /* in the layer that is being made */
};

enum treeindex_kind { TREEINDEX_NONE, TREEINDEX_DIRECTORY, TREEINDEX_OTHER };

struct treeindex_node {
	struct treeindex_node *parent, *child, *sibling;
	struct treeindex_node *next_by_name, *next_by_inode;
	struct timespec *times; /* of a directory in the layer: access, modification; or NULL */
	uint64_t inode;         /* of the state that was copied; 0: matches no state */
	int64_t ctime_s;
	uint64_t size;
	uint32_t ctime_ns;
	uint32_t mode;
	uint32_t seen_pass, placed_pass;
	uint8_t place;     /* enum treeindex_place */
	uint8_t base_kind; /* enum treeindex_kind: what the base has at this path */
	bool is_base_opaque;
	bool is_opaque;
	bool is_over_base; /* a directory through which the base's entries are visible */
	bool is_unsure;    /* may have changed without a new ctime since it was copied */
	bool needs_attributes;
	bool is_in_table; /* of inodes */
	char name[];
};

struct treeindex;

struct treeindex *treeindex_new(void);
void treeindex_freep(struct treeindex **t);
struct treeindex_node *treeindex_root(struct treeindex *t);
uint64_t treeindex_count(const struct treeindex *t);

/* Returns the child of that name, a new one if there is none. */
struct treeindex_node *treeindex_get(struct treeindex *t, struct treeindex_node *parent,
				     const char *name);
/* The node that follows in the order of the tree, parents first; NULL after the last one. */
struct treeindex_node *treeindex_next(struct treeindex_node *n);
/* The same without the nodes below `n`. */
struct treeindex_node *treeindex_skip(struct treeindex_node *n);

bool treeindex_is_same(const struct treeindex_node *n, const struct stat *st);
/* Records the state; other nodes are found by the inode with treeindex_first(). */
void treeindex_set(struct treeindex *t, struct treeindex_node *n, const struct stat *st);
void treeindex_forget(struct treeindex_node *n); /* matches no state any more, and is nowhere */
/* First of the nodes in the same slot as this inode; follow next_by_inode, and compare. */
struct treeindex_node *treeindex_first(const struct treeindex *t, uint64_t inode);

/* Describes the copy that an index is of. */
struct treeindex_header {
	char sandbox[TREEINDEX_TEXT_MAX_BYTES];  /* its id */
	char base[TREEINDEX_TEXT_MAX_BYTES];     /* name of the layer */
	char previous[TREEINDEX_TEXT_MAX_BYTES]; /* the same as `base` if that is the last copy */
	uint64_t disk_number, top_inode;
	uint64_t base_entries, base_bytes;
};

/*
 * Writes the nodes seen in `pass`, and the names of the base. With `is_base`, the layer that was
 * made is a complete one and becomes the base.
 */
ERR_CHECKED int treeindex_write(struct treeindex *t, const struct treeindex_header *header,
				uint32_t pass, bool is_base, int fd, struct err *e);
/* ERR_CORRUPT if the file is damaged. */
ERR_CHECKED int treeindex_read(int fd, struct treeindex_header *ret_header, struct treeindex **ret,
			       struct err *e);
