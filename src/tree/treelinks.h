#pragma once
/*
 * treelinks - files with several names, while a tree is copied.
 *
 * The copy of each such file gets one more name, its number, in a directory of their own at the
 * top of the copy; its further names are links to that one. So a name can be linked wherever it
 * lies, without a path that may be too long to be one. The directory goes at the end.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct treelinks;

/* from_fd and to_fd, the tops of the trees, are borrowed. */
struct treelinks *treelinks_new(int from_fd, int to_fd, uint64_t max_files);
void treelinks_free(struct treelinks *l);
void treelinks_freep(struct treelinks **l);

/*
 * to_fd/name becomes another name of the copy of `st`. *ret_is_linked is false if there is no copy
 * yet, or if it has as many names as it can have: then the caller makes one and has it remembered.
 * -errno, -EEXIST among them.
 */
int treelinks_link(struct treelinks *l, const struct stat *st, int to_fd, const char *name,
		   bool *ret_is_linked);

/* to_fd/name is a copy of `st`. */
ERR_CHECKED int treelinks_remember(struct treelinks *l, const struct stat *st, int to_fd,
				   const char *name, struct err *e);

/* Removes the directory. */
ERR_CHECKED int treelinks_finish(struct treelinks *l, struct err *e);
