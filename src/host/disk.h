#pragma once
/*
 * disk - limits the disk space of a named sandbox, enforced by the kernel.
 *
 * If the file system has project quotas, the sandbox's directory gets one. Otherwise the sandbox
 * gets an ext4 file system of that size in a sparse file. Both need root on the host; other callers
 * cannot have such a limit.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum disk_way { DISK_NONE, DISK_QUOTA, DISK_FILE };

/* The mechanism available to this caller; for DISK_NONE *ret_why is the reason (static text). */
enum disk_way disk_find_way(int dir_fd, const char **ret_why);

/* Sets the quota on everything below dir_fd, which must be empty or have had a quota before. */
ERR_CHECKED int disk_set_quota(int dir_fd, uint32_t project, uint64_t limit_bytes, struct err *e);

#define DISK_FILE_NAME "image" /* in the directory */

/* Creates the file unless it exists. */
ERR_CHECKED int disk_make_file(int dir_fd, uint64_t size_bytes, struct err *e);
bool disk_has_file(int dir_fd);
ERR_CHECKED int disk_get_file_bytes(int dir_fd, uint64_t *ret, struct err *e);

/* Grows the file and its file system to size_bytes if they are smaller. It must not be mounted. */
ERR_CHECKED int disk_grow_file(int dir_fd, uint64_t size_bytes, struct err *e);

/*
 * Mounts the file system as two detached mounts: one for the sandbox, whose owners the caller will
 * map, one to read it from outside. The kernel unmounts it with the last descriptor and mount.
 * Callers hold the sandbox's lock, so the file is never mounted twice at a time.
 */
ERR_CHECKED int disk_mount_file(int dir_fd, int *ret_tree_fd, int *ret_plain_fd, struct err *e);
