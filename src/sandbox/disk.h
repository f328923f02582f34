#pragma once
/*
 * disk - a limit on what a sandbox that stays may write, enforced by the kernel.
 *
 * Where the file system has project quotas, its directory gets one. Elsewhere it gets a file system
 * of its own, of that size, in a sparse file. Both are for the host's root alone; others cannot
 * have such a limit.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum disk_way { DISK_NONE, DISK_QUOTA, DISK_FILE };

/* What this caller can have for the directory; for DISK_NONE *ret_why says why (static text). */
enum disk_way disk_find_way(int dir_fd, const char **ret_why);

/* Limits all below the directory dir_fd, which is empty or was limited before. */
ERR_CHECKED int disk_set_quota(int dir_fd, uint32_t project, uint64_t limit_bytes, struct err *e);

#define DISK_FILE_NAME "image" /* in the directory */

/* Makes the file where it is missing. */
ERR_CHECKED int disk_make_file(int dir_fd, uint64_t size_bytes, struct err *e);
bool disk_has_file(int dir_fd);
ERR_CHECKED int disk_get_file_bytes(int dir_fd, uint64_t *ret, struct err *e);

/* Where it is smaller, makes it so large. While it is not mounted. */
ERR_CHECKED int disk_grow_file(int dir_fd, uint64_t size_bytes, struct err *e);

/*
 * Its file system, as two detached mounts: one for the sandbox, whose owners will be mapped, one
 * for looking at it from outside. It goes away with the last descriptor and mount of it. Never
 * twice at a time: who calls this has the sandbox's lock.
 */
ERR_CHECKED int disk_mount_file(int dir_fd, int *ret_tree_fd, int *ret_plain_fd, struct err *e);
