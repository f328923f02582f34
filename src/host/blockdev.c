/* blockdev - the disks that hold given paths; see blockdev.h. */
#include "host/blockdev.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS_MAGIC 0x01021994
#define RAMFS_MAGIC 0x858458f6
#define PATH_MAX_BYTES 96

static bool is_in_memory(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 &&
	       ((unsigned long)fs.f_type == TMPFS_MAGIC || (unsigned long)fs.f_type == RAMFS_MAGIC);
}

static int find_disk(const char *path, char device[BLOCKDEV_NAME_MAX_BYTES], struct err *e)
{
	char sys[PATH_MAX_BYTES];
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	(void)snprintf(device, BLOCKDEV_NAME_MAX_BYTES, "%u:%u", major(st.st_dev),
		       minor(st.st_dev));
	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%s", device);
	if (access(sys, F_OK) < 0)
		return err_set(e, ERR_UNSUPPORTED,
			       "a rate for disks cannot be kept: '%s' lies on a file system that "
			       "does not tell its disk",
			       path);
	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%s/partition", device);
	if (access(sys, F_OK) < 0)
		return 0;
	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%s/../dev", device);
	r = file_read_line(AT_FDCWD, sys, device, BLOCKDEV_NAME_MAX_BYTES);
	if (r < 0)
		return err_sys(e, -r, "find the disk of '%s'", path);
	return 0;
}

int blockdev_add(struct blockdev_list *list, const char *path, struct err *e)
{
	char device[BLOCKDEV_NAME_MAX_BYTES];

	if (is_in_memory(path) || access(path, F_OK) < 0)
		return 0;
	if (find_disk(path, device, e) < 0)
		return -1;
	for (unsigned i = 0; i < list->count; i++)
		if (strcmp(list->device[i], device) == 0)
			return 0;
	if (list->count == BLOCKDEV_MAX)
		return err_set(e, ERR_LIMIT, "a rate for more than %u disks", BLOCKDEV_MAX);
	memcpy(list->device[list->count++], device, sizeof(device));
	return 0;
}
