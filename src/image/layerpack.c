/*
 * layerpack - writes files as a tar archive; see layerpack.h.
 *
 * Theory of operation. A walk by descriptors: each directory is opened beneath its parent without
 * following links, its names are read and sorted, and each file or directory is opened; its
 * metadata comes from the open descriptor. If the tree changes meanwhile, the archive mixes old and
 * new states, but never contains anything outside the tree.
 *
 * libarchive writes the tar (pax) and finds the hard links. Names are bytes: "hdrcharset=BINARY"
 * keeps it from translating them.
 *
 * Limits. Those of layer_unpack(): an archive that it would refuse is not completed.
 */
#include "image/layerpack.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/layer.h"
#include "image/layerdirs.h"
#include "image/layername.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define COPY_BYTES (256u << 10)
#define XATTR_MAX_BYTES (64u << 10) /* the kernel's own maximum for a list and for a value */
#define HOLES_MAX 4096u             /* a file with more is written without holes */

struct pack {
	struct archive *archive;
	struct archive_entry_linkresolver *links;
	unsigned flags; /* enum layerpack_flags */
	const struct layerpack_sink *sink;
	int write_error; /* of the sink */
	bool is_over;    /* nothing more may be written */
	char path[LAYER_NAME_MAX_BYTES];
	uint64_t entries;
	uint64_t bytes;
	char *buffer; /* COPY_BYTES */
};

/* Sorted; owned. */
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

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static void entry_freep(struct archive_entry **entry)
{
	archive_entry_free(*entry); /* NULL is fine */
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- the archive ---- */

static la_ssize_t on_write(struct archive *a, void *context, const void *bytes, size_t len)
{
	struct pack *p = context;
	int r = p->is_over ? -ECANCELED : p->sink->write(p->sink->context, bytes, len);

	if (r < 0) {
		p->write_error = -r;
		archive_set_error(a, -r, "write");
		return -1;
	}
	return (la_ssize_t)len;
}

static int explain(const struct pack *p, struct err *e)
{
	const char *words = archive_error_string(p->archive);

	if (p->write_error)
		return err_sys(e, p->write_error, "write the archive");
	return err_set(e, ERR_INVALID, "write the archive: %s", words ? words : "no reason");
}

static void pack_done(struct pack *p)
{
	archive_entry_linkresolver_free(p->links);
	/* libarchive would complete a partial archive here, with zeros for the rest of a file */
	p->is_over = true;
	(void)archive_write_free(p->archive);
	free(p->buffer);
}

static int pack_init(struct pack *p, unsigned flags, const struct layerpack_sink *sink,
		     struct err *e)
{
	*p = (struct pack){ .flags = flags, .sink = sink, .buffer = mem_alloc(COPY_BYTES) };
	p->links = archive_entry_linkresolver_new();
	p->archive = archive_write_new();
	assert(p->links && p->archive); /* only out of memory */
	archive_entry_linkresolver_set_strategy(p->links, ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE);
	if (archive_write_set_format_pax(p->archive) != ARCHIVE_OK ||
	    archive_write_set_options(p->archive, "hdrcharset=BINARY") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(p->archive, COPY_BYTES) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(p->archive, 512) != ARCHIVE_OK ||
	    archive_write_open2(p->archive, p, NULL, on_write, NULL, NULL) != ARCHIVE_OK)
		return explain(p, e);
	return 0;
}

/* ---- metadata of a file ---- */

static bool is_packed_xattr(const struct pack *p, const char *name)
{
	if (strncmp(name, "user.overlay.", 13) == 0)
		return (p->flags & LAYERPACK_AS_IS) && strcmp(name, "user.overlay.opaque") == 0;
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0;
}

/* Returns -errno. */
static int add_xattrs(const struct pack *p, struct archive_entry *entry, int fd)
{
	cleanup_free char *names = mem_alloc(XATTR_MAX_BYTES + 1);
	cleanup_free char *value = mem_alloc(XATTR_MAX_BYTES);
	ssize_t len = flistxattr(fd, names, XATTR_MAX_BYTES);

	if (len < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t size;

		if (!is_packed_xattr(p, name))
			continue;
		size = fgetxattr(fd, name, value, XATTR_MAX_BYTES);
		if (size < 0)
			return -errno;
		archive_entry_xattr_add_entry(entry, name, value, (size_t)size);
	}
	return 0;
}

static void add_holes(struct archive_entry *entry, int fd, const struct stat *st)
{
	off_t data = 0, hole = 0;

	if (st->st_blocks >= st->st_size / 512) /* not sparse */
		return;
	for (unsigned i = 0; hole < st->st_size; i++) {
		data = lseek(fd, hole, SEEK_DATA);
		if (data < 0) /* only a hole follows */
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || i == HOLES_MAX) {
			archive_entry_sparse_clear(entry);
			return;
		}
		archive_entry_sparse_add_entry(entry, data, hole - data);
	}
	if (archive_entry_sparse_count(entry) == 0) /* only a hole: add an empty piece at the end */
		archive_entry_sparse_add_entry(entry, st->st_size, 0);
}

static struct archive_entry *new_entry(const struct pack *p, const struct stat *st)
{
	struct archive_entry *entry = archive_entry_new();

	assert(entry);
	archive_entry_copy_stat(entry, st);
	archive_entry_unset_atime(entry);
	archive_entry_unset_ctime(entry);
	archive_entry_unset_birthtime(entry);
	if (p->sink->latest_s && archive_entry_mtime(entry) > p->sink->latest_s)
		archive_entry_set_mtime(entry, p->sink->latest_s, 0);
	archive_entry_copy_pathname(entry, p->path[0] ? p->path : "./");
	return entry;
}

static int write_zeros_up_to(struct pack *p, uint64_t from, uint64_t size, struct err *e)
{
	memset(p->buffer, 0, COPY_BYTES);
	while (from < size) {
		size_t len = size - from < COPY_BYTES ? (size_t)(size - from) : COPY_BYTES;

		if (archive_write_data(p->archive, p->buffer, len) < 0)
			return explain(p, e);
		from += len;
	}
	return 0;
}

/* Writes exactly as many bytes as the header says, even if the file changes meanwhile. */
static int write_contents(struct pack *p, int fd, uint64_t size, struct err *e)
{
	uint64_t at = 0;

	while (at < size) {
		size_t len = size - at < COPY_BYTES ? (size_t)(size - at) : COPY_BYTES;
		ssize_t n = pread(fd, p->buffer, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "read");
		if (n == 0)
			return write_zeros_up_to(p, at, size, e);
		if (archive_write_data(p->archive, p->buffer, (size_t)n) < 0)
			return explain(p, e);
		if (p->sink->note)
			p->sink->note(p->sink->context, p->buffer, (size_t)n);
		at += (uint64_t)n;
	}
	return 0;
}

static int check_limits(struct pack *p, const struct stat *st, struct err *e)
{
	if (++p->entries > LAYER_ENTRIES_MAX)
		return err_set(e, ERR_LIMIT, "there are more than %u files", LAYER_ENTRIES_MAX);
	if (S_ISREG(st->st_mode))
		p->bytes += (uint64_t)st->st_size;
	if (p->bytes > LAYER_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the files are larger than %llu bytes",
			       LAYER_BYTES_MAX);
	return 0;
}

static bool is_late(const struct pack *p, const struct stat *st)
{
	return p->sink->latest_s &&
	       (st->st_mtim.tv_sec > p->sink->latest_s ||
		(st->st_mtim.tv_sec == p->sink->latest_s && st->st_mtim.tv_nsec));
}

/* The access time is nobody's. */
static void latest_times(const struct pack *p, struct timespec out[2])
{
	out[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	out[1] = (struct timespec){ .tv_sec = p->sink->latest_s };
}

/* Tells what the entry is, but for its times. */
static void note_entry(const struct pack *p, struct archive_entry *entry)
{
	const char *name, *link = archive_entry_hardlink(entry);
	char numbers[160];
	const void *value;
	size_t size;

	if (!p->sink->note)
		return;
	if (!link)
		link = archive_entry_symlink(entry);
	(void)snprintf(numbers, sizeof(numbers), "%o %lld %lld %lld %d", archive_entry_mode(entry),
		       (long long)archive_entry_uid(entry), (long long)archive_entry_gid(entry),
		       (long long)archive_entry_size(entry), archive_entry_hardlink(entry) != NULL);
	p->sink->note(p->sink->context, p->path, strlen(p->path) + 1);
	p->sink->note(p->sink->context, numbers, strlen(numbers) + 1);
	p->sink->note(p->sink->context, link ? link : "", link ? strlen(link) + 1 : 1);
	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		p->sink->note(p->sink->context, name, strlen(name) + 1);
		p->sink->note(p->sink->context, &size, sizeof(size));
		p->sink->note(p->sink->context, value, size);
	}
}

/* Takes ownership of the entry. A further name of a file already written has no contents. */
static int write_entry(struct pack *p, struct archive_entry *entry, int fd, struct err *e)
{
	CLEANUP(entry_freep) struct archive_entry *owned = entry;
	struct archive_entry *deferred = NULL;
	bool has_contents;

	archive_entry_linkify(p->links, &owned, &deferred);
	assert(owned && !deferred); /* only other strategies defer entries */
	has_contents = archive_entry_filetype(owned) == AE_IFREG && !archive_entry_hardlink(owned);
	note_entry(p, owned);
	if (archive_write_header(p->archive, owned) != ARCHIVE_OK)
		return explain(p, e);
	if (!has_contents)
		return 0;
	return write_contents(p, fd, (uint64_t)archive_entry_size(owned), e);
}

/* Writes an open file or directory. */
static int write_open(struct pack *p, int fd, const struct stat *st, struct err *e)
{
	struct archive_entry *entry;
	struct timespec times[2];
	int r;

	if (check_limits(p, st, e) < 0)
		return -1;
	latest_times(p, times);
	if (is_late(p, st) && futimens(fd, times) < 0)
		return err_sys(e, errno, "set its time");
	entry = new_entry(p, st);
	r = add_xattrs(p, entry, fd);
	if (r < 0) {
		archive_entry_free(entry);
		return err_sys(e, -r, "read the attributes");
	}
	if (S_ISREG(st->st_mode))
		add_holes(entry, fd, st);
	return write_entry(p, entry, fd, e);
}

static int write_symlink(struct pack *p, int dir_fd, const char *name, const struct stat *st,
			 struct err *e)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);
	struct archive_entry *entry;
	struct timespec times[2];

	if (len < 0)
		return err_sys(e, errno, "read the link");
	target[len] = '\0';
	latest_times(p, times);
	if (is_late(p, st) && utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "set its time");
	if (check_limits(p, st, e) < 0)
		return -1;
	entry = new_entry(p, st);
	archive_entry_copy_symlink(entry, target);
	return write_entry(p, entry, -1, e);
}

/* Writes a fifo, or a device unchanged. */
static int write_node(struct pack *p, const struct stat *st, struct err *e)
{
	if (check_limits(p, st, e) < 0)
		return -1;
	return write_entry(p, new_entry(p, st), -1, e);
}

/* Writes an empty file next to the current path, or in the directory there if `name` is the opaque
 * mark. Only its name has a meaning. */
static int write_mark(struct pack *p, const char *name, struct err *e)
{
	const struct stat st = { .st_mode = S_IFREG | 0644, .st_nlink = 1 };
	char path[sizeof(p->path)];
	int r;

	memcpy(path, p->path, sizeof(path));
	if (strlen(path) + strlen(name) + 2 > sizeof(path))
		return err_set(e, ERR_LIMIT, "what lies in it has too long a name");
	if (strcmp(name, LAYERNAME_OPAQUE_MARK) == 0) {
		strcat(strcat(p->path, p->path[0] ? "/" : ""), name);
	} else {
		char *last = strrchr(p->path, '/');

		if (strlen(name) + strlen(LAYERNAME_WHITEOUT_MARK) > NAME_MAX)
			return err_set(e, ERR_INVALID,
				       "a layer has no word for the removal of so long a name");
		last = last ? last + 1 : p->path;
		strcat(strcpy(last, LAYERNAME_WHITEOUT_MARK), name);
	}
	r = write_node(p, &st, e);
	memcpy(p->path, path, sizeof(path));
	return r;
}

/* ---- the walk ---- */

static int read_names(int fd, struct names *ret, struct err *e)
{
	CLEANUP(closedirp) DIR *dir = NULL;
	CLEANUP(names_done) struct names names = { 0 };
	const struct dirent *child;
	int own_fd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	dir = own_fd >= 0 ? fdopendir(own_fd) : NULL;
	if (!dir)
		return err_sys(e, errno, "open the directory");
	while ((errno = 0, child = readdir(dir))) {
		if (strcmp(child->d_name, ".") == 0 || strcmp(child->d_name, "..") == 0)
			continue;
		if (names.count == LAYER_ENTRIES_MAX)
			return err_set(e, ERR_LIMIT, "there are more than %u files",
				       LAYER_ENTRIES_MAX);
		if ((names.count & (names.count - 1)) == 0)
			names.list = mem_grow(names.list, names.count ? names.count * 2 : 1,
					      sizeof(char *));
		names.list[names.count++] = mem_dup(child->d_name);
	}
	if (errno != 0)
		return err_sys(e, errno, "read the directory");
	if (names.count > 0)
		qsort(names.list, names.count, sizeof(char *), compare_names);
	*ret = names;
	names = (struct names){ 0 };
	return 0;
}

static int pack_directory(struct pack *p, int fd, const char *const *excluded, unsigned depth,
			  struct err *e);

/* The type may have changed since the lookup of the name, so it is taken from the open file. */
static int pack_fd(struct pack *p, int fd, unsigned depth, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at it");
	if (S_ISDIR(st.st_mode))
		return pack_directory(p, fd, NULL, depth, e);
	if (S_ISREG(st.st_mode))
		return write_open(p, fd, &st, e);
	return err_set(e, ERR_BUSY, "it was replaced while it was packed");
}

static int pack_opened(struct pack *p, int dir_fd, const char *name, unsigned depth, struct err *e)
{
	cleanup_fd int fd =
		openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? err_sys(e, errno, "open") : pack_fd(p, fd, depth, e);
}

/* Sockets and devices have no meaning elsewhere. */
static int pack_special(struct pack *p, const char *name, const struct stat *st, struct err *e)
{
	bool is_whiteout = S_ISCHR(st->st_mode) && st->st_rdev == 0;

	if (p->flags & LAYERPACK_AS_IS)
		return is_whiteout
			       ? write_node(p, &(struct stat){ .st_mode = S_IFCHR, .st_nlink = 1 },
					    e)
			       : 0;
	if ((p->flags & LAYERPACK_WHITEOUTS) && (is_whiteout || S_ISSOCK(st->st_mode)))
		return write_mark(p, name, e);
	return 0;
}

static int pack_child(struct pack *p, int dir_fd, const char *name, unsigned depth, struct err *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at it");
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
		return pack_opened(p, dir_fd, name, depth, e);
	case S_IFLNK:
		return write_symlink(p, dir_fd, name, &st, e);
	case S_IFIFO:
		return write_node(p, &st, e);
	default:
		return pack_special(p, name, &st, e);
	}
}

static bool is_excluded(const char *const *excluded, const char *name)
{
	for (; excluded && *excluded; excluded++) {
		if (strcmp(*excluded, name) == 0)
			return true;
	}
	return false;
}

/* Appends a name to the path and packs it. After a failure the path shows the place. */
static int pack_name(struct pack *p, int dir_fd, const char *name, unsigned depth, struct err *e)
{
	size_t len = strlen(p->path);
	size_t room = sizeof(p->path) - len;

	if (strlen(name) + 2 > room)
		return err_set(e, ERR_LIMIT, "what lies in it has too long a name");
	(void)snprintf(p->path + len, room, "%s%s", len > 0 ? "/" : "", name);
	if (!(p->flags & (LAYERPACK_ANY_NAME | LAYERPACK_AS_IS)) &&
	    strncmp(name, LAYERNAME_WHITEOUT_MARK, strlen(LAYERNAME_WHITEOUT_MARK)) == 0)
		return err_set(e, ERR_INVALID, "in a layer such a name hides another file");
	if (pack_child(p, dir_fd, name, depth, e) < 0)
		return -1;
	p->path[len] = '\0';
	return 0;
}

static int pack_directory(struct pack *p, int fd, const char *const *excluded, unsigned depth,
			  struct err *e)
{
	CLEANUP(names_done) struct names names = { 0 };
	struct stat st;

	if (depth > LAYER_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "it lies beneath more than %u directories",
			       LAYER_DEPTH_MAX);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at it");
	if (write_open(p, fd, &st, e) < 0 || read_names(fd, &names, e) < 0)
		return -1;
	/* overlay ignores the mark on a layer's own root */
	if ((p->flags & LAYERPACK_WHITEOUTS) && depth > 0 && layerdirs_is_opaque(fd) &&
	    write_mark(p, LAYERNAME_OPAQUE_MARK, e) < 0)
		return -1;
	for (size_t i = 0; i < names.count; i++) {
		if (is_excluded(excluded, names.list[i]))
			continue;
		if (pack_name(p, fd, names.list[i], depth + 1, e) < 0)
			return -1;
	}
	return 0;
}

static int finish(struct pack *p, struct err *e)
{
	return archive_write_close(p->archive) != ARCHIVE_OK ? explain(p, e) : 0;
}

static int explain_path(const struct pack *p, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];

	return err_wrap(e, "pack '%s'", layername_quote(p->path, quoted));
}

static int write_tree(int dir_fd, unsigned flags, const char *const *excluded,
		      const struct layerpack_sink *sink, struct err *e)
{
	CLEANUP(pack_done) struct pack p;

	if (pack_init(&p, flags, sink, e) < 0)
		return -1;
	if (pack_directory(&p, dir_fd, excluded, 0, e) < 0)
		return explain_path(&p, e);
	return finish(&p, e);
}

int layerpack_write_tree(int dir_fd, unsigned flags, const struct layerpack_sink *sink,
			 struct err *e)
{
	return write_tree(dir_fd, flags, NULL, sink, e);
}

static int write_to_fd(void *context, const void *bytes, size_t len)
{
	return file_write_all(*(const int *)context, bytes, len);
}

int layerpack_write(int dir_fd, int archive_fd, const char *const *excluded, struct err *e)
{
	const struct layerpack_sink sink = { write_to_fd, &archive_fd };

	return write_tree(dir_fd, 0, excluded, &sink, e);
}

int layerpack_write_entry(int dir_fd, const char *name, const char *as, unsigned flags,
			  const struct layerpack_sink *sink, struct err *e)
{
	CLEANUP(pack_done) struct pack p;
	int r;

	if (pack_init(&p, flags, sink, e) < 0)
		return -1;
	if (strlen(as) + 1 > sizeof(p.path))
		return err_set(e, ERR_LIMIT, "the name in the archive is too long");
	strcpy(p.path, as);
	r = name ? pack_child(&p, dir_fd, name, 0, e) : pack_fd(&p, dir_fd, 0, e);
	if (r < 0)
		return explain_path(&p, e);
	return finish(&p, e);
}
