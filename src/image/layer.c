/*
 * layer - unpacks one image layer from a tar archive; see layer.h.
 *
 * Theory of operation. layerstream.c decompresses and hashes, libarchive parses the tar,
 * layerentry.c creates each entry, layerdirs.c sets the attributes of directories at the end. This
 * file has the loop around them and the checks of the archive as a whole: its limits, that it ends
 * where it says, and that only zeros follow. A last entry without padding is complete: umoci and
 * others omit the padding, and the end of the archive too.
 *
 * A layer is unpacked in one thread. Several layers are unpacked at a time, which keeps the cores
 * busy; a second thread per layer would only add synchronisation.
 */
#include "image/layer.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/layerdirs.h"
#include "image/layerentry.h"
#include "image/layerstream.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define XATTR_MAX_BYTES (64u << 10) /* the kernel's own maximum for a list and for a value */

struct layer_limits layer_default_limits(void)
{
	return (struct layer_limits){
		.entries = LAYER_ENTRIES_MAX,
		.file_bytes = LAYER_BYTES_MAX,
		.archive_bytes = LAYER_ARCHIVE_MAX_BYTES,
		.ratio = LAYER_RATIO_MAX,
		.ratio_free_bytes = LAYER_RATIO_FREE_BYTES,
		.directories = LAYER_DIRECTORIES_MAX,
		.implied = LAYER_IMPLIED_MAX,
	};
}

void layer_result_done(struct layer_result *r)
{
	for (unsigned i = 0; i < r->implied_count; i++)
		free(r->implied[i]);
	free(r->implied);
	r->implied = NULL;
	r->implied_count = 0;
}

/* ---- unpacking ---- */

static void archive_freep(struct archive **a)
{
	if (*a)
		(void)archive_read_free(*a); /* errors were reported before */
}

static la_ssize_t on_read(struct archive *a, void *context, const void **ret)
{
	struct layerstream *stream = context;
	size_t len = 0;

	if (layerstream_next(stream, ret, &len) < 0) {
		archive_set_error(a, EIO, "the stream has failed");
		return ARCHIVE_FATAL;
	}
	if (len == 0)
		len = layerstream_pad(stream, ret);
	return (la_ssize_t)len;
}

/* Formats other than tar, and filters, are never enabled. */
static struct archive *open_archive(struct layerstream *stream)
{
	struct archive *a = archive_read_new();
	bool is_ok = a && archive_read_support_format_tar(a) == ARCHIVE_OK;

	assert(is_ok);                                           /* only out of memory */
	(void)archive_read_open(a, stream, NULL, on_read, NULL); /* the next call reports failure */
	return a;
}

static int unpack_entries(struct layerentry_target *t, uint64_t *ret_count, struct err *e)
{
	struct archive_entry *entry;
	uint64_t count = 0;
	int r;

	/* warnings are about names that are not UTF-8, which we accept */
	while ((r = archive_read_next_header(t->archive, &entry)) == ARCHIVE_OK ||
	       r == ARCHIVE_WARN) {
		if (++count > t->limits->entries)
			return err_set(e, ERR_LIMIT, "the layer has more than %llu entries",
				       (unsigned long long)t->limits->entries);
		if (layerentry_make(t, entry, e) < 0)
			return -1;
	}
	if (r != ARCHIVE_EOF)
		return layerentry_explain(t, e);
	*ret_count = count;
	return 0;
}

/* The digest covers all bytes, also those after the end of the tar; they must be zeros. */
static int drain(struct layerentry_target *t, struct layerstream *stream, struct err *e)
{
	uint64_t end = (uint64_t)archive_filter_bytes(t->archive, 0);
	const void *bytes;
	size_t len;

	do {
		if (layerstream_next(stream, &bytes, &len) < 0)
			return layerentry_explain(t, e);
	} while (len > 0);
	if (layerstream_get_content_end(stream) > end)
		return err_set(e, ERR_INVALID, "something follows the end of the archive");
	return 0;
}

static int unpack(struct layerentry_target *t, struct layerstream *stream, struct layer_result *r,
		  struct err *e)
{
	if (unpack_entries(t, &r->entry_count, e) < 0 || drain(t, stream, e) < 0 ||
	    layerdirs_finish(t->dirs, e) < 0 ||
	    layerdirs_list_implied(t->dirs, &r->implied, &r->implied_count, e) < 0)
		return -1;
	layerstream_finish(stream, r->diff_id);
	if (t->flags & LAYER_HASH_INPUT)
		layerstream_finish_input(stream, r->digest);
	r->archive_bytes = layerstream_get_size(stream);
	r->file_bytes = t->file_bytes;
	r->is_root_opaque = t->is_root_opaque;
	return 0;
}

int layer_unpack_within(int archive_fd, int dir_fd, unsigned flags,
			const struct layer_limits *limits, struct layer_result *ret, struct err *e)
{
	CLEANUP(layerstream_freep) struct layerstream *stream = layerstream_new(archive_fd, limits);
	CLEANUP(layerdirs_freep) struct layerdirs *dirs = layerdirs_new(dir_fd, limits);
	CLEANUP(archive_freep) struct archive *archive = NULL;
	struct layerentry_target target = {
		.dirs = dirs,
		.stream = stream,
		.limits = limits,
		.flags = flags,
		.uid = geteuid(),
		.gid = getegid(),
	};
	struct layer_result result = { 0 };
	mode_t umask_before;
	int r;

	/* also clears set-group-id, so that new entries do not inherit the group */
	if (fchmod(dir_fd, 0755) < 0)
		return err_sys(e, errno, "set the mode of the layer's directory");
	if (flags & LAYER_HASH_INPUT)
		layerstream_hash_input(stream);
	archive = open_archive(stream);
	target.archive = archive;
	umask_before = umask(0);
	r = unpack(&target, stream, &result, e);
	(void)umask(umask_before);
	if (r == 0)
		*ret = result;
	return r;
}

int layer_unpack(int archive_fd, int dir_fd, unsigned flags, struct layer_result *ret,
		 struct err *e)
{
	const struct layer_limits limits = layer_default_limits();

	return layer_unpack_within(archive_fd, dir_fd, flags, &limits, ret, e);
}

/* ---- settling ---- */

enum lookup { LOOKUP_FOUND, LOOKUP_ABSENT, LOOKUP_HIDDEN };

/*
 * Follows `path` in one layer. LOOKUP_FOUND: *ret_fd is the directory, which the caller closes.
 * LOOKUP_ABSENT: this layer does not have it. LOOKUP_HIDDEN: this layer hides it. *ret_is_opaque:
 * in any case, layers below this one do not count.
 */
static int look_up(int layer_fd, const char *path, enum lookup *ret, bool *ret_is_opaque,
		   int *ret_fd, struct err *e)
{
	cleanup_free char *parts = mem_dup(path);
	cleanup_fd int fd = fcntl(layer_fd, F_DUPFD_CLOEXEC, 0);
	int sys = errno;
	char *rest = NULL;

	*ret_is_opaque = layerdirs_is_opaque(layer_fd);
	for (const char *part = strtok_r(parts, "/", &rest); part && fd >= 0;
	     part = strtok_r(NULL, "/", &rest)) {
		int next;

		/* a worker that hostile bytes may have taken over chose the names */
		if (strcmp(part, "..") == 0)
			return err_set(e, ERR_INVALID, "the name climbs with '..'");
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		sys = errno;

		if (next < 0 && (sys == ENOENT || sys == ENOTDIR || sys == ELOOP)) {
			*ret = sys == ENOENT ? LOOKUP_ABSENT : LOOKUP_HIDDEN;
			return 0;
		}
		cleanup_closep(&fd);
		fd = next;
		*ret_is_opaque |= fd >= 0 && layerdirs_is_opaque(fd);
	}
	if (fd < 0)
		return err_sys(e, sys, "look up '%s' in a lower layer", path);
	*ret = LOOKUP_FOUND;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int copy_xattrs(int from_fd, int to_fd)
{
	cleanup_free char *names = mem_alloc(XATTR_MAX_BYTES + 1);
	cleanup_free char *value = mem_alloc(XATTR_MAX_BYTES);
	ssize_t len = flistxattr(from_fd, names, XATTR_MAX_BYTES);

	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		ssize_t size;

		if (strncmp(name, "user.", 5) != 0 || strncmp(name, "user.overlay.", 13) == 0)
			continue;
		size = fgetxattr(from_fd, name, value, XATTR_MAX_BYTES);
		if (size < 0 || fsetxattr(to_fd, name, value, (size_t)size, 0) < 0)
			return -errno;
	}
	return 0;
}

static int copy_attributes(int from_fd, int to_fd)
{
	struct stat from, to;
	int r;

	if (fstat(from_fd, &from) < 0 || fstat(to_fd, &to) < 0)
		return -errno;
	if ((from.st_uid != to.st_uid || from.st_gid != to.st_gid) &&
	    fchown(to_fd, from.st_uid, from.st_gid) < 0)
		return -errno;
	r = copy_xattrs(from_fd, to_fd);
	if (r < 0)
		return r;
	if (fchmod(to_fd, from.st_mode & 07777) < 0)
		return -errno;
	if (futimens(to_fd, (const struct timespec[]){ from.st_atim, from.st_mtim }) < 0)
		return -errno;
	return 0;
}

static int settle_one(int dir_fd, const int *lower_fds, unsigned lower_count, const char *path,
		      struct err *e)
{
	cleanup_fd int fd = -1;
	enum lookup found = LOOKUP_ABSENT;
	bool is_opaque = false;

	if (look_up(dir_fd, path, &found, &is_opaque, &fd, e) < 0)
		return -1;
	if (found != LOOKUP_FOUND)
		return err_set(e, ERR_INVALID, "'%s' is not a directory of the layer", path);
	found = LOOKUP_ABSENT;
	for (unsigned i = 0; i < lower_count && !is_opaque && found == LOOKUP_ABSENT; i++) {
		cleanup_fd int lower_fd = -1;
		int r;

		if (look_up(lower_fds[i], path, &found, &is_opaque, &lower_fd, e) < 0)
			return -1;
		r = found == LOOKUP_FOUND ? copy_attributes(lower_fd, fd) : 0;
		if (r < 0)
			return err_sys(e, -r, "take over the attributes of '%s'", path);
	}
	return 0;
}

int layer_settle(int dir_fd, const int *lower_fds, unsigned lower_count, char *const *implied,
		 unsigned implied_count, struct err *e)
{
	/* children first: the new mode of a directory may lock us out */
	for (unsigned i = implied_count; i-- > 0;) {
		if (settle_one(dir_fd, lower_fds, lower_count, implied[i], e) < 0)
			return -1;
	}
	return 0;
}
