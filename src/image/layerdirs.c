/*
 * layerdirs - the directories of a layer while it is unpacked; see layerdirs.h.
 *
 * Theory of operation. A directory is a node: its parent and its name. A table finds the child of
 * a node by name; a list has all nodes in the order in which they were made, so parents come
 * before their children, and going backwards sets the mode of a directory after that of what it
 * holds. A directory that gives way to something else is marked as gone and stays in the list; its
 * children are found through it only, so they are gone with it.
 *
 * Entries follow their siblings mostly: the directory entered last stays open.
 *
 * Every directory is made with mode 0755 and gets its own at the end: a mode without "w" would keep
 * us out when we are not root, and set-group-id would hand its group to what is made in it.
 */
#include "image/layerdirs.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define OPAQUE "user.overlay.opaque"
#define MODE_IMPLIED 0755 /* and of all while unpacking */
#define SLOTS_FIRST 256u
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct layerdirs_node {
	const struct layerdirs_node *parent; /* NULL: the root */
	struct layerdirs_node *next;         /* in the same slot */
	struct timespec mtime;
	mode_t mode;
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
	size_t slot_count; /* a power of two, as is the room in `nodes` */
	uint32_t seed;

	/* The directory entered last. */
	struct layerdirs_node *entered;
	char entered_path[LAYER_NAME_MAX_BYTES];
	size_t entered_len;
	int entered_fd; /* -1: the root */
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

static struct layerdirs_node *add(struct layerdirs *d, const struct layerdirs_node *parent,
				  const char *name)
{
	size_t len = strlen(name);
	struct layerdirs_node *node = mem_alloc(sizeof(*node) + len + 1);

	node->parent = parent;
	node->mode = MODE_IMPLIED;
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
		d->seed = 0; /* as right, if slower with names that were chosen to collide */
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

/* ---- opening and making ---- */

int layerdirs_open(const struct layerdirs *d, const char *path, size_t len)
{
	const struct open_how how = {
		.flags = OPEN_FLAGS,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	char text[LAYER_NAME_MAX_BYTES];
	int fd;

	assert(len < sizeof(text));
	memcpy(text, len > 0 ? path : ".", len > 0 ? len : 1);
	text[len > 0 ? len : 1] = '\0';
	fd = (int)syscall(SYS_openat2, d->root_fd, text, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
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

int layerdirs_make(struct layerdirs *d, const struct layerdirs_place *place, const char *name,
		   struct layerdirs_node **ret, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = -1;
	bool has_replaced = false;
	int r;

	if (d->count >= d->limits->directories)
		return err_set(e, ERR_LIMIT, "the layer has more than %u directories",
			       d->limits->directories);
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

/* Something that is no directory is where a parent should be. Only a whiteout gives way. */
static int check_parent(int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at '%s'", name);
	if (S_ISLNK(st.st_mode))
		return err_set(e, ERR_INVALID, "the name leads through a symbolic link");
	if (S_ISCHR(st.st_mode) && st.st_rdev == 0)
		return 0;
	return err_set(e, ERR_INVALID, "the name leads through what is not a directory");
}

static int make_implied(struct layerdirs *d, struct layerdirs_place *place, const char *name,
			int *fd, struct err *e)
{
	struct layerdirs_node *node = NULL;
	int new_fd = -1;

	if (check_parent(place->fd, name, e) < 0 ||
	    layerdirs_make(d, place, name, &node, &new_fd, e) < 0)
		return -1;
	cleanup_closep(fd);
	*fd = new_fd;
	*place = (struct layerdirs_place){ *fd, node };
	return 0;
}

/* The next part of a path; its length with the slash. */
static size_t take_part(const char *path, size_t len, char part[NAME_MAX + 1])
{
	const char *slash = memchr(path, '/', len);
	size_t part_len = slash ? (size_t)(slash - path) : len;

	assert(part_len <= NAME_MAX);
	memcpy(part, path, part_len);
	part[part_len] = '\0';
	return part_len + (slash ? 1 : 0);
}

/* How much of the path we have made already. */
static size_t find(const struct layerdirs *d, const char *path, size_t len,
		   struct layerdirs_node **ret)
{
	struct layerdirs_node *node = d->nodes[0];
	char part[NAME_MAX + 1];
	size_t at = 0;

	while (at < len) {
		size_t step = take_part(path + at, len - at, part);
		struct layerdirs_node *child = layerdirs_get(d, node, part);

		if (!child)
			break;
		node = child;
		at += step;
	}
	*ret = node;
	return at;
}

static int open_known(const struct layerdirs *d, const char *path, size_t len, int *ret_fd,
		      struct err *e)
{
	int fd = layerdirs_open(d, path, len);

	if (fd == -ELOOP || fd == -ENOTDIR || fd == -EXDEV)
		return err_set(e, ERR_INVALID, "the name leads through what is not a directory");
	if (fd < 0)
		return err_sys(e, -fd, "open the directory above it");
	*ret_fd = fd;
	return 0;
}

static void remember_entered(struct layerdirs *d, const char *path, size_t len,
			     struct layerdirs_node *node, int fd)
{
	cleanup_closep(&d->entered_fd);
	d->entered_fd = fd;
	d->entered = node;
	memcpy(d->entered_path, path, len);
	d->entered_len = len;
}

/* Opens what there is of the path and makes the rest. */
static int enter_anew(struct layerdirs *d, const char *path, size_t len, struct err *e)
{
	cleanup_fd int fd = -1;
	struct layerdirs_place place;
	char part[NAME_MAX + 1];
	size_t at = find(d, path, len, &place.node);

	if (open_known(d, path, at, &fd, e) < 0)
		return -1;
	place.fd = fd;
	while (at < len) {
		at += take_part(path + at, len - at, part);
		if (make_implied(d, &place, part, &fd, e) < 0)
			return -1;
	}
	remember_entered(d, path, len, place.node, take_fd(&fd));
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

/* The path of a node, in `room`, written from its end. */
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

static int finish_one(const struct layerdirs *d, const struct layerdirs_node *node, struct err *e)
{
	const struct timespec times[2] = { node->mtime, node->mtime };
	char room[LAYER_NAME_MAX_BYTES];
	const char *path = path_of(node, room);
	cleanup_fd int fd = layerdirs_open(d, path, strlen(path));

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
