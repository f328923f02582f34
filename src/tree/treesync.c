/*
 * treesync - copies a tree in several passes; see treesync.h.
 *
 * Theory of operation. A pass walks the tree with an explicit stack of levels; a level is a
 * directory whose names have been read. Each entry has a node in the index. If the node's state is
 * the entry's (inode, ctime, type, size), its copy is good where it is: in the new layer, or in the
 * base, if the layer holds differences only and the base's directory is visible there. A good copy
 * in another place, found by path or by inode, becomes a hard link, which also keeps the hard links
 * of the tree, and lets renamed directories keep their copies. Everything else is copied.
 *
 * Layers are immutable, so they may share files; overlay copies a file up before anybody writes to
 * it. The tree itself, which the sandbox writes to, is never linked to.
 *
 * Which states are sure. A change gives a file a new ctime, except a second change within the same
 * tick of the kernel's clock, and a store to a page of a shared mapping that is writable already.
 * So a file that has changed shortly before or after the pass began, and one that was mapped when
 * it began, is copied again in the next pass; in the last pass nothing changes. These files are
 * written to the index without a state.
 *
 * Differences. A directory is created in the layer only if it or something below it differs from
 * the base. Names of the base that the tree does not have get a whiteout, in treesync_settle(). A
 * directory that is opaque, while the base's is not, hides the base: all below it is in the layer.
 *
 * Directories get their attributes when the walk leaves them, as in tree/treecopy; one that is
 * changed again in a later pass loses them until then.
 *
 * Hostile input: the tree, which changes in every way while we walk. No link is followed; a level
 * beyond the last LEVELS_OPEN is reopened as ".." of its child and must be the same directory.
 */
#include "tree/treesync.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "tree/treecopy.h"
#include "tree/treefile.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define LEVELS_OPEN 64u
#define SHOWN_MAX_BYTES 200 /* of a name in a message */
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define UPDATE_MIN_BYTES (1 << 20)   /* of a file whose copy is compared and updated */
#define SLACK_NS 100000000ll         /* more than any tick */
#define SLACK_COARSE_NS 2000000000ll /* where times have no fractions of a second */

struct level {
	struct treeindex_node *node;
	struct stat st; /* when the names were read */
	char *names;    /* NUL-terminated, the last one empty */
	char *next;
	int from_fd; /* -1: closed */
	int to_fd;   /* -1: not open, or not in the layer */
};

struct treesync {
	struct treesync_options o;
	struct treesync_pass pass;
	uint32_t pass_number;
	struct treesync_result result;
	struct treefile_copier copier;
	struct level *levels;
	size_t level_count, level_room;
	uint64_t *mapped; /* inodes */
	size_t mapped_count, mapped_room;
	struct { /* the directory of the last link's source */
		const struct treeindex_node *node;
		uint8_t place;
		int fd;
	} source;
};

static void level_close(struct level *l)
{
	cleanup_closep(&l->from_fd);
	cleanup_closep(&l->to_fd);
}

static void drop_levels(struct treesync *s)
{
	for (size_t i = 0; i < s->level_count; i++) {
		level_close(&s->levels[i]);
		free(s->levels[i].names);
	}
	s->level_count = 0;
}

struct treesync *treesync_new(const struct treesync_options *o)
{
	struct treesync *s = mem_alloc(sizeof(*s));
	struct treeindex_node *root = treeindex_root(o->index);

	assert(root); /* every index has one */
	s->o = *o;
	s->source.fd = -1;
	s->copier.pace.bytes_per_s = o->bytes_per_s;
	for (struct treeindex_node *n = root; n; n = treeindex_next(n)) {
		if (n->place == TREEINDEX_PREVIOUS && o->previous_fd < 0)
			treeindex_forget(n);
		if (n->place == TREEINDEX_BASE && o->base_fd < 0)
			treeindex_forget(n);
		if (o->is_full)
			n->base_kind = TREEINDEX_NONE;
	}
	root->place = TREEINDEX_LAYER;
	root->needs_attributes = true;
	return s;
}

void treesync_freep(struct treesync **s)
{
	if (!*s)
		return;
	drop_levels(*s);
	free((*s)->levels);
	free((*s)->mapped);
	cleanup_closep(&(*s)->source.fd);
	treefile_copier_done(&(*s)->copier);
	free(*s);
	*s = NULL;
}

uint32_t treesync_last_pass(const struct treesync *s)
{
	return s->pass_number;
}

static int fail(struct err *e, int sys, const char *what, const char *name)
{
	(void)err_sys(e, sys, "%s '%.*s'", what, SHOWN_MAX_BYTES, name);
	err_sanitize(e);
	return -1;
}

/* May the next pass succeed? Not if the disk is full. */
static bool may_pass(const struct treesync *s, int sys)
{
	return !s->pass.is_last && sys != ENOSPC && sys != EDQUOT && sys != EIO && sys != EMFILE &&
	       sys != ENFILE && sys != ENOMEM && sys != EROFS;
}

/* ---- what is sure ---- */

static int64_t to_ns(const struct timespec *t)
{
	return (int64_t)t->tv_sec * 1000000000LL + t->tv_nsec;
}

static bool is_recent(const struct treesync *s, const struct stat *st)
{
	int64_t slack = st->st_ctim.tv_nsec % 1000000 == 0 ? SLACK_COARSE_NS : SLACK_NS;

	return to_ns(&st->st_ctim) > to_ns(&s->pass.began) - slack;
}

static int compare_inodes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool is_mapped(const struct treesync *s, uint64_t inode)
{
	return s->mapped_count > 0 &&
	       bsearch(&inode, s->mapped, s->mapped_count, sizeof(*s->mapped), compare_inodes);
}

/* Sorts the list and removes duplicates. */
static void order_mapped(struct treesync *s)
{
	size_t kept = 0;

	if (s->mapped_count > 1)
		qsort(s->mapped, s->mapped_count, sizeof(*s->mapped), compare_inodes);
	for (size_t i = 0; i < s->mapped_count; i++)
		if (kept == 0 || s->mapped[kept - 1] != s->mapped[i])
			s->mapped[kept++] = s->mapped[i];
	s->mapped_count = kept;
}

static void add_mapped(struct treesync *s, uint64_t inode)
{
	if (s->mapped_count == s->mapped_room) {
		s->mapped_room = s->mapped_room ? s->mapped_room * 2 : 64;
		s->mapped = mem_grow(s->mapped, s->mapped_room, sizeof(*s->mapped));
	}
	s->mapped[s->mapped_count++] = inode;
}

/* Mapped files of earlier passes stay in the list: they may have been unmapped since. */
static void find_mapped(struct treesync *s)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	const char *row = s->pass.mapped;

	for (size_t left = s->pass.mapped_len; left > 0;) {
		char *path = NULL;
		struct stat st;
		int fd;

		add_mapped(s, strtoull(row, &path, 10));
		path += *path == ' ';
		fd = (int)syscall(SYS_openat2, s->o.from_fd, path, &how, sizeof(how));
		if (fd >= 0 && fstat(fd, &st) == 0)
			add_mapped(s, st.st_ino);
		cleanup_closep(&fd);
		left -= strlen(row) + 1;
		row += strlen(row) + 1;
	}
	order_mapped(s);
}

/* Is the node's copy one of the state `st`? */
static bool is_good(const struct treesync *s, const struct treeindex_node *n, const struct stat *st)
{
	if (n->place == TREEINDEX_NOWHERE || !treeindex_is_same(n, st))
		return false;
	return n->placed_pass == s->pass_number || (!n->is_unsure && !is_mapped(s, n->inode));
}

/* Is it what the index had when it was read? Whiteouts are alike, whatever their times are. */
static bool is_as_before(const struct treesync *s, const struct treeindex_node *n,
			 const struct stat *st)
{
	if (n->place != TREEINDEX_BASE && n->place != TREEINDEX_PREVIOUS)
		return false;
	return treefile_is_whiteout(st) ? S_ISCHR(n->mode) : is_good(s, n, st);
}

/* ---- directories of layers ---- */

static int layer_fd(const struct treesync *s, uint8_t place)
{
	return place == TREEINDEX_BASE       ? s->o.base_fd
	       : place == TREEINDEX_PREVIOUS ? s->o.previous_fd
					     : s->o.to_fd;
}

/* Opens a directory of a layer by its node. Its path may be longer than one system call takes. */
static int open_directory(const struct treesync *s, const struct treeindex_node *n, uint8_t place)
{
	cleanup_free const struct treeindex_node **up = NULL;
	cleanup_fd int fd = openat(layer_fd(s, place), ".", DIRECTORY_FLAGS);
	size_t count = 0, room = 0;

	for (; n->parent; n = n->parent) {
		if (count == room) {
			room = room ? room * 2 : 32;
			up = mem_grow(up, room, sizeof(*up));
		}
		up[count++] = n;
	}
	while (fd >= 0 && count > 0) {
		int next_fd = openat(fd, up[--count]->name, DIRECTORY_FLAGS);
		int sys = errno;

		(void)close(fd);
		fd = next_fd;
		errno = sys;
	}
	return fd < 0 ? -errno : take_fd(&fd);
}

static struct level *top(struct treesync *s)
{
	return &s->levels[s->level_count - 1];
}

/* Clears attributes and mode until the walk leaves it: see the top comment. Returns -errno. */
static int open_up(struct treesync *s, int fd)
{
	int r = treefile_clear_attributes(&s->copier, fd);

	if (r == 0 && fchmod(fd, 0700) < 0)
		r = -errno;
	return r;
}

/* Creates the level's directory in the layer. The level above is prepared. */
static int create_level(struct treesync *s, size_t i)
{
	struct level *l = &s->levels[i];

	assert(i > 0);
	if (mkdirat(s->levels[i - 1].to_fd, l->node->name, 0700) < 0)
		return -errno;
	l->node->place = TREEINDEX_LAYER;
	l->node->needs_attributes = true;
	l->to_fd = openat(s->levels[i - 1].to_fd, l->node->name, DIRECTORY_FLAGS);
	return l->to_fd < 0 ? -errno : open_up(s, l->to_fd);
}

static int prepare_level(struct treesync *s, size_t i)
{
	struct level *l = &s->levels[i];
	int r = 0;

	if (l->node->place != TREEINDEX_LAYER)
		return create_level(s, i);
	if (l->to_fd < 0) {
		l->to_fd = open_directory(s, l->node, TREEINDEX_LAYER);
		r = l->to_fd < 0 ? l->to_fd : 0;
	}
	if (r == 0 && !l->node->needs_attributes) {
		l->node->needs_attributes = true;
		r = open_up(s, l->to_fd);
	}
	return r;
}

/* Makes the topmost directory one that can be written to, in the layer. Returns -errno. */
static int prepare(struct treesync *s)
{
	size_t i = s->level_count - 1;
	int r = 0;

	while (i > 0 && s->levels[i].node->place != TREEINDEX_LAYER)
		i--;
	for (; i < s->level_count && r == 0; i++)
		r = prepare_level(s, i);
	return r;
}

/* ---- entries other than directories ---- */

/* The entry of the new layer is gone, or will be. */
static void forget_below(struct treeindex_node *top_node)
{
	struct treeindex_node *end = treeindex_skip(top_node);

	for (struct treeindex_node *n = top_node; n != end; n = treeindex_next(n))
		if (n->place == TREEINDEX_LAYER)
			treeindex_forget(n);
}

/* Removes what the new layer has at this name. The directory is prepared. */
static int clear(struct treesync *s, struct treeindex_node *n, struct err *e)
{
	if (n->place != TREEINDEX_LAYER)
		return 0;
	forget_below(n);
	return sweep_tree(top(s)->to_fd, n->name, e);
}

/* Returns -errno; any failure means that the file has to be copied. */
static int link_to(struct treesync *s, const struct treeindex_node *from, const struct stat *st,
		   const char *name)
{
	struct stat linked;
	int fd;

	if (s->source.fd < 0 || s->source.node != from->parent || s->source.place != from->place) {
		cleanup_closep(&s->source.fd);
		fd = open_directory(s, from->parent, from->place);
		if (fd < 0)
			return fd;
		s->source.node = from->parent;
		s->source.place = from->place;
		s->source.fd = fd;
	}
	if (linkat(s->source.fd, from->name, top(s)->to_fd, name, 0) < 0)
		return -errno;
	if (fstatat(top(s)->to_fd, name, &linked, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (linked.st_mode & S_IFMT) == (st->st_mode & S_IFMT) && linked.st_size == st->st_size)
		return 0;
	(void)unlinkat(top(s)->to_fd, name, 0);
	return -ESTALE;
}

static const struct treeindex_node *find_copy(const struct treesync *s,
					      const struct treeindex_node *n, const struct stat *st)
{
	const struct treeindex_node *found;

	if (is_good(s, n, st))
		return n;
	for (found = treeindex_first(s->o.index, st->st_ino); found; found = found->next_by_inode)
		if (is_good(s, found, st))
			return found;
	return NULL;
}

static void note_copy(struct treesync *s, struct treeindex_node *n, const struct stat *st,
		      bool is_unsure)
{
	treeindex_set(s->o.index, n, st);
	n->place = TREEINDEX_LAYER;
	n->placed_pass = s->pass_number;
	n->is_unsure = is_unsure;
}

static int copy_content(struct treesync *s, int from_fd, const struct stat *st, const char *name)
{
	cleanup_fd int fd = openat(top(s)->to_fd, name,
				   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t bytes = 0;
	int r;

	if (fd < 0)
		return -errno;
	r = treefile_copy_content(&s->copier, from_fd, st, fd, TREECOPY_BYTES_MAX, &bytes);
	s->result.copied_bytes += bytes;
	return r < 0 ? r : treefile_copy_attributes(&s->copier, from_fd, st, fd);
}

static int open_file(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* O_NOATIME is only for the owner */
		fd = openat(dir_fd, name, flags);
	return fd < 0 ? -errno : fd;
}

/* Copies the entry; *st becomes the state that was copied. Returns -errno. */
static int copy_entry(struct treesync *s, struct treeindex_node *n, struct stat *st)
{
	cleanup_fd int fd = -1;
	int r;

	if (!S_ISREG(st->st_mode)) {
		r = treefile_copy_special(top(s)->from_fd, n->name, st, top(s)->to_fd);
	} else {
		fd = open_file(top(s)->from_fd, n->name);
		if (fd < 0)
			return fd;
		if (fstat(fd, st) < 0)
			return -errno;
		r = S_ISREG(st->st_mode) ? copy_content(s, fd, st, n->name) : -ESTALE;
	}
	if (r < 0)
		(void)unlinkat(top(s)->to_fd, n->name, 0);
	return r;
}

/* Brings an earlier pass's copy of a large file up to date; -EOPNOTSUPP: make a new copy. */
static int update_entry(struct treesync *s, struct treeindex_node *n, struct stat *st)
{
	cleanup_fd int from_fd = -1, to_fd = -1;
	struct stat copy;
	uint64_t bytes = 0;
	int r;

	if (n->place != TREEINDEX_LAYER || !S_ISREG(st->st_mode) || n->inode != st->st_ino ||
	    st->st_size < UPDATE_MIN_BYTES)
		return -EOPNOTSUPP;
	from_fd = open_file(top(s)->from_fd, n->name);
	to_fd = openat(top(s)->to_fd, n->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (from_fd < 0 || to_fd < 0 || fstat(from_fd, st) < 0 || fstat(to_fd, &copy) < 0 ||
	    !S_ISREG(st->st_mode) || !S_ISREG(copy.st_mode) || copy.st_nlink != 1)
		return -EOPNOTSUPP; /* other names may be of another layer */
	r = treefile_update_content(&s->copier, from_fd, st, to_fd, &bytes);
	if (r == 0)
		r = treefile_clear_attributes(&s->copier, to_fd);
	s->result.copied_bytes += bytes;
	return r < 0 ? r : treefile_copy_attributes(&s->copier, from_fd, st, to_fd);
}

/* Copies the entry, or updates the copy that is there. */
static int renew_entry(struct treesync *s, struct treeindex_node *n, struct stat *st, struct err *e)
{
	int r = update_entry(s, n, st);

	s->result.copied_count++;
	if (r == 0)
		return 0;
	if (clear(s, n, e) < 0)
		return e->sys ? -e->sys : -EIO;
	return copy_entry(s, n, st);
}

/* Puts an entry into the layer that has no good copy there. */
static int place_entry(struct treesync *s, struct treeindex_node *n, struct stat *st, struct err *e)
{
	const struct treeindex_node *from = find_copy(s, n, st);
	bool is_unsure = true;
	int r = prepare(s);

	if (r < 0)
		return fail(e, -r, "make a directory for", n->name);
	/* a mapped file is right only in the last pass; until then, one copy to update is enough */
	if (!from && !s->pass.is_last && S_ISREG(st->st_mode) && is_mapped(s, st->st_ino) &&
	    n->place == TREEINDEX_LAYER && n->inode == st->st_ino)
		return 0;
	r = -ENOENT;
	if (from) {
		is_unsure = from->is_unsure;
		if (clear(s, n, e) < 0)
			return -1;
		r = link_to(s, from, st, n->name);
	}
	if (r < 0) {
		r = renew_entry(s, n, st, e);
		is_unsure = is_recent(s, st) || is_mapped(s, st->st_ino);
	}
	if (r == 0) {
		note_copy(s, n, st, is_unsure);
		return 0;
	}
	treeindex_forget(n);
	if (r == -EFBIG)
		return err_set(e, ERR_LIMIT, "the files are larger than %llu bytes",
			       (unsigned long long)TREECOPY_BYTES_MAX);
	return may_pass(s, -r) ? 0 : fail(e, -r, "copy", n->name);
}

/* Names of one file after the first do not count. */
static void count_bytes(struct treesync *s, const struct treeindex_node *n, const struct stat *st)
{
	uint64_t allocated = (uint64_t)st->st_blocks * 512, size = (uint64_t)st->st_size;

	if (!S_ISREG(st->st_mode))
		return;
	if (st->st_nlink > 1)
		for (const struct treeindex_node *o = treeindex_first(s->o.index, st->st_ino); o;
		     o = o->next_by_inode)
			if (o != n && o->inode == st->st_ino && o->seen_pass == s->pass_number)
				return;
	s->result.bytes += size < allocated ? size : allocated;
}

static int sync_other(struct treesync *s, struct treeindex_node *n, struct stat *st, struct err *e)
{
	bool is_whiteout = treefile_is_whiteout(st);
	bool is_still =
		is_whiteout ? S_ISCHR(n->mode) && n->place != TREEINDEX_NOWHERE : is_good(s, n, st);

	if ((S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) && !is_whiteout) {
		if (!s->pass.is_last)
			return 0;
		(void)err_set(e, ERR_INVALID, "copy '%.*s': it is a device", SHOWN_MAX_BYTES,
			      n->name);
		err_sanitize(e);
		return -1;
	}
	count_bytes(s, n, st);
	if (is_still && (n->place == TREEINDEX_LAYER ||
			 (n->place == TREEINDEX_BASE && top(s)->node->is_over_base)))
		return 0;
	return place_entry(s, n, st, e);
}

/* ---- directories ---- */

/* Takes ownership of dir_fd's copy; returns the names in one block. */
static int read_names(int dir_fd, char **ret)
{
	int own_fd = openat(dir_fd, ".", DIRECTORY_FLAGS);
	DIR *dir = own_fd < 0 ? NULL : fdopendir(own_fd);
	size_t len = 0, room = 4096;
	const struct dirent *entry;
	char *names;
	int sys;

	if (!dir) {
		sys = errno;
		cleanup_closep(&own_fd);
		return -sys;
	}
	names = mem_alloc(room);
	while ((errno = 0, entry = readdir(dir))) {
		size_t size = strlen(entry->d_name) + 1;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		while (len + size + 1 > room)
			names = mem_grow(names, room *= 2, 1);
		memcpy(names + len, entry->d_name, size);
		len += size;
	}
	sys = errno;
	(void)closedir(dir);
	names[len] = '\0';
	if (sys) {
		free(names);
		return -sys;
	}
	*ret = names;
	return 0;
}

/* Does the base's directory show through this one? Returns -1 if that cannot be right. */
static int find_over_base(const struct treesync *s, const struct treeindex_node *n)
{
	if (s->o.is_full || n->base_kind != TREEINDEX_DIRECTORY ||
	    (n->parent && !n->parent->is_over_base))
		return 0;
	if (n->is_opaque == n->is_base_opaque || !n->parent)
		return 1;
	return n->is_opaque ? 0 : -1;
}

static void close_far(struct treesync *s)
{
	if (s->level_count > LEVELS_OPEN)
		level_close(&s->levels[s->level_count - 1 - LEVELS_OPEN]);
}

/* Pushes a level. Takes ownership of from_fd. Returns -errno. */
static int push(struct treesync *s, struct treeindex_node *n, int from_fd)
{
	struct level l = { .node = n, .from_fd = from_fd, .to_fd = -1 };
	int r = fstat(from_fd, &l.st) < 0 ? -errno : read_names(from_fd, &l.names);

	if (r < 0) {
		(void)close(from_fd);
		return r;
	}
	l.next = l.names;
	n->is_opaque = treefile_is_opaque(from_fd);
	if (s->level_count == s->level_room) {
		s->level_room = s->level_room ? s->level_room * 2 : LEVELS_OPEN;
		s->levels = mem_grow(s->levels, s->level_room, sizeof(*s->levels));
	}
	s->levels[s->level_count++] = l;
	close_far(s);
	return 0;
}

/* Opens the directory as a new level. Returns -errno. */
static int open_level(struct treesync *s, struct treeindex_node *n, struct err *e)
{
	cleanup_fd int fd = openat(top(s)->from_fd, n->name, DIRECTORY_FLAGS);
	int r;

	if (fd < 0)
		return -errno;
	if (n->place == TREEINDEX_LAYER && !S_ISDIR(n->mode)) { /* it was something else */
		r = prepare(s);
		if (r < 0)
			return r;
		if (clear(s, n, e) < 0)
			return e->sys ? -e->sys : -EIO;
	}
	return push(s, n, take_fd(&fd));
}

static int enter(struct treesync *s, struct treeindex_node *n, struct err *e)
{
	int over, r;

	if (s->level_count >= TREECOPY_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "it has directories deeper than %u",
			       TREECOPY_DEPTH_MAX);
	r = open_level(s, n, e);
	if (r < 0)
		return may_pass(s, -r) ? 0 : fail(e, -r, "open", n->name);
	over = find_over_base(s, n);
	if (over < 0) {
		s->result.needs_full = true;
		return err_set(e, ERR_UNSUPPORTED, "the copy cannot stand on the last one");
	}
	n->is_over_base = over;
	n->mode = top(s)->st.st_mode;
	/* a directory as in the base is created when something below it differs */
	if (n->place == TREEINDEX_LAYER ||
	    (n->place == TREEINDEX_BASE && n->is_over_base && is_good(s, n, &top(s)->st)))
		return 0;
	r = prepare(s);
	return r < 0 ? fail(e, -r, "make the directory", n->name) : 0;
}

static int set_attributes(struct treesync *s, struct level *l)
{
	int r = prepare_level(s, (size_t)(l - s->levels));

	if (r == 0)
		r = treefile_copy_attributes(&s->copier, l->from_fd, &l->st, l->to_fd);
	if (r < 0)
		return r;
	/* a mark would hide the base, or is of an earlier directory */
	if ((l->node->is_over_base || !l->node->is_opaque) &&
	    fremovexattr(l->to_fd, TREEFILE_OPAQUE) < 0 && errno != ENODATA && errno != EOPNOTSUPP)
		return -errno;
	if (!l->node->times)
		l->node->times = mem_alloc(2 * sizeof(struct timespec));
	l->node->times[0] = l->st.st_atim;
	l->node->times[1] = l->st.st_mtim;
	note_copy(s, l->node, &l->st, is_recent(s, &l->st));
	l->node->needs_attributes = false;
	return 0;
}

/* Reopens the level above the topmost one. */
static int reopen(struct treesync *s)
{
	struct level *l = top(s) - 1;
	cleanup_fd int fd = openat(top(s)->from_fd, "..", DIRECTORY_FLAGS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != l->st.st_dev || st.st_ino != l->st.st_ino)
		return -ESTALE; /* it was moved, and ".." leads elsewhere */
	l->from_fd = take_fd(&fd);
	return 0;
}

/* The topmost level is done. Returns -errno. */
static int pop(struct treesync *s)
{
	struct level *l = top(s);
	int r = 0;

	if (s->level_count > 1 && l[-1].from_fd < 0)
		r = reopen(s);
	if (r == 0 && l->node->place == TREEINDEX_LAYER &&
	    (l->node->needs_attributes || !is_good(s, l->node, &l->st)))
		r = set_attributes(s, l);
	level_close(l);
	free(l->names);
	s->level_count--;
	return r;
}

/* ---- the walk ---- */

static int sync_next(struct treesync *s, const char *name, struct err *e)
{
	struct treeindex_node *n;
	struct stat st;

	if (fstatat(top(s)->from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return may_pass(s, errno) ? 0 : fail(e, errno, "look at", name);
	if (treeindex_count(s->o.index) >= TREEINDEX_ENTRIES_MAX)
		return err_set(e, ERR_LIMIT, "there are more than %u files", TREEINDEX_ENTRIES_MAX);
	n = treeindex_get(s->o.index, top(s)->node, name);
	n->seen_pass = s->pass_number;
	s->result.entry_count++;
	s->result.changed_count += !is_as_before(s, n, &st);
	return S_ISDIR(st.st_mode) ? enter(s, n, e) : sync_other(s, n, &st, e);
}

static int walk(struct treesync *s, struct err *e)
{
	while (s->level_count > 0) {
		const char *name = top(s)->next;
		int r;

		if (*name) {
			top(s)->next += strlen(name) + 1;
			if (sync_next(s, name, e) < 0)
				return -1;
			continue;
		}
		r = pop(s);
		if (r == 0)
			continue;
		if (!may_pass(s, -r))
			return err_sys(e, -r, "leave a directory of the tree");
		if (s->level_count > 0 && top(s)->from_fd < 0)
			break; /* the way back is lost: the next pass sees the rest */
	}
	return 0;
}

int treesync_run(struct treesync *s, const struct treesync_pass *p, struct treesync_result *ret,
		 struct err *e)
{
	struct treeindex_node *root = treeindex_root(s->o.index);
	int fd = openat(s->o.from_fd, ".", DIRECTORY_FLAGS);
	int r = fd < 0 ? -errno : 0;

	s->pass = *p;
	s->pass_number++;
	s->copier.is_urgent = p->is_urgent;
	s->result = (struct treesync_result){ 0 };
	find_mapped(s);
	if (r == 0 && s->pass_number == 1)
		r = open_up(s, s->o.to_fd);
	if (r == 0)
		r = push(s, root, fd);
	if (r < 0)
		return err_sys(e, -r, "open the directory to copy");
	root->seen_pass = s->pass_number;
	s->result.changed_count = !treeindex_is_same(root, &top(s)->st);
	root->is_over_base = find_over_base(s, root) > 0;
	r = walk(s, e);
	drop_levels(s);
	*ret = s->result;
	return r;
}

/* ---- after the last pass ---- */

static int settle_name(struct treesync *s, const struct treeindex_node *dir,
		       struct treeindex_node *n, int fd, struct err *e)
{
	if (n->place == TREEINDEX_LAYER) {
		forget_below(n);
		if (sweep_tree(fd, n->name, e) < 0)
			return -1;
	}
	if (s->o.is_full || !dir->is_over_base || !n->base_kind)
		return 0;
	if (mknodat(fd, n->name, S_IFCHR | 0600, makedev(0, 0)) < 0)
		return fail(e, errno, "hide", n->name);
	return 0;
}

static bool is_unsettled(const struct treesync *s, const struct treeindex_node *dir,
			 const struct treeindex_node *n)
{
	return n->seen_pass != s->pass_number &&
	       (n->place == TREEINDEX_LAYER ||
		(!s->o.is_full && dir->is_over_base && n->base_kind));
}

static int settle_directory(struct treesync *s, struct treeindex_node *dir, struct err *e)
{
	cleanup_fd int fd = -1;

	for (struct treeindex_node *n = dir->child; n; n = n->sibling) {
		if (!is_unsettled(s, dir, n))
			continue;
		/* it has lost a name, so it has changed, and is in the layer */
		if (dir->place != TREEINDEX_LAYER || !dir->times)
			return err_set(e, ERR_CORRUPT, "the index does not describe the files");
		if (fd < 0)
			fd = open_directory(s, dir, TREEINDEX_LAYER);
		if (fd < 0)
			return fail(e, -fd, "open", dir->name);
		if (settle_name(s, dir, n, fd, e) < 0)
			return -1;
	}
	if (fd >= 0 && futimens(fd, dir->times) < 0)
		return fail(e, errno, "set the times of", dir->name);
	return 0;
}

int treesync_settle(struct treesync *s, struct err *e)
{
	struct treeindex_node *n = treeindex_root(s->o.index), *next;

	for (; n; n = next) {
		bool is_seen = n->seen_pass == s->pass_number;

		next = is_seen && S_ISDIR(n->mode) ? treeindex_next(n) : treeindex_skip(n);
		if (is_seen && S_ISDIR(n->mode) && settle_directory(s, n, e) < 0)
			return -1;
	}
	treefile_catch_up(&s->copier);
	return 0;
}
