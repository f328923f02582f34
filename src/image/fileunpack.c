/*
 * fileunpack - unpacks a tar archive into a directory that is in use; see fileunpack.h.
 *
 * Theory of operation. layerstream.c reads and counts, libarchive parses the tar. The parent
 * directory of each entry is opened from the top in one call that refuses links and ".." (openat2),
 * or created component by component; the entry itself is created with calls that fail if the name
 * exists. Only then is the existing file examined, and removed unless it is a directory.
 *
 * Created files are recorded by inode: a hard link may only lead to one of these. Created
 * directories get their mode, owner and time at the end, in reverse order: until then only we can
 * access them, whatever the archive says.
 *
 * The directory may change meanwhile (a running sandbox). Then a file may end up elsewhere in the
 * same directory, or unpacking fails.
 */
#include "image/fileunpack.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/layername.h"
#include "image/layerstream.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MODE_IMPLIED 0755
#define SET_ID_BITS (S_ISUID | S_ISGID)
#define NANOSECONDS 1000000000
#define SLOTS_FIRST 1024u
#define ATTEMPTS_MAX 8 /* of a lookup while something is renamed */

struct inode {
	dev_t dev;
	ino_t ino; /* 0: free slot */
};

struct attributes {
	mode_t mode;
	uid_t uid;
	gid_t gid;
	struct timespec mtime;
};

/* A directory that we created. */
struct made {
	char *path;
	struct attributes attributes;
};

struct unpack {
	int dir_fd;
	unsigned flags;
	const struct layer_limits *limits;
	struct layerstream *stream;
	struct archive *archive;
	struct fileunpack_result result;

	struct made *dirs;
	size_t dir_count;

	struct inode *inodes;
	size_t slot_count; /* a power of two, at least twice inode_count */
	size_t inode_count;
};

/* The destination of an entry. */
struct spot {
	int fd;
	const char *name;
};

static void unpack_done(struct unpack *u)
{
	for (size_t i = 0; i < u->dir_count; i++)
		free(u->dirs[i].path);
	free(u->dirs);
	free(u->inodes);
	if (u->archive)
		(void)archive_read_free(u->archive);
	layerstream_free(u->stream);
}

/* ---- created files ---- */

static struct inode *find_inode(const struct unpack *u, dev_t dev, ino_t ino)
{
	size_t at = (size_t)((uint64_t)(ino ^ (dev << 32)) * 0x9e3779b97f4a7c15u >> 20);

	for (;; at++) {
		struct inode *slot = &u->inodes[at & (u->slot_count - 1)];

		if (slot->ino == 0 || (slot->dev == dev && slot->ino == ino))
			return slot;
	}
}

static void grow_inodes(struct unpack *u)
{
	struct inode *old = u->inodes;
	size_t old_count = u->slot_count;

	u->slot_count = old_count ? old_count * 2 : SLOTS_FIRST;
	u->inodes = mem_alloc(u->slot_count * sizeof(*u->inodes));
	for (size_t i = 0; i < old_count; i++)
		if (old[i].ino)
			*find_inode(u, old[i].dev, old[i].ino) = old[i];
	free(old);
}

static void remember_inode(struct unpack *u, const struct stat *st)
{
	if (2 * ++u->inode_count > u->slot_count)
		grow_inodes(u);
	*find_inode(u, st->st_dev, st->st_ino) = (struct inode){ st->st_dev, st->st_ino };
}

static bool is_ours(const struct unpack *u, const struct stat *st)
{
	return u->slot_count > 0 && find_inode(u, st->st_dev, st->st_ino)->ino != 0;
}

/* path[0..len) */
static int remember_directory(struct unpack *u, const char *path, size_t len,
			      const struct attributes *a, struct err *e)
{
	if (u->dir_count >= u->limits->directories)
		return err_set(e, ERR_LIMIT, "the archive has more than %u directories",
			       u->limits->directories);
	if ((u->dir_count & (u->dir_count - 1)) == 0)
		u->dirs = mem_grow(u->dirs, u->dir_count ? u->dir_count * 2 : 1, sizeof(*u->dirs));
	u->dirs[u->dir_count++] = (struct made){ mem_dup_bytes(path, len), *a };
	return 0;
}

/* ---- lookups ---- */

/* Opens a path beneath the top, without links; -errno. */
static int open_beneath(const struct unpack *u, const char *path, size_t len)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, /* O_NOFOLLOW gives ENOTDIR */
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	char text[LAYER_NAME_MAX_BYTES] = ".";
	int fd = -1;

	assert(len < sizeof(text));
	if (len > 0) {
		memcpy(text, path, len);
		/* cppcheck-suppress arrayIndexOutOfBoundsCond ; see the assert */
		text[len] = '\0';
	}
	for (int i = 0; i < ATTEMPTS_MAX && fd < 0; i++) {
		fd = (int)syscall(SYS_openat2, u->dir_fd, text, &how, sizeof(how));
		if (fd < 0 && errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : fd;
}

static int explain_parent(int sys, struct err *e)
{
	if (sys == ELOOP)
		return err_set(e, ERR_INVALID, "the name leads through a symbolic link");
	if (sys == ENOTDIR)
		return err_set(e, ERR_INVALID, "the name leads through what is not a directory");
	return err_sys(e, sys, "open the directory above it");
}

/* Creates the missing components of a path. */
static int make_parents(struct unpack *u, const char *path, size_t len, int *ret_fd, struct err *e)
{
	const struct attributes implied = { MODE_IMPLIED, geteuid(), getegid(), { 0, UTIME_NOW } };
	cleanup_fd int fd = open_beneath(u, "", 0);

	for (size_t at = 0; at < len && fd >= 0;) {
		char part[NAME_MAX + 1];
		size_t part_len = strcspn(path + at, "/");
		bool is_new;
		int next;

		if (part_len > len - at)
			part_len = len - at;
		memcpy(part, path + at, part_len);
		part[part_len] = '\0';
		at += part_len + 1;
		is_new = mkdirat(fd, part, 0700) == 0;
		if (!is_new && errno != EEXIST)
			return err_sys(e, errno, "make the directory above it");
		if (is_new && remember_directory(u, path, at - 1, &implied, e) < 0)
			return -1;
		next = openat(fd, part, DIRECTORY_FLAGS);
		if (next < 0)
			return explain_parent(errno, e);
		cleanup_closep(&fd);
		fd = next;
	}
	if (fd < 0)
		return explain_parent(-fd, e);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int open_parent(struct unpack *u, const struct layername *name, int *ret_fd, struct err *e)
{
	int fd = open_beneath(u, name->path, name->parent_len);

	if (fd == -ENOENT)
		return make_parents(u, name->path, name->parent_len, ret_fd, e);
	if (fd < 0)
		return explain_parent(-fd, e);
	*ret_fd = fd;
	return 0;
}

/* ---- attributes ---- */

static int read_attributes(const struct unpack *u, struct archive_entry *entry,
			   struct attributes *ret, struct err *e)
{
	int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
	long nanoseconds = archive_entry_mtime_nsec(entry);

	if (!(u->flags & FILEUNPACK_OWNERS)) {
		uid = geteuid();
		gid = getegid();
	}
	/* the highest number means "unchanged" to the kernel */
	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return err_set(e, ERR_INVALID, "invalid owner %lld:%lld", (long long)uid,
			       (long long)gid);
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	ret->mode = archive_entry_mode(entry) & 07777;
	if (!(u->flags & FILEUNPACK_OWNERS))
		ret->mode &= ~(mode_t)SET_ID_BITS;
	ret->mtime.tv_sec = archive_entry_mtime(entry);
	ret->mtime.tv_nsec = nanoseconds < 0 || nanoseconds >= NANOSECONDS ? 0 : nanoseconds;
	return 0;
}

static int explain_owner(int sys, const struct attributes *a, struct err *e)
{
	return err_sys(e, sys, "give it to %u:%u", (unsigned)a->uid, (unsigned)a->gid);
}

static int set_attributes(const struct unpack *u, int fd, const struct attributes *a, struct err *e)
{
	const struct timespec times[] = { a->mtime, a->mtime };

	if ((u->flags & FILEUNPACK_OWNERS) && fchown(fd, a->uid, a->gid) < 0)
		return explain_owner(errno, a, e);
	if (fchmod(fd, a->mode) < 0)
		return err_sys(e, errno, "set the mode");
	if (futimens(fd, times) < 0)
		return err_sys(e, errno, "set the time");
	return 0;
}

/* For entries that cannot be opened: a link, a fifo. */
static int set_attributes_at(const struct unpack *u, const struct spot *at,
			     const struct attributes *a, struct err *e)
{
	const struct timespec times[] = { a->mtime, a->mtime };

	if ((u->flags & FILEUNPACK_OWNERS) &&
	    fchownat(at->fd, at->name, a->uid, a->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return explain_owner(errno, a, e);
	if (utimensat(at->fd, at->name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "set the time");
	return 0;
}

/* ---- entries ---- */

static int explain_archive(const struct unpack *u, struct err *e)
{
	const struct err *stream = layerstream_get_error(u->stream);
	const char *words = archive_error_string(u->archive);

	if (stream) {
		*e = *stream;
		return -1;
	}
	return err_set(e, ERR_INVALID, "the archive is damaged: %s", words ? words : "no reason");
}

/*
 * Is it a mount point? The kernel refuses to remove one only within the mount's own namespace; we
 * are outside it, and the mount (a protection, a mask) would be dropped. Nobody inside can move a
 * mount point, so the result stays valid.
 */
static int refuse_mount_point(const struct spot *at, struct err *e)
{
	struct statx stx;

	if (statx(at->fd, at->name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &stx) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "look at what is there");
	if (!(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return err_set(e, ERR_UNSUPPORTED,
			       "this kernel does not tell whether something is mounted there");
	if (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return err_set(e, ERR_DENIED, "it is protected, masked or mounted");
	return 0;
}

/* The name exists: keeps a directory, removes anything else; a link is removed, not followed. */
static int make_room(const struct spot *at, struct err *e)
{
	if (refuse_mount_point(at, e) < 0)
		return -1;
	if (unlinkat(at->fd, at->name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR)
		return err_set(e, ERR_EXISTS, "a directory of that name is there");
	return err_sys(e, errno, "replace what is there");
}

static int copy_contents(const struct unpack *u, int fd, uint64_t size, struct err *e)
{
	const void *bytes;
	size_t len;
	int64_t offset;
	int r, failed;

	while ((r = archive_read_data_block(u->archive, &bytes, &len, &offset)) == ARCHIVE_OK) {
		if (offset < 0 || (uint64_t)offset > size || len > size - (uint64_t)offset)
			return err_set(e, ERR_INVALID, "it is larger than it says");
		failed = file_pwrite_all(fd, bytes, len, offset);
		if (failed < 0)
			return err_sys(e, -failed, "write");
	}
	if (r != ARCHIVE_EOF)
		return explain_archive(u, e);
	if (ftruncate(fd, (off_t)size) < 0) /* a hole at the end */
		return err_sys(e, errno, "set the size");
	return 0;
}

static int count_bytes(struct unpack *u, int64_t size, struct err *e)
{
	if (size < 0)
		return err_set(e, ERR_INVALID, "its size is negative");
	if ((uint64_t)size > u->limits->file_bytes - u->result.file_bytes)
		return err_set(e, ERR_LIMIT, "the files are larger than %" PRIu64 " bytes",
			       u->limits->file_bytes);
	u->result.file_bytes += (uint64_t)size;
	return 0;
}

static int create_file(const struct spot *at)
{
	return openat(at->fd, at->name,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
}

static int make_file(struct unpack *u, const struct spot *at, struct archive_entry *entry,
		     const struct attributes *a, struct err *e)
{
	int64_t size = archive_entry_size(entry);
	cleanup_fd int fd = -1;
	struct stat st;

	if (count_bytes(u, size, e) < 0)
		return -1;
	fd = create_file(at);
	if (fd < 0 && errno == EEXIST) {
		if (make_room(at, e) < 0)
			return -1;
		fd = create_file(at);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "make the file");
	remember_inode(u, &st);
	if (copy_contents(u, fd, (uint64_t)size, e) < 0)
		return -1;
	return set_attributes(u, fd, a, e);
}

/* A link, a fifo or another name, created by one call. Returns -errno. */
struct maker {
	const char *target; /* of a symbolic link */
	int from_fd;        /* of a hard link, -1: none */
	const char *from;
	mode_t mode; /* of a fifo */
};

static int make(const struct maker *m, const struct spot *at)
{
	int r;

	if (m->target)
		r = symlinkat(m->target, at->fd, at->name);
	else if (m->from_fd >= 0)
		r = linkat(m->from_fd, m->from, at->fd, at->name, 0);
	else
		r = mknodat(at->fd, at->name, S_IFIFO | m->mode, 0);
	return r < 0 ? -errno : 0;
}

static int make_or_replace(const struct maker *m, const struct spot *at, struct err *e)
{
	int r = make(m, at);

	if (r == -EEXIST) {
		if (make_room(at, e) < 0)
			return -1;
		r = make(m, at);
	}
	return r < 0 ? err_sys(e, -r, "make it") : 0;
}

static int make_node(struct unpack *u, const struct spot *at, const struct maker *m,
		     const struct attributes *a, struct err *e)
{
	struct stat st;

	if (make_or_replace(m, at, e) < 0)
		return -1;
	if (fstatat(at->fd, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at it");
	remember_inode(u, &st);
	return set_attributes_at(u, at, a, e);
}

static int make_symlink(struct unpack *u, const struct spot *at, struct archive_entry *entry,
			const struct attributes *a, struct err *e)
{
	const struct maker m = { .target = archive_entry_symlink(entry), .from_fd = -1 };

	if (!m.target || !m.target[0])
		return err_set(e, ERR_INVALID, "the symbolic link has no target");
	return make_node(u, at, &m, a, e);
}

static int make_fifo(struct unpack *u, const struct spot *at, const struct attributes *a,
		     struct err *e)
{
	return make_node(u, at, &(struct maker){ .from_fd = -1, .mode = a->mode & 0777 }, a, e);
}

static int make_directory(struct unpack *u, const struct layername *name, const struct spot *at,
			  const struct attributes *a, struct err *e)
{
	struct stat st;

	if (mkdirat(at->fd, at->name, 0700) == 0)
		return remember_directory(u, name->path, strlen(name->path), a, e);
	if (errno != EEXIST)
		return err_sys(e, errno, "make the directory");
	if (fstatat(at->fd, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at what is there");
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ERR_EXISTS, "%s of that name is there",
			       S_ISLNK(st.st_mode) ? "a symbolic link" : "a file");
	return 0;
}

static int make_hard_link(struct unpack *u, const struct layername *name, const struct spot *at,
			  const char *text, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];
	struct layername target;
	cleanup_fd int fd = -1;
	struct stat st;

	layername_quote(text, quoted);
	if (layername_parse_any(text, &target, e) < 0)
		return err_wrap(e, "it is a hard link to '%s'", quoted);
	if (target.kind != LAYERNAME_ENTRY || strcmp(target.path, name->path) == 0)
		return err_set(e, ERR_INVALID, "it is a hard link to '%s', which cannot be linked",
			       quoted);
	fd = open_beneath(u, target.path, target.parent_len);
	if (fd < 0 || fstatat(fd, target.last, &st, AT_SYMLINK_NOFOLLOW) < 0 || !is_ours(u, &st))
		return err_set(e, ERR_INVALID,
			       "it is a hard link to '%s', which is not a file of this archive",
			       quoted);
	return make_or_replace(&(struct maker){ .from_fd = fd, .from = target.last }, at, e);
}

static int make_entry(struct unpack *u, const struct layername *name, const struct spot *at,
		      struct archive_entry *entry, struct err *e)
{
	const char *target = archive_entry_hardlink(entry);
	struct attributes a;

	if (target)
		return make_hard_link(u, name, at, target, e);
	if (read_attributes(u, entry, &a, e) < 0)
		return -1;
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return make_file(u, at, entry, &a, e);
	case AE_IFDIR:
		return make_directory(u, name, at, &a, e);
	case AE_IFLNK:
		return make_symlink(u, at, entry, &a, e);
	case AE_IFIFO:
		return make_fifo(u, at, &a, e);
	case AE_IFCHR:
	case AE_IFBLK:
		return err_set(e, ERR_INVALID, "it is a device");
	default:
		return err_set(e, ERR_INVALID, "unknown file type");
	}
}

static int unpack_entry(struct unpack *u, struct archive_entry *entry, struct err *e)
{
	const char *text = archive_entry_pathname(entry);
	cleanup_fd int parent_fd = -1;
	struct layername name;

	if (layername_parse_any(text ? text : "", &name, e) < 0)
		return -1;
	if (name.kind == LAYERNAME_ROOT) /* the directory itself, which is not changed */
		return archive_entry_filetype(entry) == AE_IFDIR
			       ? 0
			       : err_set(e, ERR_INVALID, "the top is not a directory");
	if (open_parent(u, &name, &parent_fd, e) < 0)
		return -1;
	return make_entry(u, &name, &(struct spot){ parent_fd, name.last }, entry, e);
}

/* ---- the archive ---- */

static la_ssize_t on_read(struct archive *a, void *context, const void **ret)
{
	struct layerstream *stream = context;
	size_t len = 0;

	if (layerstream_next(stream, ret, &len) < 0) {
		archive_set_error(a, EIO, "the stream has failed");
		return ARCHIVE_FATAL;
	}
	return (la_ssize_t)len;
}

static int unpack_entries(struct unpack *u, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];
	struct archive_entry *entry;
	int r;

	/* warnings are about names that are not UTF-8, which we accept */
	while ((r = archive_read_next_header(u->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		const char *text = archive_entry_pathname(entry);

		if (++u->result.entry_count > u->limits->entries)
			return err_set(e, ERR_LIMIT,
				       "the archive has more than %" PRIu64 " entries",
				       u->limits->entries);
		if (unpack_entry(u, entry, e) < 0)
			return err_wrap(e, "'%s'", layername_quote(text ? text : "", quoted));
	}
	return r != ARCHIVE_EOF ? explain_archive(u, e) : 0;
}

/* Reads the rest, so that the writer is not killed by a closed pipe. */
static int drain(struct unpack *u, struct err *e)
{
	const void *bytes;
	size_t len = 0;

	do {
		if (layerstream_next(u->stream, &bytes, &len) < 0)
			return explain_archive(u, e);
	} while (len > 0);
	return 0;
}

static int finish_directories(const struct unpack *u, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];

	for (size_t i = u->dir_count; i-- > 0;) {
		const struct made *d = &u->dirs[i];
		cleanup_fd int fd = open_beneath(u, d->path, strlen(d->path));

		if (fd == -ENOENT) /* another process has removed it */
			continue;
		if (fd < 0)
			return err_sys(e, -fd, "open the directory '%s'",
				       layername_quote(d->path, quoted));
		if (set_attributes(u, fd, &d->attributes, e) < 0)
			return err_wrap(e, "'%s'", layername_quote(d->path, quoted));
	}
	return 0;
}

int fileunpack_run(int archive_fd, int dir_fd, unsigned flags, const struct layer_limits *limits,
		   struct fileunpack_result *ret, struct err *e)
{
	const struct layer_limits defaults = layer_default_limits();
	CLEANUP(unpack_done)
	struct unpack u = { .dir_fd = dir_fd,
			    .flags = flags,
			    .limits = limits ? limits : &defaults };
	bool is_ok;

	u.stream = layerstream_new(archive_fd, u.limits);
	u.archive = archive_read_new();
	is_ok = u.archive && archive_read_support_format_tar(u.archive) == ARCHIVE_OK;
	assert(is_ok); /* only out of memory */
	/* the next call reports a failure */
	(void)archive_read_open(u.archive, u.stream, NULL, on_read, NULL);
	if (unpack_entries(&u, e) < 0 || drain(&u, e) < 0 || finish_directories(&u, e) < 0)
		return -1;
	*ret = u.result;
	return 0;
}
