#pragma once
/*
 * hostpath - opens a host path of a policy, so that no sandbox can redirect it.
 *
 * A component of the path may be in a directory that another sandbox writes to, and be replaced by
 * a symbolic link at any moment. So links are not followed, except those that no sandbox can have
 * created (/var/run, a /home that is a link): they are in a directory that only root may write to,
 * and for root callers, whose sandboxes may write where root may, in "/" or "/var".
 *
 * The path is looked up once. All later checks and mounts use the descriptor.
 */
#include "base/err.h"

/* Opens `path` (absolute, normal) with O_PATH; the caller closes *ret_fd. */
ERR_CHECKED int hostpath_open(const char *path, int *ret_fd, struct err *e);

/* The real path, links resolved; the caller frees it. NULL: none. Only for comparisons. */
char *hostpath_find_real(const char *path);
char *hostpath_of(int fd); /* the same for a descriptor */
