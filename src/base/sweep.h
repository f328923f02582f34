#pragma once
/*
 * sweep - removes a directory tree with any content.
 *
 * Memory and descriptors are bounded for any depth, names, modes and number of entries. Works on a
 * full disk. The tree is untrusted; it must not change meanwhile, but even if it does nothing
 * outside it is touched.
 */
#include "base/err.h"

/*
 * Removes dir_fd/name, a file or a directory; a missing one is not an error. Follows no link. After
 * a failure part of the tree is left, some of it moved to its top.
 */
ERR_CHECKED int sweep_tree(int dir_fd, const char *name, struct err *e);
