#pragma once
/*
 * sweep - removes a whole tree, whatever is in it.
 */
#include "base/err.h"

/* dir_fd/name, a file or a directory; one that is not there is fine. No link is followed. */
ERR_CHECKED int sweep_tree(int dir_fd, const char *name, struct err *e);
