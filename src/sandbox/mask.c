/* mask - makes a file or directory appear empty; see mask.h. */
#include "sandbox/mask.h"

#include "base/cleanup.h"
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMPTY_FILE ".agentkernel-empty-file"
#define EMPTY_DIR ".agentkernel-empty-dir"

int mask_begin(int empty_fd, struct err *e)
{
	if (mknodat(empty_fd, EMPTY_FILE, S_IFREG | 0444, 0) < 0)
		return err_sys(e, errno, "create an empty file for masks");
	if (mkdirat(empty_fd, EMPTY_DIR, 0555) < 0)
		return err_sys(e, errno, "create an empty directory for masks");
	return 0;
}

static int open_empty(int empty_fd, const char *name, int *ret_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(empty_fd, name, 0, &tree_fd, e) < 0)
		return -1;
	if (mount_restrict(tree_fd, MOUNT_READ_ONLY | MOUNT_NO_EXEC, e) < 0)
		return -1;
	*ret_fd = take_fd(&tree_fd);
	return 0;
}

int mask_own_file(int empty_fd, int root_fd, const char *name, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (open_empty(empty_fd, EMPTY_FILE, &tree_fd, e) < 0)
		return -1;
	if (mount_attach_own(tree_fd, root_fd, name, e) < 0)
		return e->sys == ENOENT ? 0 : -1;
	return 0;
}

int mask_end(int empty_fd, struct err *e)
{
	if (unlinkat(empty_fd, EMPTY_FILE, 0) < 0 ||
	    unlinkat(empty_fd, EMPTY_DIR, AT_REMOVEDIR) < 0)
		return err_sys(e, errno, "remove the masks' empty files");
	return 0;
}

int mask_place(int empty_fd, int place_fd, const char *name, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	struct stat st, empty;
	const char *empty_name;

	if (fstat(place_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s' to mask it", name);
	empty_name = S_ISDIR(st.st_mode) ? EMPTY_DIR : EMPTY_FILE;
	if (fstatat(empty_fd, empty_name, &empty, 0) < 0)
		return err_sys(e, errno, "look at an empty file for masks");
	if (st.st_dev == empty.st_dev && st.st_ino == empty.st_ino)
		return 0; /* masked already under another name; a mount point cannot be removed */
	if (open_empty(empty_fd, empty_name, &tree_fd, e) < 0)
		return -1;
	return mount_attach(tree_fd, place_fd, name, e);
}
