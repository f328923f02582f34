#pragma once
/*
 * sweep - removes a whole tree, whatever is in it.
 *
 * However deep it is, whatever its names, modes and number of entries: memory and descriptors are
 * the same for all. Works with a full disk. The tree may be a stranger's; it must not change
 * meanwhile, but even if it does nothing outside of it is touched.
 */
#include "base/err.h"

/*
 * dir_fd/name, a file or a directory; one that is not there is fine. No link is followed. After a
 * failure what is left is a part of the tree, some of it moved to its top.
 */
ERR_CHECKED int sweep_tree(int dir_fd, const char *name, struct err *e);
