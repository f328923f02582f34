/*
 * nameddisk - what a named sandbox has written; see nameddisk.h.
 *
 * Theory of operation. The record has the number of the current directory disk.N. Replacing it
 * makes disk.N+1 and saves the record: a crash before leaves the old disk in use, a crash after
 * leaves one that nothing names, which the next start sweeps. A disk with a size is an image file
 * inside that directory: the supervisor has it mounted, and gives us its descriptor.
 */
#include "named/nameddisk.h"

#include "base/cleanup.h"
#include "base/frame.h"
#include "base/keyrows.h"
#include "host/disk.h"
#include "named/control.h"
#include "named/nameddir.h"
#include "tree/owner.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DISK_PREFIX "disk."
#define DISK_LOCK_WAIT_MS 5000u

void nameddisk_format(uint64_t number, char out[NAMEDDISK_NAME_MAX_BYTES])
{
	(void)snprintf(out, NAMEDDISK_NAME_MAX_BYTES, DISK_PREFIX "%" PRIu64, number);
}

/* The lock lets us change the disk's number; read the other fields again. */
static int save_replaced(struct named *n, char *const *layers, struct err *e)
{
	struct named changed;
	int r;

	if (named_begin_change(n, e) < 0)
		return -1;
	changed = *n;
	changed.disk_number++;
	changed.layers = (char **)(uintptr_t)layers;
	r = named_save(&changed, e);
	named_end_change(n);
	if (r < 0)
		return -1;
	n->disk_number = changed.disk_number;
	keyrows_list_free(&n->layers);
	for (; layers && *layers; layers++)
		(void)keyrows_list_add(&n->layers, *layers);
	return 0;
}

/* Moves the disk to the trash; if there is no space even for that, removes it here. */
static void discard(const struct named *n, const char *name, char ret_old[NAMED_ID_BYTES + 1])
{
	cleanup_fd int trash_fd = -1;
	struct err ignored;

	named_random_id(ret_old);
	if (nameddir_open_trash(n, &trash_fd, &ignored) == 0 &&
	    renameat(n->dir_fd, name, trash_fd, ret_old) == 0)
		return;
	ret_old[0] = '\0';
	/* leftovers are removed before the next start */
	(void)!owner_sweep(n->dir_fd, name, &ignored);
}

void nameddisk_sweep_old(const struct named *n, const char *old)
{
	cleanup_fd int trash_fd = -1;
	struct err ignored;

	if (old[0] && nameddir_open_trash(n, &trash_fd, &ignored) == 0)
		(void)!owner_sweep(trash_fd, old, &ignored);
}

int nameddisk_replace(struct named *n, char *const *layers, char ret_old[NAMED_ID_BYTES + 1],
		      struct err *e)
{
	char old_name[NAMEDDISK_NAME_MAX_BYTES], new_name[NAMEDDISK_NAME_MAX_BYTES];

	assert(n->has_lock);
	nameddisk_sweep(n);
	nameddisk_format(n->disk_number, old_name);
	nameddisk_format(n->disk_number + 1, new_name);
	if (mkdirat(n->dir_fd, new_name, 0700) < 0)
		return err_sys(e, errno, "create '%s'", new_name);
	if (save_replaced(n, layers, e) < 0) {
		(void)unlinkat(n->dir_fd, new_name, AT_REMOVEDIR);
		return -1;
	}
	discard(n, old_name, ret_old);
	return 0;
}

void nameddisk_sweep(const struct named *n)
{
	char current[NAMEDDISK_NAME_MAX_BYTES];
	int fd = openat(n->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct err ignored;

	nameddisk_format(n->disk_number, current);
	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, DISK_PREFIX, sizeof(DISK_PREFIX) - 1) == 0 &&
		    strcmp(entry->d_name, current) != 0)
			(void)!owner_sweep(n->dir_fd, entry->d_name, &ignored);
	if (dir)
		(void)closedir(dir);
}

/*
 * Two loop devices on one image file would corrupt it: only the supervisor or the lock's owner
 * mounts.
 */
static int mount_own_disk(struct named *n, int dir_fd, int *ret_fd, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int control_fd = -1, tree_fd = -1;

	if (!n->has_lock && control_connect(n->dir_fd, n->name, &control_fd, e) == 0) {
		if (control_ask(control_fd, CONTROL_DISK, NULL, 0, &answer, e) < 0)
			return -1;
		if (answer.fd_count != 1)
			return err_set(e, ERR_REMOTE, "the supervisor gave no disk");
		*ret_fd = take_fd(&answer.fds[0]);
		return 0;
	}
	if (!n->has_lock && named_lock_within(n, DISK_LOCK_WAIT_MS, e) < 0)
		return -1;
	return disk_mount_file(dir_fd, &tree_fd, ret_fd, e);
}

static int open_disk(struct named *n, int *ret_fd, struct err *e)
{
	char name[NAMEDDISK_NAME_MAX_BYTES];
	cleanup_fd int fd = -1;

	nameddisk_format(n->disk_number, name);
	fd = openat(n->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_sys(e, errno, "open the disk of sandbox '%s'", n->name);
	if (disk_has_file(fd))
		return mount_own_disk(n, fd, ret_fd, e);
	*ret_fd = take_fd(&fd);
	return 0;
}

int nameddisk_open_upper(struct named *n, int *ret_fd, struct err *e)
{
	cleanup_fd int disk_fd = -1;
	int fd;

	if (open_disk(n, &disk_fd, e) < 0)
		return -1;
	fd = openat(disk_fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno != ENOENT)
		return err_sys(e, errno, "open what sandbox '%s' has written", n->name);
	*ret_fd = fd;
	return 0;
}
