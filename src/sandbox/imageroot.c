/*
 * imageroot - the base of the root for an OCI image; see imageroot.h.
 *
 * Theory of operation. The staging tmpfs holds "upper" and "work" of the overlay, "dev", and two
 * places to mount: "layers", the directory of the store that has them all, and "root". The overlay
 * is mounted with layers as the working directory, because the names of all layers must fit in the
 * one page of options that mount(2) takes; the newer calls allow 255 bytes there. Once the overlay
 * stands it needs neither the working directory nor the mount, and the pivot lets go of both.
 *
 * A root caller's sandbox owns none of the ids that the layers are written with: the directory
 * comes as a detached copy whose owners are mapped, made outside. For anyone else the ids on disk
 * are those of the map already.
 *
 * "userxattr": in a user namespace overlay may not use trusted.* attributes, so opaque directories
 * are marked with user.overlay.opaque, by image/layer below and by the kernel above.
 */
#include "sandbox/imageroot.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "policy/policy.h"
#include "sandbox/hostetc.h"
#include "sandbox/mount.h"
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

static const struct {
	const char *name;
	mode_t mode;
} staging_dirs[] = {
	{ "upper", 0755 }, { "work", 0700 }, { "layers", 0700 },
	{ "root", 0700 },  { "dev", 0755 },  { "dev/shm", 01777 },
};

static int make_staging(int staging_fd, struct err *e)
{
	(void)umask(0); /* the command gets its own before it starts */
	for (size_t i = 0; i < COUNT_OF(staging_dirs); i++)
		if (mkdirat(staging_fd, staging_dirs[i].name, staging_dirs[i].mode) < 0)
			return err_sys(e, errno, "prepare the image's root");
	return 0;
}

/* By path, in this mount namespace; it must be what was checked outside. */
static int open_layers(const struct imageroot *image, int *ret_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	struct stat st;

	if (mount_open_tree(AT_FDCWD, image->layers_path, 0, &tree_fd, e) < 0)
		return -1;
	if (fstat(tree_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", image->layers_path);
	if (st.st_dev != image->device || st.st_ino != image->inode)
		return err_set(e, ERR_BUSY, "'%s' was replaced while the sandbox started",
			       image->layers_path);
	*ret_fd = take_fd(&tree_fd);
	return 0;
}

static int attach_layers(int staging_fd, const struct imageroot *image, struct err *e)
{
	cleanup_fd int own_fd = -1;
	int tree_fd = image->tree_fd;

	if (tree_fd < 0) {
		if (open_layers(image, &own_fd, e) < 0)
			return -1;
		tree_fd = own_fd;
	}
	return mount_attach_own(tree_fd, staging_fd, "layers", e);
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

static int mount_overlay(const struct imageroot *image, struct err *e)
{
	char options[OPTIONS_MAX_BYTES];
	int n = snprintf(options, sizeof(options),
			 "userxattr,lowerdir=%s,upperdir=../upper,workdir=../work", image->lower);

	if (n < 0 || (size_t)n >= sizeof(options))
		return err_set(e, ERR_LIMIT, "the image has more layers than a mount can name");
	if (mount("overlay", "../root", "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return explain_overlay(errno, e);
	return 0;
}

/* The root of an overlay is that of its upper directory: it gets the image's mode and owner. */
static int copy_root_attributes(int staging_fd, int layers_fd, const struct imageroot *image,
				struct err *e)
{
	char top[NAME_MAX + 1];
	struct stat st;

	(void)snprintf(top, sizeof(top), "%.*s", (int)strcspn(image->lower, ":"), image->lower);
	if (fstatat(layers_fd, top, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at the image's root");
	/* an owner that this sandbox has no id for stays root */
	if ((st.st_uid != 0 || st.st_gid != 0) &&
	    fchownat(staging_fd, "upper", st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EINVAL && errno != EPERM)
		return err_sys(e, errno, "give the root to its owner");
	if ((st.st_mode & 07777) != 0755 &&
	    fchmodat(staging_fd, "upper", st.st_mode & 07777, 0) < 0)
		return err_sys(e, errno, "set the root's mode");
	return 0;
}

int imageroot_mount(int staging_fd, const struct imageroot *image, int *ret_root_fd, struct err *e)
{
	cleanup_fd int layers_fd = -1;
	int root_fd;

	if (make_staging(staging_fd, e) < 0 || attach_layers(staging_fd, image, e) < 0)
		return -1;
	layers_fd = openat(staging_fd, "layers", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (layers_fd < 0 || fchdir(layers_fd) < 0)
		return err_sys(e, errno, "enter the image's layers");
	if (copy_root_attributes(staging_fd, layers_fd, image, e) < 0 ||
	    mount_overlay(image, e) < 0)
		return -1;
	root_fd = openat(staging_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return err_sys(e, errno, "open the image's root");
	*ret_root_fd = root_fd;
	return 0;
}

int imageroot_try(struct err *e)
{
	const struct imageroot nothing = { .lower = "../dev" };
	cleanup_fd int tmpfs_fd = -1, place_fd = -1, dir_fd = -1;

	if (mount_new_tmpfs(1u << 20, "755", &tmpfs_fd, e) < 0)
		return -1;
	place_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place_fd < 0)
		return err_sys(e, errno, "open /");
	if (mount_attach(tmpfs_fd, place_fd, "/", e) < 0 || make_staging(tmpfs_fd, e) < 0)
		return -1;
	dir_fd = openat(tmpfs_fd, "layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || fchdir(dir_fd) < 0)
		return err_sys(e, errno, "enter a directory");
	if (mount_overlay(&nothing, e) < 0)
		return -1;
	if (fsetxattr(dir_fd, "user.overlay.try", "y", 1, 0) < 0)
		return err_sys(e, errno, "set an attribute");
	return 0;
}

/* A directory at the top, whatever the image has there. */
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

static int write_etc(int etc_fd, const char *name, const char *text, struct err *e)
{
	int r = file_create_at(etc_fd, name, 0644, text);

	if (r == -EEXIST) { /* a file or a link of the image's, whose target is not to be written */
		if (unlinkat(etc_fd, name, 0) < 0)
			return err_sys(e, errno, "replace the image's /etc/%s", name);
		r = file_create_at(etc_fd, name, 0644, text);
	}
	if (r < 0)
		return err_sys(e, -r, "write /etc/%s", name);
	return 0;
}

static int write_names(int root_fd, const char *resolv_conf, struct err *e)
{
	cleanup_fd int etc_fd = -1;

	if (target_make_dir(root_fd, "/etc", 0755, e) < 0)
		return -1;
	etc_fd = mount_open_in_root(root_fd, "/etc", O_PATH | O_DIRECTORY);
	if (etc_fd < 0)
		return err_sys(e, -etc_fd, "open the image's /etc");
	if (write_etc(etc_fd, "hosts", HOSTETC_HOSTS, e) < 0)
		return -1;
	if (write_etc(etc_fd, "hostname", HOSTETC_HOST_NAME "\n", e) < 0)
		return -1;
	return resolv_conf ? write_etc(etc_fd, "resolv.conf", resolv_conf, e) : 0;
}

/* The user's own: made where it is missing, and then it belongs to the user. */
static int make_user_dir(int root_fd, const char *path, const struct policy *p, struct err *e)
{
	cleanup_fd int there_fd = mount_open_in_root(root_fd, path, O_PATH);
	cleanup_fd int dir_fd = -1;

	if (there_fd >= 0)
		return 0;
	if (target_make_dir(root_fd, path, 0755, e) < 0)
		return -1;
	dir_fd = mount_open_in_root(root_fd, path, O_PATH | O_DIRECTORY);
	/* with a single id everything is the user's already, and the call changes nothing */
	if (dir_fd < 0 || fchownat(dir_fd, "", p->uid, p->gid, AT_EMPTY_PATH) < 0)
		return err_sys(e, dir_fd < 0 ? -dir_fd : errno, "give '%s' to its user", path);
	return 0;
}

/* What programs expect. An image's link that leads nowhere is in the way, and its own affair. */
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

int imageroot_fill(int root_fd, const struct policy *p, const char *resolv_conf, struct err *e)
{
	if (make_real_dir(root_fd, "proc", 0555, e) < 0 ||
	    make_real_dir(root_fd, "dev", 0755, e) < 0)
		return -1;
	if (make_usual_dirs(root_fd, e) < 0)
		return -1;
	if (write_names(root_fd, resolv_conf, e) < 0)
		return -1;
	if (!p->home && make_user_dir(root_fd, p->home_dir, p, e) < 0)
		return -1;
	return p->workspace ? 0 : make_user_dir(root_fd, p->workdir, p, e);
}

int imageroot_cover_dev(int staging_fd, int root_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(staging_fd, "dev", MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	return mount_attach_own(tree_fd, root_fd, "dev", e);
}
