/* blockdev - which disks hold given paths; see blockdev.h. */
#include "sandbox/blockdev.h"

#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void blockdev_add(struct blockdev_list *list, const char *path)
{
	char sys[96], device[BLOCKDEV_NAME_MAX_BYTES];
	struct stat st;

	if (stat(path, &st) < 0)
		return;
	(void)snprintf(device, sizeof(device), "%u:%u", major(st.st_dev), minor(st.st_dev));
	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%s", device);
	if (access(sys, F_OK) < 0)
		return;
	(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%s/partition", device);
	if (access(sys, F_OK) == 0) {
		(void)snprintf(sys, sizeof(sys), "/sys/dev/block/%s/../dev", device);
		if (file_read_line(AT_FDCWD, sys, device, sizeof(device)) < 0)
			return;
	}
	for (unsigned i = 0; i < list->count; i++)
		if (strcmp(list->device[i], device) == 0)
			return;
	if (list->count < BLOCKDEV_MAX)
		memcpy(list->device[list->count++], device, sizeof(device));
}
