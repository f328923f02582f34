/*
 * treefile - copies one file's content and attributes; see treefile.h.
 *
 * Theory of operation. Content is copied by the first of three methods that works: sharing all
 * blocks (FICLONE), copying in the kernel, reading and writing. A method that the two file systems
 * do not support is remembered, so it is tried once per tree. Files with fewer blocks than bytes
 * are copied with SEEK_DATA.
 *
 * The order of attributes matters: changing the owner clears set-id bits and capabilities, an ACL
 * changes the mode, and everything changes the times.
 */
#include "tree/treefile.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define BUFFER_BYTES (256u << 10)
#define STEP_MAX_BYTES (1u << 30)   /* per call */
#define STEP_PACED_BYTES (1u << 20) /* the same with a rate */
#define XATTR_MAX_BYTES (64u << 10) /* the kernel's own maximum for a list and for a value */

void treefile_copier_done(struct treefile_copier *c)
{
	free(c->buffer);
	free(c->other);
	free(c->names);
	free(c->value);
	*c = (struct treefile_copier){ 0 };
}

/* ---- content ---- */

static void spend(struct treefile_copier *c, uint64_t bytes)
{
	pace_count(&c->pace, bytes);
	if (!c->is_urgent)
		pace_wait(&c->pace);
}

void treefile_catch_up(struct treefile_copier *c)
{
	pace_wait(&c->pace);
}

static bool is_unsupported(int error)
{
	return error == EOPNOTSUPP || error == ENOTTY || error == EXDEV || error == ENOSYS ||
	       error == EPERM;
}

static int write_at(int fd, const char *bytes, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

/* Returns the number of bytes, 0 at the end of a file that has shrunk. */
static ssize_t copy_by_hand(struct treefile_copier *c, int from_fd, int to_fd, off_t at, size_t len)
{
	ssize_t n;
	int r;

	if (!c->buffer)
		c->buffer = mem_alloc(BUFFER_BYTES);
	do
		n = pread(from_fd, c->buffer, len < BUFFER_BYTES ? len : BUFFER_BYTES, at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r = write_at(to_fd, c->buffer, (size_t)n, at);
	return r < 0 ? r : n;
}

static ssize_t copy_some(struct treefile_copier *c, int from_fd, int to_fd, off_t at, size_t len)
{
	off_t from = at, to = at;
	ssize_t n;

	if (c->cannot_copy)
		return copy_by_hand(c, from_fd, to_fd, at, len);
	do
		n = copy_file_range(from_fd, &from, to_fd, &to, len, 0);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	if (!is_unsupported(errno) && errno != EINVAL)
		return -errno;
	c->cannot_copy = true;
	return copy_by_hand(c, from_fd, to_fd, at, len);
}

static int copy_range(struct treefile_copier *c, int from_fd, int to_fd, off_t at, off_t end)
{
	off_t step = c->pace.bytes_per_s ? STEP_PACED_BYTES : STEP_MAX_BYTES;

	while (at < end) {
		size_t len = (size_t)(end - at < step ? end - at : step);
		ssize_t n = copy_some(c, from_fd, to_fd, at, len);

		if (n <= 0)
			return (int)n;
		at += n;
		spend(c, (uint64_t)n);
	}
	return 0;
}

/* Copies the parts that are not holes. */
static int copy_sparse(struct treefile_copier *c, int from_fd, off_t size, int to_fd,
		       uint64_t max_bytes, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	off_t hole = 0;

	while (hole < size) {
		off_t data = lseek(from_fd, hole, SEEK_DATA);
		int r;

		if (data < 0 && errno == ENXIO) /* only a hole follows */
			break;
		hole = data < 0 ? -1 : lseek(from_fd, data, SEEK_HOLE);
		if (hole < 0)
			return -errno;
		bytes += (uint64_t)(hole - data);
		if (bytes > max_bytes)
			return -EFBIG;
		r = copy_range(c, from_fd, to_fd, data, hole);
		if (r < 0)
			return r;
	}
	*ret_bytes = bytes;
	return ftruncate(to_fd, size) < 0 ? -errno : 0;
}

static bool try_clone(struct treefile_copier *c, int from_fd, int to_fd)
{
	if (c->cannot_clone)
		return false;
	if (ioctl(to_fd, FICLONE, from_fd) == 0)
		return true;
	/* otherwise only this file failed; if for lack of space, copying will report it */
	c->cannot_clone = is_unsupported(errno);
	return false;
}

int treefile_copy_content(struct treefile_copier *c, int from_fd, const struct stat *st, int to_fd,
			  uint64_t max_bytes, uint64_t *ret_bytes)
{
	uint64_t size = (uint64_t)st->st_size;
	uint64_t allocated = (uint64_t)st->st_blocks * 512;
	uint64_t bytes = size < allocated ? size : allocated;
	int r = 0;

	if (bytes > max_bytes)
		return -EFBIG;
	if (size > 0 && !try_clone(c, from_fd, to_fd)) {
		if (allocated < size)
			return copy_sparse(c, from_fd, st->st_size, to_fd, max_bytes, ret_bytes);
		r = copy_range(c, from_fd, to_fd, 0, st->st_size);
	}
	if (r == 0)
		*ret_bytes = bytes;
	return r;
}

static ssize_t read_at(int fd, char *out, size_t len, off_t at)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, out + got, len - got, at + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int update_block(struct treefile_copier *c, int from_fd, int to_fd, off_t at, size_t len,
			uint64_t *bytes)
{
	ssize_t from = read_at(from_fd, c->buffer, len, at);
	ssize_t to = from < 0 ? from : read_at(to_fd, c->other, (size_t)from, at);

	if (to < 0)
		return (int)to;
	spend(c, (uint64_t)from);
	if (to == from && memcmp(c->buffer, c->other, (size_t)from) == 0)
		return 0;
	*bytes += (uint64_t)from;
	return write_at(to_fd, c->buffer, (size_t)from, at);
}

int treefile_update_content(struct treefile_copier *c, int from_fd, const struct stat *st,
			    int to_fd, uint64_t *ret_bytes)
{
	uint64_t bytes = 0;
	int r = 0;

	if (!c->cannot_clone || (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size)
		return -EOPNOTSUPP;
	if (!c->buffer)
		c->buffer = mem_alloc(BUFFER_BYTES);
	if (!c->other)
		c->other = mem_alloc(BUFFER_BYTES);
	for (off_t at = 0; at < st->st_size && r == 0; at += BUFFER_BYTES) {
		off_t left = st->st_size - at;

		r = update_block(c, from_fd, to_fd, at,
				 left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES, &bytes);
	}
	if (r == 0 && ftruncate(to_fd, st->st_size) < 0)
		r = -errno;
	if (r == 0)
		*ret_bytes = bytes;
	return r;
}

/* ---- attributes ---- */

static bool has_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool is_capability(const char *name)
{
	return strcmp(name, "security.capability") == 0;
}

static bool is_list(const char *name)
{
	return has_prefix(name, "system.posix_acl_");
}

static bool is_copied(const char *name)
{
	if (!has_prefix(name, "user."))
		return is_list(name) || is_capability(name);
	/* the second prefix is how overlay stores such an attribute set by a program inside */
	return !has_prefix(name, "user.overlay.") || has_prefix(name, "user.overlay.overlay.") ||
	       strcmp(name, TREEFILE_OPAQUE) == 0;
}

/* Lists the attributes in c->names; returns the length of the list. */
static ssize_t list_names(struct treefile_copier *c, int fd)
{
	ssize_t len;

	if (!c->names) {
		c->names = mem_alloc(XATTR_MAX_BYTES + 1);
		c->value = mem_alloc(XATTR_MAX_BYTES);
	}
	len = flistxattr(fd, c->names, XATTR_MAX_BYTES);
	if (len < 0)
		return errno == ENOTSUP ? 0 : -errno;
	c->names[len] = '\0';
	return len;
}

static int copy_xattrs(struct treefile_copier *c, int from_fd, int to_fd)
{
	ssize_t len = list_names(c, from_fd);

	if (len < 0)
		return (int)len;
	for (const char *name = c->names; name < c->names + len; name += strlen(name) + 1) {
		ssize_t size;

		if (!is_copied(name))
			continue;
		size = fgetxattr(from_fd, name, c->value, XATTR_MAX_BYTES);
		if (size >= 0 && fsetxattr(to_fd, name, c->value, (size_t)size, 0) == 0)
			continue;
		if (!is_capability(name) || errno == ENOSPC || errno == EDQUOT || errno == EIO)
			return -errno;
	}
	return 0;
}

int treefile_copy_attributes(struct treefile_copier *c, int from_fd, const struct stat *st,
			     int to_fd)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	int r;

	if (fchown(to_fd, st->st_uid, st->st_gid) < 0)
		return -errno;
	r = copy_xattrs(c, from_fd, to_fd);
	if (r < 0)
		return r;
	if (fchmod(to_fd, st->st_mode & 07777) < 0 || futimens(to_fd, times) < 0)
		return -errno;
	return 0;
}

int treefile_clear_attributes(struct treefile_copier *c, int fd)
{
	ssize_t len = list_names(c, fd);

	if (len < 0)
		return (int)len;
	for (const char *name = c->names; name < c->names + len; name += strlen(name) + 1) {
		if (strcmp(name, TREEFILE_OPAQUE) == 0 ||
		    (!has_prefix(name, "user.") && !is_list(name)))
			continue;
		if (fremovexattr(fd, name) < 0)
			return -errno;
	}
	return 0;
}

/* ---- other types ---- */

/* Sets owner, mode and times of an entry that cannot be opened. Returns -errno. */
static int set_attributes_at(int dir_fd, const char *name, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };

	if (fchownat(dir_fd, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* a link has no mode of its own; otherwise the entry is the one we have just created */
	if (!S_ISLNK(st->st_mode) && fchmodat(dir_fd, name, st->st_mode & 07777, 0) < 0)
		return -errno;
	if (utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int copy_symlink(int from_fd, const char *name, const struct stat *st, int to_fd)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(from_fd, name, target, sizeof(target) - 1);

	if (len < 0)
		return -errno;
	target[len] = '\0';
	if (symlinkat(target, to_fd, name) < 0)
		return -errno;
	return set_attributes_at(to_fd, name, st);
}

int treefile_copy_special(int from_fd, const char *name, const struct stat *st, int to_fd)
{
	if (S_ISLNK(st->st_mode))
		return copy_symlink(from_fd, name, st, to_fd);
	if (mknodat(to_fd, name, (st->st_mode & S_IFMT) | 0600, makedev(0, 0)) < 0)
		return -errno;
	/* the existence of a whiteout is all that matters */
	return treefile_is_whiteout(st) ? 0 : set_attributes_at(to_fd, name, st);
}

bool treefile_is_opaque(int fd)
{
	char value;

	return fgetxattr(fd, TREEFILE_OPAQUE, &value, 1) == 1 && value == 'y';
}

bool treefile_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}
