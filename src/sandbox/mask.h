#pragma once
/*
 * mask - makes a file or directory appear empty.
 *
 * mask_begin() creates an empty file and an empty directory in a tmpfs of ours; these are bound
 * over each hidden path, and mask_end() unlinks them: the mounts keep them alive, but no name leads
 * to them.
 */
#include "base/err.h"

/* Between begin and end, empty_fd must be writable and attached. */
ERR_CHECKED int mask_begin(int empty_fd, struct err *e);
ERR_CHECKED int mask_end(int empty_fd, struct err *e);

/*
 * Hides the plain file root_fd/name. Looks the name up without link checks, so it is only for trees
 * where nobody else can have created links. A missing name is ignored.
 */
ERR_CHECKED int mask_own_file(int empty_fd, int root_fd, const char *name, struct err *e);

/* Hides the file or directory that place_fd (O_PATH) refers to; `name` is for messages. */
ERR_CHECKED int mask_place(int empty_fd, int place_fd, const char *name, struct err *e);
