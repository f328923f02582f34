/* treeusage - how much of the disk trees occupy alone; see treeusage.h. */
#include "tree/treeusage.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A name of a file with several. */
struct linked {
	uint64_t inode, link_count, bytes;
};

struct usage {
	uint64_t bytes;
	struct linked *list;
	size_t count, room;
};

static void add_linked(struct usage *u, const struct stat *st)
{
	if (u->count == u->room) {
		u->room = u->room ? u->room * 2 : 64;
		u->list = mem_grow(u->list, u->room, sizeof(*u->list));
	}
	u->list[u->count++] =
		(struct linked){ st->st_ino, st->st_nlink, (uint64_t)st->st_blocks * 512 };
}

/* Takes ownership of fd. Returns -errno. */
static int add_directory(struct usage *u, int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(dir))) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			r = -errno;
			break;
		}
		if (!S_ISDIR(st.st_mode) && st.st_nlink > 1) {
			add_linked(u, &st);
			continue;
		}
		u->bytes += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < TREEUSAGE_DEPTH_MAX) {
			int child_fd = openat(fd, entry->d_name, DIRECTORY_FLAGS);

			r = child_fd < 0 ? -errno : add_directory(u, child_fd, depth + 1);
		}
	}
	if (r == 0 && errno != 0)
		r = -errno;
	(void)closedir(dir);
	return r;
}

static int compare(const void *a, const void *b)
{
	const struct linked *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Adds the files all of whose names were found. */
static void add_whole(struct usage *u)
{
	if (u->count > 1)
		qsort(u->list, u->count, sizeof(*u->list), compare);
	for (size_t i = 0, next; i < u->count; i = next) {
		for (next = i + 1; next < u->count && u->list[next].inode == u->list[i].inode;)
			next++;
		if (next - i == u->list[i].link_count)
			u->bytes += u->list[i].bytes;
	}
}

int treeusage_count(const int *fds, unsigned count, uint64_t *ret_bytes, struct err *e)
{
	struct usage u = { 0 };
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++) {
		int fd = openat(fds[i], ".", DIRECTORY_FLAGS);

		r = fd < 0 ? -errno : add_directory(&u, fd, 0);
	}
	add_whole(&u);
	free(u.list);
	if (r < 0)
		return err_sys(e, -r, "look at the files of a layer");
	*ret_bytes = u.bytes;
	return 0;
}
