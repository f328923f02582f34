/* treelinks - preserves hard links while a tree is copied; see treelinks.h. */
#include "tree/treelinks.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define SLOTS_FIRST 256u
#define NAME_MAX_BYTES 32

struct seen {
	dev_t dev;
	ino_t ino;
	uint64_t number; /* from 1; 0: the slot is free */
};

struct treelinks {
	int from_fd;
	int to_fd;
	uint64_t max_files;
	struct seen *slots;
	size_t slot_count; /* a power of two, at least twice `count` */
	uint64_t count;
	int dir_fd; /* -1: not created yet */
	char dir_name[NAME_MAX_BYTES];
};

struct treelinks *treelinks_new(int from_fd, int to_fd, uint64_t max_files)
{
	struct treelinks *l = mem_alloc(sizeof(*l));

	*l = (struct treelinks){
		.from_fd = from_fd, .to_fd = to_fd, .max_files = max_files, .dir_fd = -1
	};
	l->slot_count = SLOTS_FIRST;
	l->slots = mem_alloc(l->slot_count * sizeof(*l->slots));
	return l;
}

void treelinks_free(struct treelinks *l)
{
	if (!l)
		return;
	cleanup_closep(&l->dir_fd);
	free(l->slots);
	free(l);
}

/*
 * The file's slot, or a free one. The file system chooses inode numbers, so a simple hash will do.
 */
static struct seen *find(const struct treelinks *l, dev_t dev, ino_t ino)
{
	size_t at = (size_t)((uint64_t)(ino ^ (dev << 32)) * 0x9e3779b97f4a7c15u >> 20);

	for (;; at++) {
		struct seen *s = &l->slots[at & (l->slot_count - 1)];

		if (s->number == 0 || (s->dev == dev && s->ino == ino))
			return s;
	}
}

static void grow(struct treelinks *l)
{
	struct seen *old = l->slots;
	size_t old_count = l->slot_count;

	l->slot_count *= 2;
	l->slots = mem_alloc(l->slot_count * sizeof(*l->slots));
	for (size_t i = 0; i < old_count; i++)
		if (old[i].number)
			*find(l, old[i].dev, old[i].ino) = old[i];
	free(old);
}

/* Chooses a name that neither tree contains. */
static int make_directory(struct treelinks *l, struct err *e)
{
	struct stat st;

	for (unsigned i = 0;; i++) {
		(void)snprintf(l->dir_name, sizeof(l->dir_name), ".links-%u", i);
		if (fstatat(l->from_fd, l->dir_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (mkdirat(l->to_fd, l->dir_name, 0700) == 0)
			break;
		if (errno != EEXIST)
			return err_sys(e, errno, "make a directory for hard links");
	}
	l->dir_fd = openat(l->to_fd, l->dir_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->dir_fd < 0)
		return err_sys(e, errno, "open the directory for hard links");
	return 0;
}

static void format_name(const struct seen *s, char out[NAME_MAX_BYTES])
{
	(void)snprintf(out, NAME_MAX_BYTES, "%" PRIu64, s->number);
}

int treelinks_link(struct treelinks *l, const struct stat *st, int to_fd, const char *name,
		   bool *ret_is_linked)
{
	const struct seen *s = find(l, st->st_dev, st->st_ino);
	char number[NAME_MAX_BYTES];

	*ret_is_linked = false;
	if (s->number == 0)
		return 0;
	format_name(s, number);
	if (linkat(l->dir_fd, number, to_fd, name, 0) < 0)
		return errno == EMLINK ? 0 : -errno;
	*ret_is_linked = true;
	return 0;
}

static int add(struct treelinks *l, const struct stat *st, struct seen **ret, struct err *e)
{
	if (l->count >= l->max_files)
		return err_set(e, ERR_LIMIT, "more than %" PRIu64 " files have several names",
			       l->max_files);
	if (l->dir_fd < 0 && make_directory(l, e) < 0)
		return -1;
	if (2 * ++l->count > l->slot_count)
		grow(l);
	*ret = find(l, st->st_dev, st->st_ino);
	**ret = (struct seen){ st->st_dev, st->st_ino, l->count };
	return 0;
}

int treelinks_remember(struct treelinks *l, const struct stat *st, int to_fd, const char *name,
		       struct err *e)
{
	struct seen *s = find(l, st->st_dev, st->st_ino);
	char number[NAME_MAX_BYTES];

	if (s->number == 0 && add(l, st, &s, e) < 0)
		return -1;
	format_name(s, number);
	(void)unlinkat(l->dir_fd, number, 0); /* exists if that copy's link count is at the
					       * maximum */
	if (linkat(to_fd, name, l->dir_fd, number, 0) < 0)
		return err_sys(e, errno, "link to a file with several names");
	return 0;
}

int treelinks_finish(struct treelinks *l, struct err *e)
{
	if (l->dir_fd < 0)
		return 0;
	cleanup_closep(&l->dir_fd);
	return sweep_tree(l->to_fd, l->dir_name, e);
}
