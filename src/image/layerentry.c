/*
 * layerentry - creates one entry of a layer's archive; see layerentry.h.
 *
 * Theory of operation. The name is parsed (layername.h), its parent directory is opened or created
 * (layerdirs.h, which follows links inside the layer), and everything else is done relative to that
 * descriptor with the last component of the name, which is never followed if it is a symbolic link.
 * A file is created with O_EXCL; only if that fails do we examine the existing one. As in Docker
 * and containerd, a directory over a directory is merged with it; for any other pair the earlier
 * one is removed, with everything beneath it.
 *
 * A whiteout refers to lower layers only: next to an entry of the same name, in either order, the
 * entry stays, and if it is a directory it becomes opaque.
 *
 * Unnecessary calls are avoided, because there are images with a hundred thousand files: the mode
 * is set at creation (the caller has set the umask to 0), and an owner equal to our own is not set.
 * The order of the other calls matters: writing and changing the owner clear the set-user-id bits
 * and the capabilities, and all of them change the time.
 */
#include "image/layerentry.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "image/layername.h"
#include "image/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#define CAPABILITY "security.capability"
#define MODE_SPECIAL 07000 /* set-user-id, set-group-id, sticky */
#define NANOSECONDS 1000000000
#define ROOM_STEP_BYTES (64ull << 20) /* more than libarchive returns at once */
#define FILE_BYTES 4096u              /* disk space of an empty file */

struct attributes {
	mode_t mode; /* permissions */
	uid_t uid;
	gid_t gid;
	struct timespec times[2]; /* read, changed */
	struct archive_entry *entry;
};

/* The destination of an entry. */
struct spot {
	struct layerdirs_place place;
	const char *name;
};

int layerentry_explain(const struct layerentry_target *t, struct err *e)
{
	const struct err *stream = layerstream_get_error(t->stream);
	const char *words = archive_error_string(t->archive);

	if (stream) {
		*e = *stream;
		return -1;
	}
	return err_set(e, ERR_INVALID, "the archive is damaged: %s", words ? words : "no reason");
}

/* ---- attributes ---- */

static int explain_owner(int error, const struct attributes *a, struct err *e)
{
	if (error == EINVAL)
		return err_set(e, ERR_UNSUPPORTED,
			       "its owner %u:%u is beyond this user's range in /etc/subuid and "
			       "/etc/subgid (65536 ids are usual)",
			       (unsigned)a->uid, (unsigned)a->gid);
	return err_sys(e, error, "set the owner %u:%u", (unsigned)a->uid, (unsigned)a->gid);
}

static int read_attributes(struct archive_entry *entry, struct attributes *ret, struct err *e)
{
	int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
	long nanoseconds = archive_entry_mtime_nsec(entry);

	if (uid < 0 || uid > LAYER_ID_MAX || gid < 0 || gid > LAYER_ID_MAX)
		return err_set(e, ERR_INVALID, "its owner %lld:%lld is not within 0..%u",
			       (long long)uid, (long long)gid, LAYER_ID_MAX);
	if (nanoseconds < 0 || nanoseconds >= NANOSECONDS)
		nanoseconds = 0;
	ret->entry = entry;
	ret->mode = archive_entry_mode(entry) & 07777;
	ret->uid = (uid_t)uid;
	ret->gid = (gid_t)gid;
	ret->times[0].tv_sec = archive_entry_mtime(entry);
	ret->times[0].tv_nsec = nanoseconds;
	ret->times[1] = ret->times[0];
	return 0;
}

static bool needs_owner(const struct layerentry_target *t, const struct attributes *a)
{
	return !(t->flags & LAYER_ONE_OWNER) && (a->uid != t->uid || a->gid != t->gid);
}

static bool is_restored(const char *name)
{
	/* they have a meaning for overlay: only we may set them */
	if (strncmp(name, "user.overlay.", 13) == 0)
		return false;
	return strncmp(name, "user.", 5) == 0 || strcmp(name, CAPABILITY) == 0;
}

static int set_xattrs(int fd, struct archive_entry *entry, struct err *e)
{
	const char *name;
	const void *value;
	size_t size;

	(void)archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		if (!is_restored(name) || fsetxattr(fd, name, value, size, 0) == 0)
			continue;
		/* without the right to set capabilities the file has none */
		if ((errno == EPERM || errno == ENOTSUP) && strcmp(name, CAPABILITY) == 0)
			continue;
		return err_sys(e, errno, "set an attribute");
	}
	return 0;
}

static int set_file_attributes(const struct layerentry_target *t, int fd,
			       const struct attributes *a, struct err *e)
{
	if (needs_owner(t, a) && fchown(fd, a->uid, a->gid) < 0)
		return explain_owner(errno, a, e);
	if ((a->mode & MODE_SPECIAL) && fchmod(fd, a->mode) < 0)
		return err_sys(e, errno, "set the mode");
	if (set_xattrs(fd, a->entry, e) < 0)
		return -1;
	if (futimens(fd, a->times) < 0)
		return err_sys(e, errno, "set the time");
	return 0;
}

/* For entries that cannot be opened. */
static int set_attributes_at(const struct layerentry_target *t, const struct spot *at,
			     const struct attributes *a, struct err *e)
{
	int fd = at->place.fd;

	if (needs_owner(t, a) && fchownat(fd, at->name, a->uid, a->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return explain_owner(errno, a, e);
	/* a link has no mode of its own, and this call would follow it */
	if (archive_entry_filetype(a->entry) == AE_IFIFO && (a->mode & MODE_SPECIAL) &&
	    fchmodat(fd, at->name, a->mode, 0) < 0)
		return err_sys(e, errno, "set the mode");
	if (utimensat(fd, at->name, a->times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "set the time");
	return 0;
}

/* ---- replacing ---- */

static void closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* Recursive: the depth of names is bounded. */
static int remove_tree(int parent_fd, const char *name, struct err *e)
{
	CLEANUP(closedirp) DIR *dir = NULL;
	cleanup_fd int fd =
		openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct dirent *child;

	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir)
		return err_sys(e, errno, "open the directory that is replaced");
	fd = -1; /* owned by dir now */
	while ((child = readdir(dir))) {
		if (strcmp(child->d_name, ".") == 0 || strcmp(child->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), child->d_name, 0) == 0)
			continue;
		if (errno != EISDIR)
			return err_sys(e, errno, "empty the directory that is replaced");
		if (remove_tree(dirfd(dir), child->d_name, e) < 0)
			return -1;
	}
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0)
		return err_sys(e, errno, "remove the directory that is replaced");
	return 0;
}

/* Removes an earlier entry of this name, or a whiteout. */
static int make_room(const struct layerentry_target *t, const struct spot *at, struct err *e)
{
	struct layerdirs_node *directory = layerdirs_get(t->dirs, at->place.node, at->name);

	if (directory) {
		layerdirs_forget(directory);
		return remove_tree(at->place.fd, at->name, e);
	}
	if (unlinkat(at->place.fd, at->name, 0) < 0)
		return err_sys(e, errno, "replace an earlier entry");
	return 0;
}

/* ---- kinds of entries ---- */

static int create(const struct spot *at, mode_t mode)
{
	return openat(at->place.fd, at->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      mode);
}

/* Keeps a reserve on the file system for others (image/room.h). */
static int take_room(struct layerentry_target *t, int fd, uint64_t bytes, struct err *e)
{
	uint64_t available = 0;

	if (bytes > t->room_bytes) {
		if (room_check(fd, bytes, &available, e) < 0)
			return -1;
		t->room_bytes = available < ROOM_STEP_BYTES ? available : ROOM_STEP_BYTES;
	}
	t->room_bytes -= bytes;
	return 0;
}

static int copy_contents(struct layerentry_target *t, int fd, uint64_t size, struct err *e)
{
	uint64_t end = 0;

	for (;;) {
		const void *bytes;
		size_t len;
		int64_t offset;
		int r = archive_read_data_block(t->archive, &bytes, &len, &offset);

		if (r == ARCHIVE_EOF)
			break;
		if (r != ARCHIVE_OK)
			return layerentry_explain(t, e);
		if (len > 0 && layerstream_is_padded(t->stream))
			return err_set(e, ERR_INVALID, "the archive is cut off in its content");
		if (offset < 0 || (uint64_t)offset > size || len > size - (uint64_t)offset)
			return err_set(e, ERR_INVALID, "it holds more than its size");
		if (take_room(t, fd, len, e) < 0)
			return -1;
		r = file_pwrite_all(fd, bytes, len, offset);
		if (r < 0)
			return err_sys(e, -r, "write");
		end = (uint64_t)offset + len;
	}
	if (end != size && ftruncate(fd, (off_t)size) < 0) /* a hole at the end */
		return err_sys(e, errno, "set the size");
	return 0;
}

static int count_bytes(struct layerentry_target *t, int64_t size, struct err *e)
{
	if (size < 0)
		return err_set(e, ERR_INVALID, "its size is negative");
	if ((uint64_t)size > t->limits->file_bytes - t->file_bytes)
		return err_set(e, ERR_LIMIT, "the layer's files are larger than %llu bytes",
			       (unsigned long long)t->limits->file_bytes);
	t->file_bytes += (uint64_t)size;
	return 0;
}

static int make_file(struct layerentry_target *t, const struct spot *at, const struct attributes *a,
		     struct err *e)
{
	int64_t size = archive_entry_size(a->entry);
	cleanup_fd int fd = -1;

	if (count_bytes(t, size, e) < 0)
		return -1;
	fd = create(at, a->mode);
	if (fd < 0 && errno == EEXIST) {
		if (make_room(t, at, e) < 0)
			return -1;
		fd = create(at, a->mode);
	}
	if (fd < 0)
		return err_sys(e, errno, "make the file");
	if (take_room(t, fd, FILE_BYTES, e) < 0 || copy_contents(t, fd, (uint64_t)size, e) < 0)
		return -1;
	return set_file_attributes(t, fd, a, e);
}

static int make_symlink(struct layerentry_target *t, const struct spot *at,
			const struct attributes *a, struct err *e)
{
	const char *target = archive_entry_symlink(a->entry);
	int r;

	if (!target || !target[0])
		return err_set(e, ERR_INVALID, "the symbolic link has no target");
	r = symlinkat(target, at->place.fd, at->name);
	if (r < 0 && errno == EEXIST) {
		if (make_room(t, at, e) < 0)
			return -1;
		r = symlinkat(target, at->place.fd, at->name);
	}
	if (r < 0)
		return err_sys(e, errno, "make the symbolic link");
	return set_attributes_at(t, at, a, e);
}

static int make_fifo(struct layerentry_target *t, const struct spot *at, const struct attributes *a,
		     struct err *e)
{
	int r = mknodat(at->place.fd, at->name, S_IFIFO | a->mode, 0);

	if (r < 0 && errno == EEXIST) {
		if (make_room(t, at, e) < 0)
			return -1;
		r = mknodat(at->place.fd, at->name, S_IFIFO | a->mode, 0);
	}
	if (r < 0)
		return err_sys(e, errno, "make the fifo");
	return set_attributes_at(t, at, a, e);
}

/* An existing directory may have had another owner. */
static int make_directory(struct layerentry_target *t, const struct spot *at,
			  const struct attributes *a, struct err *e)
{
	struct layerdirs_node *node = layerdirs_get(t->dirs, at->place.node, at->name);
	bool is_new = !node;
	cleanup_fd int fd = -1;

	if (is_new) {
		if (layerdirs_make(t->dirs, &at->place, at->name, &node, &fd, e) < 0)
			return -1;
	} else {
		fd = openat(at->place.fd, at->name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, errno, "open the directory");
	}
	if ((is_new ? needs_owner(t, a) : !(t->flags & LAYER_ONE_OWNER)) &&
	    fchown(fd, a->uid, a->gid) < 0)
		return explain_owner(errno, a, e);
	if (set_xattrs(fd, a->entry, e) < 0)
		return -1;
	layerdirs_set(node, a->mode, &a->times[1]);
	return 0;
}

/* ---- hard links ---- */

static int refuse_target(const char *text, const char *why, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];

	return err_set(e, ERR_INVALID, "it is a hard link to '%s', which %s",
		       layername_quote(text, quoted), why);
}

static int parse_target(const char *text, struct layername *ret, struct err *e)
{
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];

	if (layername_parse(text, ret, e) < 0)
		return err_wrap(e, "it is a hard link to '%s'", layername_quote(text, quoted));
	if (ret->kind != LAYERNAME_ENTRY)
		return refuse_target(text, "cannot be linked", e);
	return 0;
}

/* It must exist in this layer, be a file with content, and not be the link itself. */
static int check_target(const struct spot *target, const struct spot *at, const char *path,
			struct err *e)
{
	struct stat st;

	if (target->place.node == at->place.node && strcmp(target->name, at->name) == 0)
		return refuse_target(path, "cannot be linked", e);
	if (fstatat(target->place.fd, target->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return refuse_target(path, "is not in this layer", e);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISFIFO(st.st_mode))
		return refuse_target(path, "cannot be linked", e);
	return 0;
}

static int make_hard_link(struct layerentry_target *t, const struct layername *name,
			  const struct spot *at, const char *text, struct err *e)
{
	cleanup_fd int target_fd = -1;
	struct layername target;
	struct spot from = { .place = at->place };
	struct err ignored;
	int r;

	if (parse_target(text, &target, e) < 0)
		return -1;
	from.name = target.last;
	if (target.parent_len != name->parent_len ||
	    memcmp(target.path, name->path, name->parent_len) != 0) {
		if (layerdirs_find(t->dirs, target.path, target.parent_len, &from.place.node,
				   &target_fd, &ignored) < 0)
			return refuse_target(target.path, "is not in this layer", e);
		from.place.fd = target_fd;
	}
	if (check_target(&from, at, target.path, e) < 0)
		return -1;
	r = linkat(from.place.fd, from.name, at->place.fd, at->name, 0);
	if (r < 0 && errno == EEXIST) {
		if (make_room(t, at, e) < 0)
			return -1;
		r = linkat(from.place.fd, from.name, at->place.fd, at->name, 0);
	}
	if (r < 0)
		return err_sys(e, errno, "make the hard link");
	return 0;
}

/* ---- whiteouts ---- */

static int make_opaque(int fd, struct err *e)
{
	int r = layerdirs_set_opaque(fd);

	return r < 0 ? err_sys(e, -r, "make the directory opaque") : 0;
}

static int make_whiteout(struct layerentry_target *t, const struct spot *at, struct err *e)
{
	cleanup_fd int fd = -1;

	if (!layerdirs_get(t->dirs, at->place.node, at->name)) {
		/* an existing entry hides as well */
		if (mknodat(at->place.fd, at->name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST)
			return err_sys(e, errno, "make the whiteout");
		return 0;
	}
	fd = openat(at->place.fd, at->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open the directory");
	return make_opaque(fd, e);
}

static int hide_lower(struct layerentry_target *t, const struct layerdirs_place *place,
		      struct err *e)
{
	if (layerdirs_is_root(place->node))
		t->is_root_opaque = true;
	return make_opaque(place->fd, e);
}

/* ---- all of them ---- */

static int set_root(struct layerentry_target *t, struct archive_entry *entry, struct err *e)
{
	struct layerdirs_place root;
	struct attributes a;

	if (archive_entry_filetype(entry) != AE_IFDIR || archive_entry_hardlink(entry))
		return err_set(e, ERR_INVALID, "the root of the layer is not a directory");
	if (read_attributes(entry, &a, e) < 0 || layerdirs_enter(t->dirs, "", 0, &root, e) < 0)
		return -1;
	if (!(t->flags & LAYER_ONE_OWNER) && fchown(root.fd, a.uid, a.gid) < 0)
		return explain_owner(errno, &a, e);
	if (set_xattrs(root.fd, entry, e) < 0)
		return -1;
	layerdirs_set(root.node, a.mode, &a.times[1]);
	return 0;
}

/* Devices in dev/ are skipped: a sandbox has its own /dev. A device 0:0 would be a whiteout. */
static int check_device(const struct layername *name, struct archive_entry *entry, struct err *e)
{
	if (archive_entry_filetype(entry) == AE_IFCHR && archive_entry_rdevmajor(entry) == 0 &&
	    archive_entry_rdevminor(entry) == 0)
		return err_set(e, ERR_INVALID, "it is the device 0:0");
	if (strncmp(name->path, "dev/", 4) != 0)
		return err_set(e, ERR_INVALID, "it is a device outside of dev/");
	return 0;
}

static bool is_device(struct archive_entry *entry)
{
	unsigned type = archive_entry_filetype(entry);

	return !archive_entry_hardlink(entry) && (type == AE_IFCHR || type == AE_IFBLK);
}

static int make_entry(struct layerentry_target *t, const struct layername *name,
		      const struct spot *at, struct archive_entry *entry, struct err *e)
{
	const char *target = archive_entry_hardlink(entry);
	struct attributes a;

	if (target)
		return make_hard_link(t, name, at, target, e);
	if (read_attributes(entry, &a, e) < 0)
		return -1;
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return make_file(t, at, &a, e);
	case AE_IFDIR:
		return make_directory(t, at, &a, e);
	case AE_IFLNK:
		return make_symlink(t, at, &a, e);
	case AE_IFIFO:
		return make_fifo(t, at, &a, e);
	default:
		return err_set(e, ERR_INVALID, "unknown file type");
	}
}

static int make_named(struct layerentry_target *t, const struct layername *name,
		      struct archive_entry *entry, struct err *e)
{
	struct spot at = { .name = name->last };

	if (name->kind == LAYERNAME_IGNORED)
		return 0;
	if (name->kind == LAYERNAME_ROOT)
		return set_root(t, entry, e);
	if (name->kind == LAYERNAME_ENTRY && is_device(entry))
		return check_device(name, entry, e);
	if (layerdirs_enter(t->dirs, name->path, name->parent_len, &at.place, e) < 0)
		return -1;
	if (name->kind == LAYERNAME_OPAQUE)
		return hide_lower(t, &at.place, e);
	if (name->kind == LAYERNAME_WHITEOUT)
		return make_whiteout(t, &at, e);
	return make_entry(t, name, &at, entry, e);
}

int layerentry_make(struct layerentry_target *t, struct archive_entry *entry, struct err *e)
{
	const char *text = archive_entry_pathname(entry);
	char quoted[LAYERNAME_QUOTED_MAX_BYTES];
	struct layername name;

	if (!text)
		text = "";
	if (layername_parse(text, &name, e) < 0 || make_named(t, &name, entry, e) < 0)
		return err_wrap(e, "'%s'", layername_quote(text, quoted));
	return 0;
}
