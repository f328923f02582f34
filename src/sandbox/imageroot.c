/*
 * imageroot - a root that is an overlay; see imageroot.h.
 *
 * Theory of operation. The staging tmpfs holds the mount points: one for each host directory with
 * layers or the disk, "root" for the overlay, "dev", and, for a sandbox without a disk, "upper" and
 * "work". Each layer gets a link with a short name there ("0" is the highest), because the names of
 * all layers must fit in the single page of options that mount(2) takes; the newer mount calls
 * allow only 255 bytes. The staging area is the working directory during the mount. The mounted
 * overlay needs neither afterwards, and the pivot unmounts both.
 *
 * A root caller's sandbox has none of the ids that own the directories on disk, so the caller
 * passes detached copies of them with mapped owners. For other callers the ids on disk are already
 * those of the map.
 *
 * "userxattr": in a user namespace overlay may not use trusted.* attributes, so image/layer (below)
 * and the kernel (above) mark opaque directories with user.overlay.opaque. "index=off": a sandbox
 * that is restarted at once may find the unused mount of its last run still being unmounted.
 *
 * Hostile input: everything in the layers and on the disk, because sandboxes wrote it.
 */
#include "sandbox/imageroot.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "policy/policy.h"
#include "sandbox/hostetc.h"
#include "sandbox/hostroot.h"
#include "host/mount.h"
#include "sandbox/rootfs.h"
#include "sandbox/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPTIONS_MAX_BYTES 4096 /* the kernel takes one page */
#define LINK_MAX_BYTES 96
#define BASE_DIR "base"
#define ETC_FILE_MAX_BYTES 65536u

static const struct {
	const char *name;
	mode_t mode;
} staging_dirs[] = {
	{ "root", 0700 },
	{ "dev", 0755 },
	{ "dev/shm", 01777 },
};

/* Mount point of each host directory in the staging area. */
static const char *const place_of[ROOTSPEC_SOURCE_COUNT] = {
	[ROOTSPEC_LAYERS] = "layers",
	[ROOTSPEC_CHECKPOINTS] = "checkpoints",
	[ROOTSPEC_DISK] = "disk",
};

bool imageroot_has_trees(const struct rootspec_image *i)
{
	for (unsigned n = 0; n < ROOTSPEC_SOURCE_COUNT; n++)
		if (i->dirs[n].tree_fd >= 0)
			return true;
	return false;
}

static int make_staging(int staging_fd, struct err *e)
{
	(void)umask(0); /* the command sets its own umask before it starts */
	for (size_t i = 0; i < COUNT_OF(staging_dirs); i++)
		if (mkdirat(staging_fd, staging_dirs[i].name, staging_dirs[i].mode) < 0)
			return err_sys(e, errno, "prepare the root");
	return 0;
}

/* Opens the path in this mount namespace and compares it with the directory checked outside. */
static int open_source(const struct rootspec_dir *dir, int *ret_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	struct stat st;

	if (mount_open_tree(AT_FDCWD, dir->path, 0, &tree_fd, e) < 0)
		return -1;
	if (fstat(tree_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", dir->path);
	if (st.st_dev != dir->device || st.st_ino != dir->inode)
		return err_set(e, ERR_BUSY, "'%s' was replaced while the sandbox started",
			       dir->path);
	*ret_fd = take_fd(&tree_fd);
	return 0;
}

static int attach_source(int staging_fd, const struct rootspec_dir *dir, const char *place,
			 struct err *e)
{
	cleanup_fd int own_fd = -1;
	int tree_fd = dir->tree_fd;

	if (tree_fd < 0) {
		if (open_source(dir, &own_fd, e) < 0)
			return -1;
		tree_fd = own_fd;
	}
	if (mkdirat(staging_fd, place, 0700) < 0)
		return err_sys(e, errno, "prepare the root");
	return mount_attach_own(tree_fd, staging_fd, place, e);
}

static int attach_sources(int staging_fd, const struct rootspec_image *image, struct err *e)
{
	for (unsigned i = 0; i < ROOTSPEC_SOURCE_COUNT; i++)
		if (image->dirs[i].path &&
		    attach_source(staging_fd, &image->dirs[i], place_of[i], e) < 0)
			return -1;
	return 0;
}

/* ---- the layers below ---- */

/* The overlay's mount options, built up layer by layer. */
struct options {
	char text[OPTIONS_MAX_BYTES];
	size_t len;
	unsigned layer_count;
};

static int add_layer(struct options *o, int staging_fd, const char *target, struct err *e)
{
	char name[16];

	if (o->layer_count == ROOTSPEC_LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "the root has more than %u layers",
			       ROOTSPEC_LAYERS_MAX);
	(void)snprintf(name, sizeof(name), "%u", o->layer_count);
	if (symlinkat(target, staging_fd, name) < 0)
		return err_sys(e, errno, "name a layer");
	o->len += (size_t)snprintf(o->text + o->len, sizeof(o->text) - o->len, "%s%s",
				   o->layer_count ? ":" : "index=off,userxattr,lowerdir=", name);
	o->layer_count++;
	return 0;
}

/* `names` is a ':'-separated list of layers in the directory mounted at `place`. */
static int add_layers(struct options *o, int staging_fd, const char *place, const char *names,
		      struct err *e)
{
	char target[LINK_MAX_BYTES];

	for (; names && *names; names += *names == ':') {
		size_t len = strcspn(names, ":");

		if ((size_t)snprintf(target, sizeof(target), "%s/%.*s", place, (int)len, names) >=
		    sizeof(target))
			return err_set(e, ERR_CORRUPT, "the name of a layer is too long");
		if (add_layer(o, staging_fd, target, e) < 0)
			return -1;
		names += len;
	}
	return 0;
}

/* Adds the host image's lowest layer, which is created at each start. */
static int add_base(struct options *o, int staging_fd, const struct rootfs_options *root,
		    struct err *e)
{
	cleanup_fd int base_fd = -1;

	if (mkdirat(staging_fd, BASE_DIR, 0755) < 0)
		return err_sys(e, errno, "prepare the root");
	base_fd = openat(staging_fd, BASE_DIR, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (base_fd < 0)
		return err_sys(e, errno, "prepare the root");
	if (hostroot_make(base_fd, root, e) < 0)
		return -1;
	return add_layer(o, staging_fd, BASE_DIR, e);
}

/* ---- the directory on top ---- */

/* The overlay's root directory is the upper one, so that gets the highest layer's attributes. */
static int copy_root_attributes(int staging_fd, const char *upper, struct err *e)
{
	struct stat st;

	if (fstatat(staging_fd, "0", &st, 0) < 0)
		return err_sys(e, errno, "look at the image's root");
	/* if the sandbox has no id for this owner, root stays the owner */
	if ((st.st_uid != 0 || st.st_gid != 0) &&
	    fchownat(staging_fd, upper, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EINVAL && errno != EPERM)
		return err_sys(e, errno, "give the root to its owner");
	if ((st.st_mode & 07777) != 0755 && fchmodat(staging_fd, upper, st.st_mode & 07777, 0) < 0)
		return err_sys(e, errno, "set the root's mode");
	return 0;
}

/* On a disk both directories may exist from an earlier start. */
static int make_top(int staging_fd, const char *upper, const char *work, struct err *e)
{
	if (mkdirat(staging_fd, work, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "prepare what is written on top");
	if (mkdirat(staging_fd, upper, 0755) < 0)
		return errno == EEXIST ? 0 : err_sys(e, errno, "prepare what is written on top");
	return copy_root_attributes(staging_fd, upper, e);
}

static int explain_overlay(int error, struct err *e)
{
	if (error == EINVAL || error == ENODEV || error == EPERM)
		return err_set(e, ERR_UNSUPPORTED,
			       "this kernel does not mount overlay file systems for ordinary users "
			       "on the file system of the image store (%s; 'agentkernel doctor' "
			       "shows more, --image host does without)",
			       strerror(error));
	return err_sys(e, error, "mount the image");
}

/* The working directory is the staging area. */
static int mount_overlay(struct options *o, const char *upper, const char *work, struct err *e)
{
	int n = snprintf(o->text + o->len, sizeof(o->text) - o->len, ",upperdir=%s,workdir=%s",
			 upper, work);

	if (n < 0 || o->len + (size_t)n >= sizeof(o->text))
		return err_set(e, ERR_LIMIT, "the root has more layers than a mount can name");
	if (mount("overlay", "root", "overlay", MS_NOSUID | MS_NODEV, o->text) < 0)
		return explain_overlay(errno, e);
	return 0;
}

int imageroot_mount(int staging_fd, const struct rootfs_options *root, int *ret_root_fd,
		    struct err *e)
{
	const struct rootspec_image *image = root->image;
	bool is_kept = image->dirs[ROOTSPEC_DISK].path;
	const char *upper = is_kept ? "disk/upper" : "upper";
	const char *work = is_kept ? "disk/work" : "work";
	struct options o = { .len = 0 };
	int root_fd;

	if (make_staging(staging_fd, e) < 0 || attach_sources(staging_fd, image, e) < 0)
		return -1;
	if (add_layers(&o, staging_fd, place_of[ROOTSPEC_CHECKPOINTS], image->checkpoints, e) < 0 ||
	    add_layers(&o, staging_fd, place_of[ROOTSPEC_LAYERS], image->layers, e) < 0)
		return -1;
	if (!image->layers && add_base(&o, staging_fd, root, e) < 0)
		return -1;
	if (make_top(staging_fd, upper, work, e) < 0)
		return -1;
	if (fchdir(staging_fd) < 0)
		return err_sys(e, errno, "enter the staging area");
	if (mount_overlay(&o, upper, work, e) < 0)
		return -1;
	root_fd = openat(staging_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return err_sys(e, errno, "open the image's root");
	*ret_root_fd = root_fd;
	return 0;
}

int imageroot_try(struct err *e)
{
	cleanup_fd int tmpfs_fd = -1, place_fd = -1, dir_fd = -1;
	struct options o = { .len = 0 };

	if (mount_new_tmpfs(1u << 20, "755", &tmpfs_fd, e) < 0)
		return -1;
	place_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place_fd < 0)
		return err_sys(e, errno, "open /");
	if (mount_attach(tmpfs_fd, place_fd, "/", e) < 0 || make_staging(tmpfs_fd, e) < 0 ||
	    add_layer(&o, tmpfs_fd, "dev", e) < 0 || make_top(tmpfs_fd, "upper", "work", e) < 0)
		return -1;
	dir_fd = openat(tmpfs_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || fchdir(dir_fd) < 0)
		return err_sys(e, errno, "enter a directory");
	if (mount_overlay(&o, "upper", "work", e) < 0)
		return -1;
	if (fsetxattr(dir_fd, "user.overlay.try", "y", 1, 0) < 0)
		return err_sys(e, errno, "set an attribute");
	return 0;
}

/* Makes sure that root_fd/name is a directory, replacing whatever the image has there. */
static int make_real_dir(int root_fd, const char *name, mode_t mode, struct err *e)
{
	struct stat st;

	if (fstatat(root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		if (unlinkat(root_fd, name, 0) < 0)
			return err_sys(e, errno, "replace the image's /%s", name);
	}
	if (mkdirat(root_fd, name, mode) < 0)
		return err_sys(e, errno, "create /%s", name);
	return 0;
}

/* Is `name` a plain file with exactly this text? Then it need not be written. */
static bool has_text(int etc_fd, const char *name, const char *text)
{
	cleanup_fd int fd =
		openat(etc_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_free char *found = NULL;
	size_t len = 0;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       file_read_fd(fd, ETC_FILE_MAX_BYTES, &found, &len) == 0 && len == strlen(text) &&
	       memcmp(found, text, len) == 0;
}

static int write_etc(int etc_fd, const char *name, const char *text, struct err *e)
{
	int r = file_create_at(etc_fd, name, 0644, text);

	if (r == -EEXIST) { /* the image's file or link; the target of a link must not be written */
		if (has_text(etc_fd, name, text))
			return 0;
		/* of any type: a sandbox must not be able to block its own start */
		if (sweep_tree(etc_fd, name, e) < 0)
			return err_wrap(e, "replace the image's /etc/%s", name);
		r = file_create_at(etc_fd, name, 0644, text);
	}
	if (r < 0)
		return err_sys(e, -r, "write /etc/%s", name);
	return 0;
}

static int write_names(int root_fd, const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int etc_fd = -1;
	struct hostetc_texts texts;

	if (target_make_dir(root_fd, "/etc", 0755, e) < 0)
		return -1;
	etc_fd = mount_open_in_root(root_fd, "/etc", O_PATH | O_DIRECTORY);
	if (etc_fd < 0)
		return err_sys(e, -etc_fd, "open the image's /etc");
	hostetc_format(o, &texts);
	if (write_etc(etc_fd, "hosts", texts.hosts, e) < 0 ||
	    write_etc(etc_fd, "hostname", texts.host_name, e) < 0)
		return -1;
	if (o->machine_id && write_etc(etc_fd, "machine-id", texts.machine_id, e) < 0)
		return -1;
	return o->resolv_conf ? write_etc(etc_fd, "resolv.conf", o->resolv_conf, e) : 0;
}

/* Directories that programs expect. A dangling link of the image in their place is kept. */
static int make_usual_dirs(int root_fd, struct err *e)
{
	static const struct {
		const char *path;
		mode_t mode;
	} dirs[] = { { "/tmp", 01777 }, { "/var/tmp", 01777 }, { "/run", 0755 } };
	struct err why = { 0 };

	for (size_t i = 0; i < COUNT_OF(dirs); i++) {
		if (target_make_dir(root_fd, dirs[i].path, dirs[i].mode, &why) < 0 &&
		    why.sys != EEXIST) {
			*e = why;
			return -1;
		}
	}
	return 0;
}

int imageroot_fill(int root_fd, const struct rootfs_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	if (make_real_dir(root_fd, "proc", 0555, e) < 0 ||
	    make_real_dir(root_fd, "sys", 0555, e) < 0 ||
	    make_real_dir(root_fd, "dev", 0755, e) < 0)
		return -1;
	if (make_usual_dirs(root_fd, e) < 0)
		return -1;
	if (write_names(root_fd, o, e) < 0)
		return -1;
	if (!p->home && target_make_user_dir(root_fd, p->home_dir, p->uid, p->gid, e) < 0)
		return -1;
	return p->workspace ? 0 : target_make_user_dir(root_fd, p->workdir, p->uid, p->gid, e);
}

int imageroot_cover_dev(int staging_fd, int root_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(staging_fd, "dev", MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	return mount_attach_own(tree_fd, root_fd, "dev", e);
}
