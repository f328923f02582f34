#pragma once
/*
 * blockdev - which disks hold given paths, as "major:minor" of whole disks.
 *
 * Rate limits apply to whole disks: a partition is looked up in /sys and stands for its disk.
 */
#include "base/err.h"

#define BLOCKDEV_MAX 16u
#define BLOCKDEV_NAME_MAX_BYTES 24u

struct blockdev_list {
	char device[BLOCKDEV_MAX][BLOCKDEV_NAME_MAX_BYTES];
	unsigned count;
};

/*
 * Adds the disk under `path`. Files in memory have none and add nothing; a path whose disk
 * cannot be told (btrfs, network file systems) is an error, since its limit would not hold.
 */
ERR_CHECKED int blockdev_add(struct blockdev_list *list, const char *path, struct err *e);
