/* hostetc - the /etc of the host image; see hostetc.h. */
#include "sandbox/hostetc.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/wall.h"
#include "policy/credential.h"
#include "policy/policy.h"
#include "sandbox/hostaccounts.h"
#include "host/etchide.h"
#include "host/mount.h"
#include "sandbox/rootfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Places the whiteout layer at parent_fd/name: the one cached by state/etclayer, or a new one. */
static int place_layer(int parent_fd, const char *name, const struct rootfs_options *o,
		       struct err *e)
{
	cleanup_fd int layer_fd = -1, own_fd = -1;
	int tree_fd = o->etc_tree_fd;

	if (mkdirat(parent_fd, name, 0755) < 0)
		return err_sys(e, errno, "create a directory for /etc");
	if (tree_fd < 0 && o->etc_layer_path &&
	    mount_open_tree(AT_FDCWD, o->etc_layer_path, 0, &own_fd, e) == 0)
		tree_fd = own_fd;
	if (tree_fd >= 0)
		return mount_attach_own(tree_fd, parent_fd, name, e);
	layer_fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (layer_fd < 0)
		return err_sys(e, errno, "open a directory for /etc");
	return etchide_make_layer(layer_fd, o->etc_private, e);
}

/* ---- the sandbox's own files ---- */

/* mtab is a link on all hosts; if /etc is an overlay, the host's other links show through. */
static int copy_link(int host_etc_fd, int etc_fd, const char *name, struct err *e)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(host_etc_fd, name, text, sizeof(text) - 1);

	if (n < 0)
		return 0;
	text[n] = '\0';
	if (symlinkat(text, etc_fd, name) < 0)
		return err_sys(e, errno, "create /etc/%s", name);
	return 0;
}

static int write_file(int etc_fd, const char *name, const char *text, struct err *e)
{
	int r = file_create_at(etc_fd, name, 0644, text);

	if (r < 0)
		return err_sys(e, -r, "write /etc/%s", name);
	return 0;
}

static int write_accounts(int host_etc_fd, int etc_fd, const struct policy *p, struct err *e)
{
	static char bytes[HOSTACCOUNTS_TEXT_MAX_BYTES + 1];
	struct buf text;

	buf_init_fixed(&text, bytes, sizeof(bytes));
	hostaccounts_format_passwd(host_etc_fd, p, &text);
	if (write_file(etc_fd, "passwd", buf_text(&text), e) < 0)
		return -1;
	buf_init_fixed(&text, bytes, sizeof(bytes));
	hostaccounts_format_group(host_etc_fd, p, &text);
	return write_file(etc_fd, "group", buf_text(&text), e);
}

void hostetc_format(const struct rootfs_options *o, struct hostetc_texts *ret)
{
	const char *name = o->host_name ? o->host_name : HOSTETC_HOST_NAME;

	(void)snprintf(ret->hosts, sizeof(ret->hosts),
		       "127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n", name);
	(void)snprintf(ret->host_name, sizeof(ret->host_name), "%s\n", name);
	(void)snprintf(ret->machine_id, sizeof(ret->machine_id), "%s\n",
		       o->machine_id ? o->machine_id : "");
}

static int write_names(int etc_fd, const struct rootfs_options *o, struct err *e)
{
	struct hostetc_texts texts;

	hostetc_format(o, &texts);
	if (o->resolv_conf && write_file(etc_fd, "resolv.conf", o->resolv_conf, e) < 0)
		return -1;
	if (write_file(etc_fd, "hosts", texts.hosts, e) < 0)
		return -1;
	if (o->host_name && write_file(etc_fd, "hostname", texts.host_name, e) < 0)
		return -1;
	if (o->machine_id && write_file(etc_fd, "machine-id", texts.machine_id, e) < 0)
		return -1;
	return write_file(etc_fd, "nsswitch.conf",
			  "passwd: files\ngroup: files\nhosts: files dns\n", e);
}

static int write_files(int host_etc_fd, int etc_fd, const struct rootfs_options *o, struct err *e)
{
	if (write_accounts(host_etc_fd, etc_fd, o->policy, e) < 0 || write_names(etc_fd, o, e) < 0)
		return -1;
	return copy_link(host_etc_fd, etc_fd, "mtab", e);
}

/* Creates the directory parent_fd/name and opens it. */
static int make_dir(int parent_fd, const char *name, int *ret_fd, struct err *e)
{
	int fd;

	if (mkdirat(parent_fd, name, 0755) < 0)
		return err_sys(e, errno, "create a directory for /etc");
	fd = openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "open a directory for /etc");
	*ret_fd = fd;
	return 0;
}

/*
 * Places the host's /etc at parent_fd/name as a lower layer. If something is mounted inside /etc
 * (as in a container), the kernel does not accept it as a layer in a user namespace, because that
 * would reveal the files below the mounts; so a root caller passes a tree opened without them.
 */
static int place_host_etc(int parent_fd, const char *name, const struct rootfs_options *o,
			  struct err *e)
{
	if (o->etc_host_tree_fd < 0) {
		if (symlinkat("/etc", parent_fd, name) < 0)
			return err_sys(e, errno, "create a link to /etc");
		return 0;
	}
	if (mkdirat(parent_fd, name, 0755) < 0)
		return err_sys(e, errno, "create a directory for /etc");
	return mount_attach_own(o->etc_host_tree_fd, parent_fd, name, e);
}

/* ---- a fresh sandbox ---- */

#define UPPER_DIR "sys/etc-upper"
#define WORK_DIR "sys/etc-work"
#define LAYER_DIR "sys/etc-layer"
#define HOST_DIR "sys/etc-host"

static int mount_overlay(int root_fd, const struct policy *p, struct err *e)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | (p->is_read_only ? MS_RDONLY : 0);

	if (fchdir(root_fd) < 0)
		return err_sys(e, errno, "enter the new root");
	if (mount("overlay", "etc", "overlay", flags,
		  "index=off,userxattr,lowerdir=" LAYER_DIR ":" HOST_DIR ",upperdir=" UPPER_DIR
		  ",workdir=" WORK_DIR) < 0)
		return err_sys(e, errno, "mount /etc");
	return 0;
}

/* Without overlay support in user namespaces: only entries that programs need to start. */
static const struct {
	const char *name;
	mode_t type;
} bound[] = {
	{ "ld.so.cache", S_IFREG },     { "alternatives", S_IFDIR }, { "ssl", S_IFDIR },
	{ "ca-certificates", S_IFDIR }, { "services", S_IFREG },     { "protocols", S_IFREG },
	{ "localtime", S_IFREG },       { "os-release", S_IFREG },
};

static int bind_entry(int host_etc_fd, int etc_fd, size_t row, struct err *e)
{
	const char *name = bound[row].name;
	cleanup_fd int tree_fd = -1;
	int r;

	if (mount_open_tree(host_etc_fd, name, 0, &tree_fd, e) < 0)
		return e->code == ERR_NOT_FOUND || e->sys == EACCES ? 0 : -1;
	r = bound[row].type == S_IFDIR ? mkdirat(etc_fd, name, 0755)
				       : mknodat(etc_fd, name, S_IFREG | 0644, 0);
	if (r < 0)
		return err_sys(e, errno, "create /etc/%s", name);
	if (mount_restrict(tree_fd, MOUNT_READ_ONLY, e) < 0)
		return -1;
	return mount_attach_own(tree_fd, etc_fd, name, e);
}

/* Does the error mean that the kernel cannot mount this overlay here? */
static bool is_without_overlay(const struct err *e)
{
	return e->sys == EPERM || e->sys == EINVAL || e->sys == ENODEV;
}

static int bind_some(int host_etc_fd, int dir_fd, struct err *e)
{
	for (size_t row = 0; row < COUNT_OF(bound); row++)
		if (bind_entry(host_etc_fd, dir_fd, row, e) < 0)
			return -1;
	return 0;
}

static int fill_without_overlay(int host_etc_fd, int root_fd, const struct rootfs_options *o,
				struct err *e)
{
	cleanup_fd int etc_fd =
		openat(root_fd, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (etc_fd < 0)
		return err_sys(e, errno, "open /etc");
	if (write_files(host_etc_fd, etc_fd, o, e) < 0)
		return -1;
	return bind_some(host_etc_fd, etc_fd, e);
}

int hostetc_mount(int root_fd, const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int host_etc_fd = -1, upper_fd = -1;

	if (etchide_open(&host_etc_fd, e) < 0 || make_dir(root_fd, UPPER_DIR, &upper_fd, e) < 0)
		return -1;
	if (mkdirat(root_fd, WORK_DIR, 0700) < 0)
		return err_sys(e, errno, "create a directory for /etc");
	if (write_files(host_etc_fd, upper_fd, o, e) < 0 ||
	    place_layer(root_fd, LAYER_DIR, o, e) < 0 ||
	    place_host_etc(root_fd, HOST_DIR, o, e) < 0)
		return -1;
	if (mount_overlay(root_fd, o->policy, e) == 0)
		return 0;
	if (!is_without_overlay(e))
		return -1;
	return fill_without_overlay(host_etc_fd, root_fd, o, e);
}

/* ---- a named sandbox ---- */

static bool is_hidden(const char *name, const struct rootfs_options *o)
{
	for (size_t i = 0; i < credential_etc_count; i++)
		if (strcmp(name, credential_etc[i]) == 0)
			return true;
	for (char *const *hidden = o->etc_private; hidden && *hidden; hidden++)
		if (strcmp(name, *hidden) == 0)
			return true;
	return etchide_is_own(name);
}

static int link_entry(int host_etc_fd, int etc_fd, const struct dirent *entry, struct err *e)
{
	char text[sizeof("../" HOSTETC_SIDE "/") + NAME_MAX];

	if (entry->d_type == DT_LNK)
		return copy_link(host_etc_fd, etc_fd, entry->d_name, e);
	(void)snprintf(text, sizeof(text), "../" HOSTETC_SIDE "/%s", entry->d_name);
	if (symlinkat(text, etc_fd, entry->d_name) < 0)
		return err_sys(e, errno, "create /etc/%s", entry->d_name);
	return 0;
}

static int link_entries(int host_etc_fd, int etc_fd, const struct rootfs_options *o, struct err *e)
{
	int dir_fd = openat(host_etc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	const struct dirent *entry;
	unsigned count = 0;
	int r = 0;

	if (!dir) {
		(void)err_sys(e, errno, "read /etc");
		cleanup_closep(&dir_fd);
		return -1;
	}
	while (r == 0 && count < HOSTETC_ENTRIES_MAX && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    is_hidden(entry->d_name, o))
			continue;
		r = link_entry(host_etc_fd, etc_fd, entry, e);
		count++;
	}
	(void)closedir(dir);
	return r;
}

int hostetc_write(int base_fd, const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int host_etc_fd = -1, etc_fd = -1;

	if (mkdirat(base_fd, HOSTETC_SIDE, 0755) < 0)
		return err_sys(e, errno, "create /" HOSTETC_SIDE);
	etc_fd = openat(base_fd, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (etc_fd < 0)
		return err_sys(e, errno, "open /etc");
	if (etchide_open(&host_etc_fd, e) < 0 || write_files(host_etc_fd, etc_fd, o, e) < 0)
		return -1;
	return link_entries(host_etc_fd, etc_fd, o, e);
}

#define SIDE_DIR "side"
#define SIDE_LAYER_DIR "etc-layer"
#define SIDE_HOST_DIR "etc-host"

static int fill_side(int staging_fd, int side_fd, struct err *e)
{
	cleanup_fd int host_etc_fd = -1;

	if (fchdir(staging_fd) < 0)
		return err_sys(e, errno, "enter the staging area");
	if (mount("overlay", SIDE_DIR, "overlay", MS_NOSUID | MS_NODEV | MS_RDONLY,
		  "index=off,userxattr,lowerdir=" SIDE_LAYER_DIR ":" SIDE_HOST_DIR) == 0)
		return 0;
	(void)err_sys(e, errno, "mount /" HOSTETC_SIDE);
	if (!is_without_overlay(e) || etchide_open(&host_etc_fd, e) < 0)
		return -1;
	return bind_some(host_etc_fd, side_fd, e);
}

int hostetc_mount_side(int root_fd, int staging_fd, const struct rootfs_options *o, struct err *e)
{
	cleanup_fd int side_fd = -1, tree_fd = -1;
	cleanup_fd int place_fd =
		mount_open_plain(root_fd, HOSTETC_SIDE, O_PATH | O_DIRECTORY | O_NOFOLLOW);

	/* the sandbox removed or replaced the directory: its links then dangle */
	if (place_fd == -ENOENT || place_fd == -ENOTDIR || place_fd == -ELOOP)
		return 0;
	if (place_fd < 0)
		return err_sys(e, -place_fd, "open /" HOSTETC_SIDE);
	if (place_layer(staging_fd, SIDE_LAYER_DIR, o, e) < 0 ||
	    place_host_etc(staging_fd, SIDE_HOST_DIR, o, e) < 0 ||
	    make_dir(staging_fd, SIDE_DIR, &side_fd, e) < 0)
		return -1;
	if (fill_side(staging_fd, side_fd, e) < 0)
		return -1;
	if (mount_open_tree(staging_fd, SIDE_DIR, MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	return mount_attach(tree_fd, place_fd, HOSTETC_SIDE, e);
}
