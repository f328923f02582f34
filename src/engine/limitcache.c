/*
 * limitcache - directories of limit files that are kept; see limitcache.h.
 *
 * A directory is complete or absent: it is made under another name and renamed, and who comes
 * second uses the first one's. One that is removed before it is bound is missed in silence: that
 * sandbox makes its own.
 */
#include "engine/limitcache.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "engine/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define CACHE_DIR "limits"
#define FORMAT_NUMBER 1 /* of what sandbox/limitfiles writes: another one is another directory */

/* Everything that a file depends on: another machine's memory and cpus, too. */
static bool format_name(const struct limitfiles_figures *f, struct buf *out)
{
	const unsigned char *mask = (const unsigned char *)&f->usable;
	size_t len = sizeof(f->usable);
	struct sysinfo machine;

	if (sysinfo(&machine) < 0)
		return false;
	buf_addf(out, "%d-%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%lx-%d-", FORMAT_NUMBER,
		 f->memory_bytes, f->cpus_milli, f->pids_count, machine.totalram, f->has_v1);
	while (len > 0 && mask[len - 1] == 0)
		len--;
	for (size_t i = 0; i < len; i++)
		buf_addf(out, "%02x", mask[i]);
	return !out->is_cut;
}

static void empty_if_full(int cache_fd)
{
	int fd = openat(cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	struct err ignored;
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir && count > LIMITCACHE_MAX) {
		rewinddir(dir);
		while ((entry = readdir(dir)))
			if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
				(void)!sweep_tree(cache_fd, entry->d_name, &ignored);
	}
	if (dir)
		(void)closedir(dir);
	else
		cleanup_closep(&fd);
}

static bool make(int cache_fd, const char *name, const struct limitfiles_figures *f)
{
	CLEANUP(limitfiles_done) struct limitfiles files;
	cleanup_fd int dir_fd = -1;
	char fresh[32];
	struct err ignored;
	bool is_made;

	limitfiles_init(&files);
	(void)snprintf(fresh, sizeof(fresh), ".new-%d", (int)getpid());
	if (sweep_tree(cache_fd, fresh, &ignored) < 0 || mkdirat(cache_fd, fresh, 0755) < 0)
		return false;
	dir_fd = openat(cache_fd, fresh, O_PATH | O_DIRECTORY | O_CLOEXEC);
	is_made = dir_fd >= 0 && limitfiles_make(&files, dir_fd, f, &ignored) == 0 &&
		  (renameat(cache_fd, fresh, cache_fd, name) == 0 || errno == EEXIST ||
		   errno == ENOTEMPTY);
	(void)!sweep_tree(cache_fd, fresh, &ignored); /* of who came second, or half of one */
	return is_made;
}

static bool make_in(const char *runtime, const char *name, const struct limitfiles_figures *f)
{
	cleanup_free char *cache = mem_format("%s/" CACHE_DIR, runtime);
	mode_t mask = umask(0);
	cleanup_fd int cache_fd = -1;
	bool is_made = false;

	if (file_make_dirs(runtime, 0700) == 0 && (mkdir(cache, 0755) == 0 || errno == EEXIST))
		cache_fd = open(cache, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (cache_fd >= 0) {
		empty_if_full(cache_fd);
		is_made = make(cache_fd, name, f);
	}
	(void)umask(mask);
	return is_made;
}

char *limitcache_get(char *const *environ_list, const struct limitfiles_figures *f)
{
	cleanup_free char *runtime = statedir_runtime(environ_list);
	cleanup_free char *path = NULL;
	cleanup_buf struct buf name;

	buf_init(&name, NAME_MAX);
	if (!runtime || !format_name(f, &name))
		return NULL;
	path = mem_format("%s/" CACHE_DIR "/%s", runtime, buf_text(&name));
	return access(path, X_OK) == 0 || make_in(runtime, buf_text(&name), f) ? take_ptr(path)
									       : NULL;
}
