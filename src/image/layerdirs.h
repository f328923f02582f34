#pragma once
/*
 * layerdirs - the directories of a layer while it is unpacked.
 *
 * Every created directory is kept in memory, for three reasons: its mode and times can only be set
 * when its content is complete; directories without an entry have to be listed at the end; and
 * symbolic links in an entry's path are resolved among them, inside the layer, so that the kernel
 * follows none.
 */
#include "base/err.h"
#include "image/layer.h"

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

struct layerdirs;
struct layerdirs_node;

/* An open directory of the layer. */
struct layerdirs_place {
	int fd; /* borrowed until the next call of layerdirs_enter() */
	struct layerdirs_node *node;
};

/* Borrows `root_fd` and the limits. */
struct layerdirs *layerdirs_new(int root_fd, const struct layer_limits *limits);
void layerdirs_free(struct layerdirs *d);
void layerdirs_freep(struct layerdirs **d);

/* Enters path[0..len), "" being the root. Creates it and its parents unless they exist; follows
 * links inside the layer. */
ERR_CHECKED int layerdirs_enter(struct layerdirs *d, const char *path, size_t len,
				struct layerdirs_place *ret, struct err *e);

/* The same for an existing directory, else ERR_NOT_FOUND. The caller closes *ret_fd. */
ERR_CHECKED int layerdirs_find(struct layerdirs *d, const char *path, size_t len,
			       struct layerdirs_node **ret, int *ret_fd, struct err *e);

/* Opens the node; the caller closes the descriptor. Returns -errno. */
int layerdirs_open(const struct layerdirs *d, const struct layerdirs_node *node);

bool layerdirs_is_root(const struct layerdirs_node *node);

/* The subdirectory `name`. NULL: there is none, or it is not a directory. */
struct layerdirs_node *layerdirs_get(const struct layerdirs *d, const struct layerdirs_node *parent,
				     const char *name);

/* Creates `name`, which is not a directory yet, removing what is there; because that hid a
 * directory of a lower layer, the new one becomes opaque. The caller closes *ret_fd. */
ERR_CHECKED int layerdirs_make(struct layerdirs *d, const struct layerdirs_place *place,
			       const char *name, struct layerdirs_node **ret, int *ret_fd,
			       struct err *e);

/* Sets the final attributes, from the directory's own entry. */
void layerdirs_set(struct layerdirs_node *node, mode_t mode, const struct timespec *mtime);

/* Marks it and everything beneath as gone. Not for the last entered directory or its parents. */
void layerdirs_forget(struct layerdirs_node *node);

/* Sets the attribute by which overlay hides lower directories; returns -errno. */
int layerdirs_set_opaque(int fd);
bool layerdirs_is_opaque(int fd);

/* Sets modes and times. Nothing can be created afterwards. */
ERR_CHECKED int layerdirs_finish(struct layerdirs *d, struct err *e);

/* Afterwards: the directories without an entry, parents first; the caller frees the list. */
ERR_CHECKED int layerdirs_list_implied(const struct layerdirs *d, char ***ret, unsigned *ret_count,
				       struct err *e);
