/*
 * layerdirs - the directories of a layer while it is unpacked; see layerdirs.h.
 *
 * Theory of operation. A directory is a node: its parent and its name. A hash table finds the child
 * of a node by name; a list has all nodes in creation order, so parents come before children, and
 * walking it backwards sets the mode of a directory after those of its content. A directory that is
 * replaced is marked as gone and stays in the list; its children are only found through it, so they
 * are gone too.
 *
 * A path may lead through symbolic links of the layer ("bin" -> "usr/bin", then "bin/sh"). We
 * resolve them here, component by component, as for a process whose root is the layer: an absolute
 * target starts at the root, ".." leads to a node's parent and at the root stays there. The kernel
 * only ever gets the path of a node, and refuses to follow links in it. So it does not matter where
 * a link points to, nor whether a later entry replaces it.
 *
 * Most entries follow a sibling, so the last entered directory stays open. If a link led to it, the
 * next entry resolves its path again, because the link may have changed.
 *
 * Every directory is created with mode 0755 and gets its own mode at the end: a mode without "w"
 * would lock us out if we are not root, and set-group-id would pass its group to new entries.
 */
#include "image/layerdirs.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mem.h"
#include "image/layername.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define OPAQUE "user.overlay.opaque"
#define MODE_IMPLIED 0755 /* also of all directories while unpacking */
#define SLOTS_FIRST 256u
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct layerdirs_node {
	struct layerdirs_node *parent; /* NULL: the root */
	struct layerdirs_node *next;   /* in the same slot */
	struct timespec mtime;
	mode_t mode;
	uint16_t depth;    /* components of its path */
	uint16_t path_len; /* bytes of its path */
	bool is_named;
	bool is_gone;
	char name[];
};

struct layerdirs {
	int root_fd;
	const struct layer_limits *limits;
	struct layerdirs_node **nodes; /* [0] is the root */
	size_t count;
	struct layerdirs_node **slots;
	size_t slot_count; /* a power of two, like the capacity of `nodes` */
	uint32_t seed;

	/* The last entered directory. */
	struct layerdirs_node *entered;
	char entered_path[LAYER_NAME_MAX_BYTES];
	size_t entered_len; /* ENTERED_BY_LINK: entered_path is not set */
	int entered_fd;     /* -1: the root */
};

#define ENTERED_BY_LINK SIZE_MAX

/* A path being resolved to a node. */
struct walk {
	struct layerdirs_node *node; /* the node for the components before `at` */
	char rest[LAYER_NAME_MAX_BYTES];
	size_t at; /* offset in `rest` of the next component */
	unsigned link_count;
	int fd; /* descriptor of fd_node, if not -1 */
	const struct layerdirs_node *fd_node;
};

/* ---- the table ---- */

static size_t slot_of(const struct layerdirs *d, const struct layerdirs_node *parent,
		      const char *name)
{
	return hash_text(d->seed ^ (uint32_t)((uintptr_t)parent >> 4), name) & (d->slot_count - 1);
}

struct layerdirs_node *layerdirs_get(const struct layerdirs *d, const struct layerdirs_node *parent,
				     const char *name)
{
	struct layerdirs_node *node = d->slots[slot_of(d, parent, name)];

	while (node && (node->parent != parent || node->is_gone || strcmp(node->name, name) != 0))
		node = node->next;
	return node;
}

static void put(struct layerdirs *d, struct layerdirs_node *node)
{
	size_t slot = slot_of(d, node->parent, node->name);

	node->next = d->slots[slot];
	d->slots[slot] = node;
}

static void grow(struct layerdirs *d)
{
	free(d->slots);
	d->slot_count *= 2;
	d->slots = mem_alloc(d->slot_count * sizeof(struct layerdirs_node *));
	d->nodes = mem_grow(d->nodes, d->slot_count, sizeof(struct layerdirs_node *));
	for (size_t i = 0; i < d->count; i++)
		put(d, d->nodes[i]);
}

static struct layerdirs_node *add(struct layerdirs *d, struct layerdirs_node *parent,
				  const char *name)
{
	size_t len = strlen(name);
	struct layerdirs_node *node = mem_alloc(sizeof(*node) + len + 1);

	node->parent = parent;
	node->mode = MODE_IMPLIED;
	if (parent) {
		node->depth = parent->depth + 1;
		node->path_len = (uint16_t)(parent->path_len + (parent->parent ? 1 : 0) + len);
	}
	memcpy(node->name, name, len + 1);
	if (d->count == d->slot_count)
		grow(d);
	d->nodes[d->count++] = node;
	put(d, node);
	return node;
}

struct layerdirs *layerdirs_new(int root_fd, const struct layer_limits *limits)
{
	struct layerdirs *d = mem_alloc(sizeof(*d));

	d->root_fd = root_fd;
	d->limits = limits;
	d->slot_count = SLOTS_FIRST;
	d->slots = mem_alloc(d->slot_count * sizeof(struct layerdirs_node *));
	d->nodes = mem_grow(NULL, d->slot_count, sizeof(struct layerdirs_node *));
	if (getrandom(&d->seed, sizeof(d->seed), GRND_NONBLOCK) < 0)
		d->seed = 0; /* works too, but slowly with names chosen to collide */
	d->entered = add(d, NULL, "");
	d->entered_fd = -1;
	return d;
}

void layerdirs_free(struct layerdirs *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->count; i++)
		free(d->nodes[i]);
	free(d->nodes);
	free(d->slots);
	cleanup_closep(&d->entered_fd);
	free(d);
}

void layerdirs_freep(struct layerdirs **d)
{
	layerdirs_free(*d);
	*d = NULL;
}

/* ---- opening and creating ---- */

/* The path of a node, written to `room` from its end. */
static const char *path_of(const struct layerdirs_node *node, char room[LAYER_NAME_MAX_BYTES])
{
	char *start = room + LAYER_NAME_MAX_BYTES - 1;

	*start = '\0';
	if (!node->parent)
		*--start = '.';
	for (; node->parent; node = node->parent) {
		size_t len = strlen(node->name);

		if (*start != '\0')
			*--start = '/';
		start -= len;
		assert(start >= room);
		memcpy(start, node->name, len);
	}
	return start;
}

int layerdirs_open(const struct layerdirs *d, const struct layerdirs_node *node)
{
	const struct open_how how = {
		.flags = OPEN_FLAGS,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	char room[LAYER_NAME_MAX_BYTES];
	int fd = (int)syscall(SYS_openat2, d->root_fd, path_of(node, room), &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

bool layerdirs_is_root(const struct layerdirs_node *node)
{
	return !node->parent;
}

int layerdirs_set_opaque(int fd)
{
	return fsetxattr(fd, OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

bool layerdirs_is_opaque(int fd)
{
	char value;

	return fgetxattr(fd, OPAQUE, &value, 1) == 1 && value == 'y';
}

/* Links can lead deeper than the name of an entry could. */
static int check_depth(const struct layerdirs_node *node, struct err *e)
{
	if (node->depth > LAYER_DEPTH_MAX)
		return err_set(e, ERR_INVALID, "it lies beneath more than %u directories",
			       LAYER_DEPTH_MAX);
	return 0;
}

static int check_length(const struct layerdirs_node *parent, const char *name, struct err *e)
{
	if (parent->path_len + strlen(name) + 2 > LAYER_NAME_MAX_BYTES)
		return err_set(e, ERR_INVALID, "the name is longer than %u bytes",
			       LAYER_NAME_MAX_BYTES - 1);
	return 0;
}

int layerdirs_make(struct layerdirs *d, const struct layerdirs_place *place, const char *name,
		   struct layerdirs_node **ret, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;
	bool has_replaced = false;
	int r;

	if (d->count >= d->limits->directories)
		return err_set(e, ERR_LIMIT, "the layer has more than %u directories",
			       d->limits->directories);
	if (check_depth(place->node, e) < 0 || check_length(place->node, name, e) < 0)
		return -1;
	r = mkdirat(place->fd, name, MODE_IMPLIED);
	if (r < 0 && errno == EEXIST) {
		if (unlinkat(place->fd, name, 0) < 0)
			return err_sys(e, errno, "replace what is there");
		has_replaced = true;
		r = mkdirat(place->fd, name, MODE_IMPLIED);
	}
	if (r < 0)
		return err_sys(e, errno, "make the directory");
	fd = openat(place->fd, name, OPEN_FLAGS);
	if (fd < 0)
		return err_sys(e, errno, "open the directory");
	r = has_replaced ? layerdirs_set_opaque(fd) : 0;
	if (r < 0)
		return err_sys(e, -r, "make the directory opaque");
	*ret = add(d, place->node, name);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- resolving a path ---- */

static void walk_init(struct walk *w, const struct layerdirs *d, const char *path, size_t len)
{
	assert(len < sizeof(w->rest));
	w->node = d->nodes[0];
	memcpy(w->rest, path, len);
	w->rest[len] = '\0';
	w->at = 0;
	w->link_count = 0;
	w->fd = -1;
	w->fd_node = NULL;
}

static void walk_done(struct walk *w)
{
	cleanup_closep(&w->fd);
}

static bool is_over(const struct walk *w)
{
	return !w->rest[w->at];
}

/* Copies the next component; returns its length with the slashes after it. */
static size_t next_part(const struct walk *w, char part[NAME_MAX + 1])
{
	const char *text = w->rest + w->at;
	size_t len = strcspn(text, "/");

	assert(len <= NAME_MAX);
	memcpy(part, text, len);
	part[len] = '\0';
	return len + strspn(text + len, "/");
}

/* Resolves components as long as they are known directories. */
static void walk_known(const struct layerdirs *d, struct walk *w)
{
	char part[NAME_MAX + 1];

	while (!is_over(w)) {
		size_t step = next_part(w, part);
		struct layerdirs_node *next = NULL;

		if (strcmp(part, ".") == 0)
			next = w->node;
		else if (strcmp(part, "..") == 0)
			next = w->node->parent ? w->node->parent : w->node;
		else
			next = layerdirs_get(d, w->node, part);
		if (!next)
			return;
		w->node = next;
		w->at += step;
	}
}

static int open_node(const struct layerdirs *d, struct walk *w, struct err *e)
{
	if (w->fd >= 0 && w->fd_node == w->node)
		return 0;
	cleanup_closep(&w->fd);
	w->fd = layerdirs_open(d, w->node);
	w->fd_node = w->node;
	if (w->fd == -ELOOP || w->fd == -ENOTDIR || w->fd == -EXDEV)
		return err_set(e, ERR_INVALID, "the name leads through what is not a directory");
	if (w->fd < 0)
		return err_sys(e, -w->fd, "open the directory above it");
	return 0;
}

/* A component of a link's target must be valid in an entry's name. */
static int check_parts(const char *target, struct err *e)
{
	for (const char *part = target; *part;) {
		size_t len = strcspn(part, "/");

		if (len > NAME_MAX)
			return err_set(e, ERR_INVALID,
				       "the name leads through a symbolic link with a part of "
				       "more than %d bytes",
				       NAME_MAX);
		if (strncmp(part, LAYERNAME_WHITEOUT_MARK, strlen(LAYERNAME_WHITEOUT_MARK)) == 0)
			return err_set(e, ERR_INVALID,
				       "the name leads through a symbolic link to a whiteout");
		part += len + (part[len] == '/');
	}
	return 0;
}

/* `part` is a symbolic link: continues with its target, and then the rest. */
static int follow(const struct layerdirs *d, struct walk *w, const char *part, size_t step,
		  struct err *e)
{
	char target[LAYER_NAME_MAX_BYTES], rest[LAYER_NAME_MAX_BYTES];
	ssize_t len = readlinkat(w->fd, part, target, sizeof(target));
	int n;

	if (len < 0)
		return err_sys(e, errno, "read the symbolic link '%s'", part);
	if (++w->link_count > LAYER_LINKS_MAX)
		return err_set(e, ERR_INVALID, "the name leads through more than %u symbolic links",
			       LAYER_LINKS_MAX);
	if ((size_t)len == sizeof(target))
		len--; /* too long with any rest */
	target[len] = '\0';
	if (check_parts(target, e) < 0)
		return -1;
	n = snprintf(rest, sizeof(rest), "%s/%s", target, w->rest + w->at + step);
	if (n < 0 || (size_t)n >= sizeof(rest))
		return err_set(e, ERR_INVALID,
			       "the name leads through symbolic links to one of more than %u bytes",
			       LAYER_NAME_MAX_BYTES - 1);
	if (target[0] == '/')
		w->node = d->nodes[0];
	memcpy(w->rest, rest, (size_t)n + 1);
	w->at = strspn(w->rest, "/");
	return 0;
}

static int make_implied(struct layerdirs *d, struct walk *w, const char *part, size_t step,
			struct err *e)
{
	const struct layerdirs_place place = { w->fd, w->node };
	struct layerdirs_node *node = NULL;
	int fd = -1;

	if (layerdirs_make(d, &place, part, &node, &fd, e) < 0)
		return -1;
	cleanup_closep(&w->fd);
	w->fd = fd;
	w->fd_node = w->node = node;
	w->at += step;
	return 0;
}

enum part_kind { PART_ABSENT, PART_LINK, PART_OTHER };

/* Examines a component that is not a known directory. A whiteout counts as absent. */
static int look_at(int fd, const char *part, enum part_kind *ret, struct err *e)
{
	struct stat st;

	if (fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_sys(e, errno, "look at '%s'", part);
		*ret = PART_ABSENT;
	} else if (S_ISCHR(st.st_mode) && st.st_rdev == 0) {
		*ret = PART_ABSENT;
	} else {
		*ret = S_ISLNK(st.st_mode) ? PART_LINK : PART_OTHER;
	}
	return 0;
}

enum walk_flags {
	WALK_MAKE = 1 << 0, /* create missing directories; otherwise ERR_NOT_FOUND */
};

/* Resolves the path to its end. Afterwards w->fd is the descriptor of w->node. */
static int walk(struct layerdirs *d, struct walk *w, unsigned flags, struct err *e)
{
	for (;;) {
		char part[NAME_MAX + 1];
		enum part_kind kind = PART_OTHER;
		size_t step;
		int r;

		walk_known(d, w);
		if (open_node(d, w, e) < 0)
			return -1;
		if (is_over(w))
			return 0;
		step = next_part(w, part);
		if (look_at(w->fd, part, &kind, e) < 0)
			return -1;
		if (kind == PART_OTHER)
			return err_set(e, ERR_INVALID,
				       "the name leads through what is not a directory");
		if (kind == PART_LINK)
			r = follow(d, w, part, step, e);
		else if (flags & WALK_MAKE)
			r = make_implied(d, w, part, step, e);
		else
			r = err_set(e, ERR_NOT_FOUND, "there is no directory '%s'", part);
		if (r < 0)
			return -1;
	}
}

int layerdirs_find(struct layerdirs *d, const char *path, size_t len, struct layerdirs_node **ret,
		   int *ret_fd, struct err *e)
{
	CLEANUP(walk_done) struct walk w;

	walk_init(&w, d, path, len);
	if (walk(d, &w, 0, e) < 0)
		return -1;
	*ret = w.node;
	*ret_fd = take_fd(&w.fd);
	return 0;
}

static int enter_anew(struct layerdirs *d, const char *path, size_t len, struct err *e)
{
	CLEANUP(walk_done) struct walk w;

	walk_init(&w, d, path, len);
	if (walk(d, &w, WALK_MAKE, e) < 0 || check_depth(w.node, e) < 0)
		return -1;
	cleanup_closep(&d->entered_fd);
	d->entered_fd = take_fd(&w.fd);
	d->entered = w.node;
	memcpy(d->entered_path, path, len);
	d->entered_len = w.link_count > 0 ? ENTERED_BY_LINK : len;
	return 0;
}

int layerdirs_enter(struct layerdirs *d, const char *path, size_t len, struct layerdirs_place *ret,
		    struct err *e)
{
	bool is_entered = len == d->entered_len && memcmp(path, d->entered_path, len) == 0;

	if (!is_entered && enter_anew(d, path, len, e) < 0)
		return -1;
	ret->node = d->entered;
	ret->fd = d->entered_fd >= 0 ? d->entered_fd : d->root_fd;
	return 0;
}

void layerdirs_set(struct layerdirs_node *node, mode_t mode, const struct timespec *mtime)
{
	node->mode = mode;
	node->mtime = *mtime;
	node->is_named = true;
}

void layerdirs_forget(struct layerdirs_node *node)
{
	node->is_gone = true;
}

/* ---- the end ---- */

static int finish_one(const struct layerdirs *d, const struct layerdirs_node *node, struct err *e)
{
	const struct timespec times[2] = { node->mtime, node->mtime };
	char room[LAYER_NAME_MAX_BYTES];
	const char *path = path_of(node, room);
	cleanup_fd int fd = layerdirs_open(d, node);

	if (fd < 0)
		return err_sys(e, -fd, "open the directory '%s'", path);
	if (node->mode != MODE_IMPLIED && fchmod(fd, node->mode) < 0)
		return err_sys(e, errno, "set the mode of '%s'", path);
	if (futimens(fd, times) < 0)
		return err_sys(e, errno, "set the time of '%s'", path);
	return 0;
}

int layerdirs_finish(struct layerdirs *d, struct err *e)
{
	for (size_t i = 1; i < d->count; i++)
		d->nodes[i]->is_gone |= d->nodes[i]->parent->is_gone;
	for (size_t i = d->count; i-- > 0;) {
		const struct layerdirs_node *node = d->nodes[i];

		if (node->is_named && !node->is_gone && finish_one(d, node, e) < 0)
			return -1;
	}
	return 0;
}

int layerdirs_list_implied(const struct layerdirs *d, char ***ret, unsigned *ret_count,
			   struct err *e)
{
	char room[LAYER_NAME_MAX_BYTES];
	char **list;
	unsigned count = 0, at = 0;

	for (size_t i = 0; i < d->count; i++)
		count += !d->nodes[i]->is_gone && !d->nodes[i]->is_named;
	if (count > d->limits->implied)
		return err_set(e, ERR_LIMIT,
			       "more than %u directories are in no entry of their own",
			       d->limits->implied);
	list = mem_alloc((count + 1) * sizeof(char *));
	for (size_t i = 0; i < d->count; i++) {
		if (!d->nodes[i]->is_gone && !d->nodes[i]->is_named)
			list[at++] = mem_dup(path_of(d->nodes[i], room));
	}
	*ret = list;
	*ret_count = count;
	return 0;
}
