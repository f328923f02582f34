/*
 * treediff - lists a sandbox's changes to its image; see treediff.h.
 *
 * Theory of operation. A walk through the contents of the sandbox's layers. A directory of the walk
 * exists in some of its layers (`upper`) and in some of the image's (`base`): those that overlay
 * would merge there, so none below an opaque directory, a file or a whiteout. The image's layers
 * are examined even if hidden, to find deleted entries.
 *
 * A directory is handled in two passes. The first opens it in all layers, reads the names, looks up
 * each name in each layer and closes all again; the second enters the directories that were found.
 * Between the two only names are kept: no descriptors, at any depth. Directories are opened by path
 * from a layer's top with RESOLVE_BENEATH and without links.
 *
 * The recursion is as deep as the number of components in a path of TREEDIFF_PATH_MAX_BYTES.
 */
#include "tree/treediff.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "tree/treefile.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define SHOWN_MAX_BYTES 200 /* of a path in a message */
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A set of layers. */
struct members {
	uint64_t bits[TREEDIFF_LAYERS_MAX / 64];
};

/* A directory in all layers. */
struct place {
	struct members upper;
	struct members base;
	bool is_base_hidden;
	bool is_new; /* the image does not have this directory */
};

enum found { FOUND_NOTHING, FOUND_WHITEOUT, FOUND_FILE, FOUND_DIRECTORY };

/* The result of looking up a name in layers, from the highest down. */
struct answer {
	enum found found;
	struct stat st;
	struct members members; /* layers that have the directory */
	bool hides;             /* hides everything below these layers */
};

struct child {
	char *name;
	bool is_entered;
	bool is_changed; /* itself, not only its content */
	struct place place;
};

struct children {
	struct child *list;
	size_t count;
	size_t room;
};

struct walk {
	const struct treediff_options *o;
	uint64_t max_entries;
	uint64_t held_bytes;
	struct treediff result;
	size_t room;
	char path[TREEDIFF_PATH_MAX_BYTES]; /* relative; "" is the top */
};

/* A directory, open in its layers; -1 in layers without it. */
struct opened {
	int fds[TREEDIFF_LAYERS_MAX];
	unsigned count;
};

char treediff_letter(enum treediff_kind kind)
{
	static const char letters[TREEDIFF_KIND_COUNT] = "ACD";

	assert(kind < TREEDIFF_KIND_COUNT);
	return letters[kind];
}

void treediff_done(struct treediff *d)
{
	for (size_t i = 0; i < d->count; i++)
		free(d->list[i].path);
	free(d->list);
	*d = (struct treediff){ 0 };
}

static int fail(const struct walk *w, struct err *e, int sys, const char *what)
{
	(void)err_sys(e, sys, "%s '/%.*s'", what, SHOWN_MAX_BYTES, w->path);
	err_sanitize(e);
	return -1;
}

static void add_member(struct members *m, unsigned layer)
{
	m->bits[layer / 64] |= 1ull << layer % 64;
}

static bool is_member(const struct members *m, unsigned layer)
{
	return m->bits[layer / 64] >> layer % 64 & 1;
}

/* ---- the list ---- */

static void put(struct walk *w, enum treediff_kind kind, const char *name)
{
	struct treediff *r = &w->result;
	const char *slash = w->path[0] && name[0] ? "/" : "";

	if (r->count == w->room) {
		w->room = w->room ? w->room * 2 : 64;
		r->list = mem_grow(r->list, w->room, sizeof(*r->list));
	}
	r->list[r->count++] =
		(struct treediff_entry){ kind, mem_format("/%s%s%s", w->path, slash, name) };
}

/* Lists an entry of the walk's current directory. */
static void list(struct walk *w, enum treediff_kind kind, const char *name)
{
	if (w->result.count >= w->max_entries)
		w->result.is_cut = true;
	else
		put(w, kind, name);
}

static int compare_entries(const void *a, const void *b)
{
	return strcmp(((const struct treediff_entry *)a)->path,
		      ((const struct treediff_entry *)b)->path);
}

/* ---- looking up names in layers ---- */

static void opened_done(struct opened *d)
{
	for (unsigned i = 0; i < d->count; i++)
		cleanup_closep(&d->fds[i]);
}

static int open_members(const struct walk *w, const int *layer_fds, unsigned count,
			const struct members *m, struct opened *ret, struct err *e)
{
	const struct open_how how = {
		.flags = OPEN_FLAGS,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};

	for (unsigned i = 0; i < count; i++) {
		int fd = -1;

		if (is_member(m, i)) {
			fd = (int)syscall(SYS_openat2, layer_fds[i], w->path[0] ? w->path : ".",
					  &how, sizeof(how));
			if (fd < 0)
				return fail(w, e, errno, "open");
		}
		ret->fds[ret->count++] = fd;
	}
	return 0;
}

static int is_opaque_at(int dir_fd, const char *name, bool *ret)
{
	cleanup_fd int fd = openat(dir_fd, name, OPEN_FLAGS);

	if (fd < 0)
		return -errno;
	*ret = treefile_is_opaque(fd);
	return 0;
}

/* Adds the result of the next lower layer. Returns -errno. */
static int ask_layer(int dir_fd, unsigned layer, const char *name, struct answer *a)
{
	struct stat st;
	bool is_first = a->found == FOUND_NOTHING;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (is_first) {
		a->st = st;
		a->found = S_ISDIR(st.st_mode)         ? FOUND_DIRECTORY
			   : treefile_is_whiteout(&st) ? FOUND_WHITEOUT
						       : FOUND_FILE;
	}
	if (!S_ISDIR(st.st_mode)) {
		a->hides = true;
		return 0;
	}
	add_member(&a->members, layer);
	return is_opaque_at(dir_fd, name, &a->hides);
}

static int ask(const struct opened *d, const char *name, struct answer *ret)
{
	*ret = (struct answer){ .found = FOUND_NOTHING };
	for (unsigned i = 0; i < d->count && !ret->hides; i++) {
		int r = d->fds[i] >= 0 ? ask_layer(d->fds[i], i, name, ret) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- one directory: names ---- */

static void children_done(struct children *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->list[i].name);
	free(c->list);
}

static int compare_children(const void *a, const void *b)
{
	return strcmp(((const struct child *)a)->name, ((const struct child *)b)->name);
}

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static void add_child(struct walk *w, struct children *c, const char *name)
{
	if (c->count == c->room) {
		c->room = c->room ? c->room * 2 : 16;
		c->list = mem_grow(c->list, c->room, sizeof(*c->list));
	}
	c->list[c->count++] = (struct child){ .name = mem_dup(name) };
	w->held_bytes += sizeof(struct child) + strlen(name) + 1;
}

static int read_names(struct walk *w, int fd, struct children *c, struct err *e)
{
	CLEANUP(closedirp) DIR *dir = NULL;
	int own_fd = openat(fd, ".", OPEN_FLAGS);
	const struct dirent *entry;

	dir = own_fd >= 0 ? fdopendir(own_fd) : NULL;
	if (!dir)
		return fail(w, e, errno, "list");
	while ((errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (w->held_bytes > TREEDIFF_HELD_MAX_BYTES) {
			w->result.is_cut = true;
			return 0;
		}
		add_child(w, c, entry->d_name);
	}
	return errno != 0 ? fail(w, e, errno, "list") : 0;
}

/* Reads the names of all layers, sorted and without duplicates. */
static int read_all_names(struct walk *w, const struct opened *upper, const struct opened *base,
			  struct children *c, struct err *e)
{
	size_t kept = 0;

	for (unsigned i = 0; i < upper->count; i++)
		if (upper->fds[i] >= 0 && read_names(w, upper->fds[i], c, e) < 0)
			return -1;
	for (unsigned i = 0; base && i < base->count; i++)
		if (base->fds[i] >= 0 && read_names(w, base->fds[i], c, e) < 0)
			return -1;
	if (c->count > 0)
		qsort(c->list, c->count, sizeof(*c->list), compare_children);
	for (size_t i = 0; i < c->count; i++) {
		if (kept > 0 && strcmp(c->list[kept - 1].name, c->list[i].name) == 0)
			free(c->list[i].name);
		else
			c->list[kept++] = c->list[i];
	}
	c->count = kept;
	return 0;
}

/* ---- one directory: how each name changed ---- */

static bool is_known(const struct walk *w, const char *name)
{
	size_t len = strlen(w->path);

	for (const char *const *known = w->o->known_paths; known && *known; known++) {
		const char *path = *known + 1; /* without the leading '/' */

		if (len > 0 && (strncmp(path, w->path, len) != 0 || path[len] != '/'))
			continue;
		if (strcmp(path + len + (len > 0), name) == 0)
			return true;
	}
	return false;
}

static bool has_same_attributes(const struct stat *a, const struct stat *b)
{
	return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

static bool exists(const struct answer *a)
{
	return a->found == FOUND_FILE || a->found == FOUND_DIRECTORY;
}

/*
 * Compares the current state with the image. A directory that is entered becomes 'C' when the walk
 * returns, if it or its content changed.
 */
static void judge(struct walk *w, const struct place *p, const struct answer *now,
		  const struct answer *before, struct child *c)
{
	bool was_there = exists(before);
	bool was_known = !was_there && is_known(w, c->name);

	if (now->found == FOUND_NOTHING && !p->is_base_hidden)
		return;
	if (!exists(now)) {
		if (was_there)
			list(w, TREEDIFF_DELETED, c->name);
		return;
	}
	c->is_entered = now->found == FOUND_DIRECTORY;
	c->place = (struct place){
		.upper = now->members,
		.base = before->members,
		.is_base_hidden = p->is_base_hidden || now->hides,
		.is_new = before->found != FOUND_DIRECTORY && !was_known,
	};
	if (!was_there && !was_known)
		list(w, TREEDIFF_ADDED, c->name);
	else if (was_there && (now->found == FOUND_FILE || before->found == FOUND_FILE))
		list(w, TREEDIFF_CHANGED, c->name);
	else
		c->is_changed = was_there && !has_same_attributes(&now->st, &before->st);
}

static int judge_all(struct walk *w, const struct place *p, struct children *c, struct err *e)
{
	CLEANUP(opened_done) struct opened upper = { .count = 0 }, base = { .count = 0 };

	if (open_members(w, w->o->upper_fds, w->o->upper_count, &p->upper, &upper, e) < 0 ||
	    open_members(w, w->o->base_fds, w->o->base_count, &p->base, &base, e) < 0 ||
	    read_all_names(w, &upper, p->is_base_hidden ? &base : NULL, c, e) < 0)
		return -1;
	for (size_t i = 0; i < c->count; i++) {
		struct answer now, before;
		int r = ask(&upper, c->list[i].name, &now);

		if (r == 0)
			r = ask(&base, c->list[i].name, &before);
		if (r < 0)
			return fail(w, e, -r, "look at what is in");
		judge(w, p, &now, &before, &c->list[i]);
	}
	return 0;
}

/* ---- the walk ---- */

static int walk_directory(struct walk *w, const struct place *p, struct err *e);

static int enter(struct walk *w, const struct child *c, struct err *e)
{
	size_t len = strlen(w->path), name_len = strlen(c->name);
	size_t before = w->result.count;
	int r;

	if (len + 1 + name_len + 1 > sizeof(w->path)) {
		w->result.is_cut = true;
		return 0;
	}
	if (len > 0)
		w->path[len] = '/';
	memcpy(w->path + len + (len > 0), c->name, name_len + 1);
	r = walk_directory(w, &c->place, e);
	if (r == 0 && !c->place.is_new && (c->is_changed || w->result.count > before))
		put(w, TREEDIFF_CHANGED, ""); /* even if the list is full: no parent is missing */
	if (r == 0)
		w->path[len] = '\0';
	return r;
}

static int walk_directory(struct walk *w, const struct place *p, struct err *e)
{
	CLEANUP(children_done) struct children c = { 0 };
	uint64_t held_before = w->held_bytes;

	if (judge_all(w, p, &c, e) < 0)
		return -1;
	for (size_t i = 0; i < c.count; i++) {
		if (!c.list[i].is_entered)
			continue;
		if (w->result.count >= w->max_entries)
			w->result.is_cut = true;
		else if (enter(w, &c.list[i], e) < 0)
			return -1;
	}
	w->held_bytes = held_before;
	return 0;
}

int treediff_run(const struct treediff_options *o, struct treediff *ret, struct err *e)
{
	cleanup_free struct walk *w = mem_alloc(sizeof(*w));
	struct place top = { .is_base_hidden = false };

	if (o->upper_count > TREEDIFF_LAYERS_MAX || o->base_count > TREEDIFF_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u layers", TREEDIFF_LAYERS_MAX);
	w->o = o;
	w->max_entries = o->max_entries ? o->max_entries : TREEDIFF_ENTRIES_MAX;
	for (unsigned i = 0; i < o->upper_count; i++)
		add_member(&top.upper, i);
	for (unsigned i = 0; i < o->base_count; i++)
		add_member(&top.base, i);
	if (walk_directory(w, &top, e) < 0) {
		treediff_done(&w->result);
		return -1;
	}
	if (w->result.count > 0)
		qsort(w->result.list, w->result.count, sizeof(*w->result.list), compare_entries);
	*ret = w->result;
	return 0;
}
