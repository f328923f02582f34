#pragma once
/*
 * mask - makes a file or directory appear empty.
 *
 * An empty file and an empty directory are made in a tmpfs of ours, bound over each path that
 * must not be seen, and unlinked: the mounts keep them alive, no name leads to them.
 */
#include "base/err.h"

/* Between begin and end, empty_fd must be writable and attached. */
ERR_CHECKED int mask_begin(int empty_fd, struct err *e);
ERR_CHECKED int mask_end(int empty_fd, struct err *e);

/*
 * Hides the plain file root_fd/name, looked up plainly: only where no one else could have made
 * links. A name that is not there is fine.
 */
ERR_CHECKED int mask_own_file(int empty_fd, int root_fd, const char *name, struct err *e);

/* Hides what place_fd (O_PATH) is; `name` is for messages. */
ERR_CHECKED int mask_place(int empty_fd, int place_fd, const char *name, struct err *e);
