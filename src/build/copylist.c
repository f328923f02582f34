/*
 * copylist - the files that a COPY takes; see copylist.h.
 *
 * Theory of operation. A word is resolved name by name: a pattern is compared with the names of its
 * directory, and what is found is opened within the root, so that links count as they would inside.
 * Then the tree below is walked by descriptors, following no link.
 */
#include "build/copylist.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/shown.h"
#include "build/glob.h"
#include "build/ignore.h"
#include "host/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define QUOTED_MAX_BYTES 200

void copylist_done(struct copylist *l)
{
	for (size_t i = 0; i < l->source_count; i++) {
		free(l->sources[i].path);
		free(l->sources[i].given);
	}
	for (size_t i = 0; i < l->count; i++)
		free(l->entries[i].path);
	free(l->sources);
	free(l->entries);
	*l = (struct copylist){ 0 };
}

static int refuse(const struct copylist_options *o, const char *path, enum err_code code,
		  const char *words, struct err *e)
{
	(void)err_set(e, code, "'%.*s' in %s %s", QUOTED_MAX_BYTES, path, o->where, words);
	shown_replace(e->msg);
	return -1;
}

static int refuse_open(const struct copylist_options *o, const char *path, int sys, struct err *e)
{
	if (sys == ENOENT || sys == ENOTDIR)
		return refuse(o, path, ERR_NOT_FOUND, "is not there", e);
	if (sys == ELOOP)
		return refuse(o, path, ERR_INVALID, "is a link that leads in a circle", e);
	(void)err_sys(e, sys, "open '%.*s' in %s", QUOTED_MAX_BYTES, path, o->where);
	shown_replace(e->msg);
	return -1;
}

/* ---- entries ---- */

static int check_kind(const struct copylist_options *o, const char *path, mode_t mode,
		      struct err *e)
{
	if (S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode) || S_ISFIFO(mode))
		return 0;
	return refuse(o, path, ERR_INVALID,
		      S_ISSOCK(mode)
			      ? "is a socket, which no image can hold (name it in .dockerignore)"
			      : "is a device, which a build does not copy (name it in "
				".dockerignore)",
		      e);
}

static int add_entry(struct copylist *l, const struct copylist_options *o, const char *path,
		     const struct stat *st, struct err *e)
{
	size_t len = strlen(path) + 1;

	if (check_kind(o, path, st->st_mode, e) < 0)
		return -1;
	if (l->count == COPYLIST_ENTRIES_MAX || l->name_bytes + len > COPYLIST_NAMES_MAX_BYTES)
		return err_set(e, ERR_LIMIT,
			       "%s has more than %u files to copy (.dockerignore leaves some out)",
			       o->where, COPYLIST_ENTRIES_MAX);
	if ((l->count & (l->count - 1)) == 0)
		l->entries = mem_grow(l->entries, l->count ? l->count * 2 : 1, sizeof(*l->entries));
	l->entries[l->count++] = (struct copylist_entry){
		.path = mem_dup(path),
		.mode = st->st_mode,
		.size_bytes = (uint64_t)st->st_size,
		.modified = st->st_mtim,
		.changed = st->st_ctim,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.inode = st->st_ino,
		.device = st->st_dev,
	};
	l->name_bytes += len;
	return 0;
}

/* ---- directories ---- */

struct names {
	char **list;
	size_t count;
};

static void names_done(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->list[i]);
	free(n->list);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(const struct copylist_options *o, int fd, const char *path, struct names *ret,
		      struct err *e)
{
	int own_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own_fd >= 0 ? fdopendir(own_fd) : NULL;
	struct dirent *entry;
	int sys;

	*ret = (struct names){ 0 };
	if (!dir)
		return refuse_open(o, path, errno, e);
	while ((errno = 0, entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (ret->count == COPYLIST_ENTRIES_MAX)
			break;
		if ((ret->count & (ret->count - 1)) == 0)
			ret->list = mem_grow(ret->list, ret->count ? ret->count * 2 : 1,
					     sizeof(*ret->list));
		ret->list[ret->count++] = mem_dup(entry->d_name);
	}
	sys = errno;
	(void)closedir(dir);
	if (sys != 0)
		return refuse_open(o, path, sys, e);
	if (ret->count > 1)
		qsort(ret->list, ret->count, sizeof(*ret->list), by_text);
	return 0;
}

struct walk {
	struct copylist *list;
	const struct copylist_options *options;
	size_t source_len; /* of the source's own path, with a slash */
};

static const char *below_source(const struct walk *w, const char *path)
{
	return strlen(path) > w->source_len ? path + w->source_len : "";
}

static bool is_left_out(const struct walk *w, const char *path, bool *may_have_kept)
{
	const struct copylist_options *o = w->options;
	bool is_ignored = path[0] && ignore_has(o->ignored, path);
	bool is_excluded =
		below_source(w, path)[0] && ignore_has(o->excluded, below_source(w, path));

	*may_have_kept = (!is_ignored || ignore_has_exceptions(o->ignored)) &&
			 (!is_excluded || ignore_has_exceptions(o->excluded));
	return is_ignored || is_excluded;
}

static int walk_dir(struct walk *w, int fd, const char *path, unsigned depth, struct err *e);

/* A directory that is left out stays as the parent of what was taken back in below it. */
static int walk_child(struct walk *w, int dir_fd, const char *path, const char *name,
		      unsigned depth, struct err *e)
{
	cleanup_fd int fd = -1;
	size_t before = w->list->count;
	bool may_have_kept, is_out;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : refuse_open(w->options, path, errno, e);
	is_out = is_left_out(w, path, &may_have_kept);
	if (is_out && (!S_ISDIR(st.st_mode) || !may_have_kept))
		return 0;
	if (add_entry(w->list, w->options, path, &st, e) < 0)
		return -1;
	if (!S_ISDIR(st.st_mode))
		return 0;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return refuse_open(w->options, path, errno, e);
	if (walk_dir(w, fd, path, depth + 1, e) < 0)
		return -1;
	if (is_out && w->list->count == before + 1)
		free(w->list->entries[--w->list->count].path);
	return 0;
}

static int walk_dir(struct walk *w, int fd, const char *path, unsigned depth, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };

	if (depth > COPYLIST_DEPTH_MAX)
		return refuse(w->options, path, ERR_LIMIT, "lies beneath too many directories", e);
	if (read_names(w->options, fd, path, &names, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		cleanup_free char *child =
			path[0] ? mem_format("%s/%s", path, names.list[i]) : mem_dup(names.list[i]);

		if (strlen(child) >= COPYLIST_PATH_MAX_BYTES)
			return refuse(w->options, path, ERR_LIMIT, "has names that are too long",
				      e);
		if (walk_child(w, fd, child, names.list[i], depth, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- sources ---- */

/* The path of an open file beneath the root, links resolved. */
static int find_path(int root_fd, int fd, char **ret, struct err *e)
{
	char names[2][32], paths[2][PATH_MAX];
	const int fds[] = { root_fd, fd };

	for (size_t i = 0; i < COUNT_OF(fds); i++) {
		ssize_t n;

		(void)snprintf(names[i], sizeof(names[i]), "/proc/self/fd/%d", fds[i]);
		n = readlink(names[i], paths[i], sizeof(paths[i]) - 1);
		if (n < 0)
			return err_sys(e, errno, "find where a file lies");
		paths[i][n] = '\0';
	}
	if (!path_is_within(paths[1], paths[0]))
		return err_set(e, ERR_BUSY, "a file was moved while it was looked up");
	*ret = mem_dup(paths[1] + strlen(paths[0]));
	if ((*ret)[0] == '/')
		memmove(*ret, *ret + 1, strlen(*ret));
	return 0;
}

static int add_source(struct copylist *l, const struct copylist_options *o, const char *given,
		      bool is_pattern, struct err *e)
{
	cleanup_fd int path_fd = mount_open_in_root(o->root_fd, given[0] ? given : ".", O_PATH);
	cleanup_fd int fd = -1;
	cleanup_free char *path = NULL;
	struct copylist_source s = { .first = l->count };
	struct walk w = { l, o, 0 };
	bool may_have_kept;
	struct stat st;

	if (path_fd < 0)
		return is_pattern && path_fd == -ENOENT ? 0 : refuse_open(o, given, -path_fd, e);
	if (find_path(o->root_fd, path_fd, &path, e) < 0)
		return -1;
	if (fstat(path_fd, &st) < 0)
		return refuse_open(o, given, errno, e);
	w.source_len = path[0] ? strlen(path) + 1 : 0;
	if (is_left_out(&w, path, &may_have_kept) && (!S_ISDIR(st.st_mode) || !may_have_kept))
		return is_pattern
			       ? 0
			       : refuse(o, given, ERR_NOT_FOUND, "is left out by .dockerignore", e);
	if (add_entry(l, o, path, &st, e) < 0)
		return -1;
	s.is_dir = S_ISDIR(st.st_mode);
	if (s.is_dir) {
		fd = mount_open_in_root(o->root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY);
		if (fd < 0)
			return refuse_open(o, given, -fd, e);
		if (walk_dir(&w, fd, path, 0, e) < 0)
			return -1;
	}
	s.count = l->count - s.first;
	s.path = take_ptr(path);
	s.given = mem_dup(given);
	l->sources = mem_grow(l->sources, l->source_count + 1, sizeof(*l->sources));
	l->sources[l->source_count++] = s;
	return 0;
}

/* `done` is resolved, `rest` may still have patterns. */
static int add_matches(struct copylist *l, const struct copylist_options *o, const char *done,
		       const char *rest, unsigned depth, struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	size_t len = strcspn(rest, "/");
	cleanup_free char *part = mem_dup_bytes(rest, len);
	const char *after = rest + len + strspn(rest + len, "/");
	cleanup_fd int fd = -1;
	struct glob *glob = NULL;
	int r = 0;

	if (depth > COPYLIST_DEPTH_MAX)
		return refuse(o, rest, ERR_LIMIT, "lies beneath too many directories", e);
	fd = mount_open_in_root(o->root_fd, done[0] ? done : ".", O_RDONLY | O_DIRECTORY);
	if (fd < 0) /* a pattern may match nothing */
		return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP
			       ? 0
			       : refuse_open(o, done, -fd, e);
	if (glob_compile(part, 0, &glob, e) < 0)
		return -1;
	r = read_names(o, fd, done, &names, e);
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		cleanup_free char *path = NULL;

		if (!glob_match(glob, names.list[i]))
			continue;
		path = done[0] ? mem_format("%s/%s", done, names.list[i]) : mem_dup(names.list[i]);
		r = after[0] ? add_matches(l, o, path, after, depth + 1, e)
			     : add_source(l, o, path, true, e);
	}
	glob_free(glob);
	return r;
}

int copylist_add(struct copylist *l, const struct copylist_options *o, const char *word,
		 struct err *e)
{
	cleanup_free char *absolute = path_absolute("/", word);

	if (!absolute)
		return refuse(o, word, ERR_INVALID,
			      "climbs out of it: a build sees what is below its directory alone",
			      e);
	if (!glob_is_pattern(word))
		return add_source(l, o, absolute + 1, false, e);
	return add_matches(l, o, "", absolute + 1, 0, e);
}

/* ---- fingerprint ---- */

struct print {
	uint64_t a, b;
};

static void mix(struct print *p, const void *bytes, size_t len)
{
	const unsigned char *c = bytes;

	for (size_t i = 0; i < len; i++) {
		p->a = (p->a ^ c[i]) * 0x100000001b3ull;
		p->b = (p->b + c[i]) * 0x9e3779b97f4a7c15ull;
		p->b ^= p->b >> 29;
	}
}

void copylist_fingerprint(const struct copylist *l, char out[COPYLIST_PRINT_BYTES])
{
	struct print p = { 0xcbf29ce484222325ull, 0x84222325cbf29ce4ull };

	for (size_t i = 0; i < l->count; i++) {
		const struct copylist_entry *n = &l->entries[i];
		const uint64_t numbers[] = { n->mode,
					     n->size_bytes,
					     n->inode,
					     n->device,
					     (uint64_t)n->modified.tv_sec,
					     (uint64_t)n->modified.tv_nsec,
					     (uint64_t)n->changed.tv_sec,
					     (uint64_t)n->changed.tv_nsec };

		mix(&p, n->path, strlen(n->path) + 1);
		/* a directory's size and times change with names that are not copied */
		mix(&p, numbers, S_ISDIR(n->mode) ? sizeof(numbers[0]) : sizeof(numbers));
	}
	for (size_t i = 0; i < l->source_count; i++) {
		mix(&p, l->sources[i].given, strlen(l->sources[i].given) + 1);
		mix(&p, &l->sources[i].count, sizeof(l->sources[i].count));
	}
	(void)snprintf(out, COPYLIST_PRINT_BYTES, "%016" PRIx64 "%016" PRIx64, p.a, p.b);
}
