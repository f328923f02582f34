#pragma once
/*
 * hostpath - opens a path of the host that a policy names, so that no sandbox can lead it
 * elsewhere.
 *
 * A component of the path may lie in a directory that some other sandbox writes to, and be
 * exchanged for a symbolic link at any moment. So links are not followed, except those that no
 * sandbox can have made (/var/run, a /home that is a link): they lie in a directory that only root
 * may write to, and for root callers, whose sandboxes may write where root may, in "/" or "/var".
 *
 * The path is looked up once. Everything that is checked or mounted afterwards uses the descriptor.
 */
#include "base/err.h"

/* An O_PATH descriptor of whatever `path` (absolute, normal) is, now the caller's to close. */
ERR_CHECKED int hostpath_open(const char *path, int *ret_fd, struct err *e);

/* Where `path` leads, links followed, the caller's to free; NULL: nowhere. For comparing alone. */
char *hostpath_find_real(const char *path);
char *hostpath_of(int fd); /* the same for what is open */
