#pragma once
/*
 * layerdirs - the directories of a layer while it is unpacked.
 *
 * Every directory that was made is remembered, for three reasons: its mode and times can only be
 * set when nothing comes into it any more; those that no entry named have to be listed at the end;
 * and symbolic links in the path of an entry are resolved among them, inside the layer, so that
 * the kernel follows none.
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

/* `root_fd` and the limits are borrowed. */
struct layerdirs *layerdirs_new(int root_fd, const struct layer_limits *limits);
void layerdirs_free(struct layerdirs *d);
void layerdirs_freep(struct layerdirs **d);

/* The directory path[0..len), "" being the root. It and all above it are made if they are not
 * there; links on the way are followed inside the layer. */
ERR_CHECKED int layerdirs_enter(struct layerdirs *d, const char *path, size_t len,
				struct layerdirs_place *ret, struct err *e);

/* The same for one that is there already, else ERR_NOT_FOUND. *ret_fd is the caller's to close. */
ERR_CHECKED int layerdirs_find(struct layerdirs *d, const char *path, size_t len,
			       struct layerdirs_node **ret, int *ret_fd, struct err *e);

/* A descriptor of it, now the caller's to close; -errno. */
int layerdirs_open(const struct layerdirs *d, const struct layerdirs_node *node);

bool layerdirs_is_root(const struct layerdirs_node *node);

/* The directory `name` of a directory. NULL: there is none, or it is something else. */
struct layerdirs_node *layerdirs_get(const struct layerdirs *d, const struct layerdirs_node *parent,
				     const char *name);

/* Makes `name` where no directory is. What is there instead goes; as it hid a directory of a lower
 * layer, so will the new one, which becomes opaque. *ret_fd is the caller's to close. */
ERR_CHECKED int layerdirs_make(struct layerdirs *d, const struct layerdirs_place *place,
			       const char *name, struct layerdirs_node **ret, int *ret_fd,
			       struct err *e);

/* An entry names it: this is how it shall be at the end. */
void layerdirs_set(struct layerdirs_node *node, mode_t mode, const struct timespec *mtime);

/* It and all beneath it are gone. It is not the directory that was entered last, nor above it. */
void layerdirs_forget(struct layerdirs_node *node);

/* The attribute by which overlay knows that a directory hides the lower ones; returns -errno. */
int layerdirs_set_opaque(int fd);
bool layerdirs_is_opaque(int fd);

/* Sets modes and times. Nothing can be made afterwards. */
ERR_CHECKED int layerdirs_finish(struct layerdirs *d, struct err *e);

/* After that: what no entry named, parents first, the caller's to free. */
ERR_CHECKED int layerdirs_list_implied(const struct layerdirs *d, char ***ret, unsigned *ret_count,
				       struct err *e);
