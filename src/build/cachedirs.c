/* cachedirs - directories that stay from build to build; see cachedirs.h. */
#include "build/cachedirs.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "state/statedir.h"
#include "tree/owner.h"
#include "tree/treeusage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct cache {
	char name[NAME_MAX + 1];
	time_t used_s;
};

int cachedirs_hold(const char *path, int flock_operation, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* goes with this process */

	if (fd < 0 || flock(fd, flock_operation) < 0)
		return err_sys(e, errno, "lock a cache");
	(void)futimens(fd, NULL);
	return 0;
}

static int by_use(const void *a, const void *b)
{
	const struct cache *x = a, *y = b;

	return x->used_s < y->used_s ? 1 : x->used_s > y->used_s ? -1 : 0;
}

/* Latest first; the caller frees it. */
static struct cache *list_all(DIR *dir, size_t *ret_count)
{
	struct cache *list = NULL;
	const struct dirent *entry;
	struct stat st;

	*ret_count = 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		list = mem_grow(list, *ret_count + 1, sizeof(*list));
		(void)snprintf(list[*ret_count].name, sizeof(list->name), "%s", entry->d_name);
		list[(*ret_count)++].used_s = st.st_mtim.tv_sec;
	}
	if (*ret_count > 1)
		qsort(list, *ret_count, sizeof(*list), by_use);
	return list;
}

void cachedirs_prune(const struct ak *ak)
{
	cleanup_free char *path = NULL;
	cleanup_free struct cache *list = NULL;
	uint64_t sum_bytes = 0;
	struct err ignored;
	size_t count = 0;
	DIR *dir = NULL;

	if (statedir_path(ak, CACHEDIRS_DIR, &path, &ignored) == 0)
		dir = opendir(path);
	if (!dir)
		return;
	list = list_all(dir, &count);
	for (size_t i = 0; i < count; i++) {
		cleanup_fd int fd = openat(dirfd(dir), list[i].name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		uint64_t bytes = 0;

		if (fd >= 0 && treeusage_count(&fd, 1, &bytes, &ignored) == 0)
			sum_bytes += bytes;
		if ((i >= CACHEDIRS_MAX || sum_bytes > CACHEDIRS_MAX_BYTES) && fd >= 0 &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)!owner_sweep(dirfd(dir), list[i].name, &ignored);
	}
	(void)closedir(dir);
}
