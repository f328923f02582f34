#pragma once
/*
 * target - a place in the new root to mount something over.
 *
 * Symbolic links are followed inside the root only, so an image's own links lead nowhere else.
 */
#include "base/err.h"

#include <sys/types.h>

/* Makes the directories above `target` (absolute) and the place itself, where they are missing. */
ERR_CHECKED int target_make(int root_fd, const char *target, mode_t type, struct err *e);

/* As above for a directory; one that is made gets `mode`. */
ERR_CHECKED int target_make_dir(int root_fd, const char *target, mode_t mode, struct err *e);

/* The user's own: made where it is missing, and then it belongs to the user. */
ERR_CHECKED int target_make_user_dir(int root_fd, const char *target, uid_t uid, gid_t gid,
				     struct err *e);
