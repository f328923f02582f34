#pragma once
/*
 * target - mount points in the new root.
 *
 * Symbolic links are resolved inside the root only, so an image's links cannot lead out of it.
 */
#include "base/err.h"

#include <sys/types.h>

/* Creates `target` (absolute), of this file type, and its parent directories, unless they exist. */
ERR_CHECKED int target_make(int root_fd, const char *target, mode_t type, struct err *e);

/* Like target_make() for a directory; `mode` applies if it is created. */
ERR_CHECKED int target_make_dir(int root_fd, const char *target, mode_t mode, struct err *e);

/* Unless `target` exists, creates the directory and gives it to uid:gid. */
ERR_CHECKED int target_make_user_dir(int root_fd, const char *target, uid_t uid, gid_t gid,
				     struct err *e);
