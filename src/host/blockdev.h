#pragma once
/*
 * blockdev - the disks that hold given paths, as "major:minor" of whole disks.
 *
 * The kernel applies I/O rate limits to whole disks, so a partition is resolved to its disk through
 * /sys.
 */
#include "base/err.h"

#define BLOCKDEV_MAX 16u
#define BLOCKDEV_NAME_MAX_BYTES 24u

struct blockdev_list {
	char device[BLOCKDEV_MAX][BLOCKDEV_NAME_MAX_BYTES];
	unsigned count;
};

/*
 * Adds the disk that holds `path`. A path in memory (tmpfs) adds nothing. A path whose disk cannot
 * be determined (btrfs, network file systems) is an error, because a rate limit would not apply to
 * it.
 */
ERR_CHECKED int blockdev_add(struct blockdev_list *list, const char *path, struct err *e);
