#pragma once
/*
 * treelinks - preserves hard links while a tree is copied.
 *
 * The copy of each file with several names gets one more name, a number, in a special directory at
 * the top of the copy; its further names are linked to that one. So a link needs no path to the
 * first name, which might be too long. The directory is removed at the end.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct treelinks;

/* Borrows from_fd and to_fd, the tops of the trees. */
struct treelinks *treelinks_new(int from_fd, int to_fd, uint64_t max_files);
void treelinks_free(struct treelinks *l);

/*
 * Links to_fd/name to the copy of `st`. *ret_is_linked is false if there is no copy yet, or if it
 * has the maximum number of names: then the caller makes a copy and calls treelinks_remember().
 * Returns -errno, also -EEXIST.
 */
int treelinks_link(struct treelinks *l, const struct stat *st, int to_fd, const char *name,
		   bool *ret_is_linked);

/* Records to_fd/name as the copy of `st`. */
ERR_CHECKED int treelinks_remember(struct treelinks *l, const struct stat *st, int to_fd,
				   const char *name, struct err *e);

/* Removes the special directory. */
ERR_CHECKED int treelinks_finish(struct treelinks *l, struct err *e);
