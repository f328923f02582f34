/*
 * disk - limits the disk space of a named sandbox; see disk.h.
 *
 * The loop device has LO_FLAGS_AUTOCLEAR: the mount keeps it alive, and once the sandbox's
 * namespace and the supervisor are gone the kernel removes it, even if both were killed.
 */
#include "host/disk.h"

#include "base/cleanup.h"
#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <linux/mount.h>
#include <linux/quota.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUOTA_COMMAND(command) (((unsigned)(command) << SUBCMDSHIFT) | PRJQUOTA)
#define BYTES_A_FILE 4096u /* one inode per so many bytes of the limit */
#define FILES_MIN 1024u
#define LOOP_TRIES 64
#define TOOL_PATH_BYTES 32
#define GROWING_NAME DISK_FILE_NAME ".grows"
#define E2FSCK_CORRECTED 1        /* the highest exit status of e2fsck that means "clean now" */
#define FILE_MIN_BYTES (8u << 20) /* the smallest size that mke2fs can use */
#define MOUNT_ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif

static bool has_project_quota(int dir_fd)
{
	struct fs_quota_statv state = { .qs_version = FS_QSTATV_VERSION1 };

	/* enforced, not only counted: ext4 counts on every file system made with quotas */
	return syscall(SYS_quotactl_fd, dir_fd, QUOTA_COMMAND(Q_XGETQSTATV), 0, &state) == 0 &&
	       (state.qs_flags & FS_QUOTA_PDQ_ENFD) != 0;
}

static bool is_program_there(void)
{
	return access("/sbin/mke2fs", X_OK) == 0 || access("/usr/sbin/mke2fs", X_OK) == 0;
}

enum disk_way disk_find_way(int dir_fd, const char **ret_why)
{
	*ret_why = NULL;
	if (geteuid() != 0) {
		*ret_why = "only the host's root can limit a disk";
		return DISK_NONE;
	}
	if (has_project_quota(dir_fd))
		return DISK_QUOTA;
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		*ret_why = "the file system has no project quotas, and there are no loop devices";
	else if (!is_program_there())
		*ret_why = "the file system has no project quotas, and mke2fs is not installed";
	else
		return DISK_FILE;
	return DISK_NONE;
}

/* ---- quotas ---- */

int disk_set_quota(int dir_fd, uint32_t project, uint64_t limit_bytes, struct err *e)
{
	uint64_t files = limit_bytes / BYTES_A_FILE;
	struct if_dqblk limits = {
		.dqb_bhardlimit = limit_bytes / QIF_DQBLKSIZE,
		.dqb_bsoftlimit = limit_bytes / QIF_DQBLKSIZE,
		.dqb_ihardlimit = files > FILES_MIN ? files : FILES_MIN,
		.dqb_isoftlimit = files > FILES_MIN ? files : FILES_MIN,
		.dqb_valid = QIF_LIMITS,
	};
	struct fsxattr attributes;

	if (ioctl(dir_fd, FS_IOC_FSGETXATTR, &attributes) < 0)
		return err_sys(e, errno, "read the project of the sandbox's disk");
	attributes.fsx_projid = project;
	attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	if (ioctl(dir_fd, FS_IOC_FSSETXATTR, &attributes) < 0)
		return err_sys(e, errno, "give the sandbox's disk a project");
	if (syscall(SYS_quotactl_fd, dir_fd, QUOTA_COMMAND(Q_SETQUOTA), project, &limits) < 0)
		return err_sys(e, errno, "limit the sandbox's disk");
	return 0;
}

/* ---- a file system in a file ---- */

bool disk_has_file(int dir_fd)
{
	return faccessat(dir_fd, DISK_FILE_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * Runs a program of e2fsprogs (argv[0] is its name) with its output discarded. Returns its exit
 * status (127: not found), or -1 if vfork() failed or it was killed.
 */
static int run_tool(const char *const *argv)
{
	char *const no_environment[] = { NULL };
	char paths[2][32];
	int status = 0;
	pid_t pid;

	(void)snprintf(paths[0], sizeof(paths[0]), "/sbin/%s", argv[0]);
	(void)snprintf(paths[1], sizeof(paths[1]), "/usr/sbin/%s", argv[0]);
	pid = vfork();
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR);

		for (int stream = 0; stream < 3; stream++)
			(void)dup2(null_fd, stream);
		(void)execve(paths[0], (char *const *)argv, no_environment);
		(void)execve(paths[1], (char *const *)argv, no_environment);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int make_file_system(const char *path, struct err *e)
{
	const char *const argv[] = {
		"mke2fs", "-q",   "-F",
		"-t",     "ext4", "-m",
		"0",      "-E",   "lazy_itable_init=1,lazy_journal_init=1,nodiscard,root_owner=0:0",
		path,     NULL
	};

	if (run_tool(argv) != 0)
		return err_set(e, ERR_SYSTEM, "mke2fs could not make a file system of that size");
	return 0;
}

/* Gives fd a path for tools. Clears FD_CLOEXEC, so that the tool inherits the descriptor. */
static int name_for_tools(int fd, char ret_path[TOOL_PATH_BYTES], struct err *e)
{
	if (fcntl(fd, F_SETFD, 0) < 0)
		return err_sys(e, errno, "open a disk for e2fsprogs");
	(void)snprintf(ret_path, TOOL_PATH_BYTES, "/proc/self/fd/%d", fd);
	return 0;
}

/* Created under a temporary name and renamed when complete. */
int disk_make_file(int dir_fd, uint64_t size_bytes, struct err *e)
{
	cleanup_fd int fd = -1;
	char path[TOOL_PATH_BYTES];

	if (disk_has_file(dir_fd))
		return 0;
	if (size_bytes < FILE_MIN_BYTES)
		return err_set(e, ERR_INVALID, "--disk: here a disk has at least 8 MiB");
	fd = openat(dir_fd, DISK_FILE_NAME ".new",
		    O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)size_bytes) < 0)
		return err_sys(e, errno, "make a disk");
	if (name_for_tools(fd, path, e) < 0 || make_file_system(path, e) < 0)
		return -1;
	if (renameat(dir_fd, DISK_FILE_NAME ".new", dir_fd, DISK_FILE_NAME) < 0)
		return err_sys(e, errno, "keep the disk");
	return 0;
}

int disk_get_file_bytes(int dir_fd, uint64_t *ret, struct err *e)
{
	struct stat st;

	if (fstatat(dir_fd, DISK_FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "look at the sandbox's disk");
	*ret = (uint64_t)st.st_size;
	return 0;
}

/* Creates a marker file that stays until the file system has grown to the size of the file. */
static int begin_growing(int dir_fd, int fd, uint64_t size_bytes, struct err *e)
{
	cleanup_fd int note_fd =
		openat(dir_fd, GROWING_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (note_fd < 0 || ftruncate(fd, (off_t)size_bytes) < 0)
		return err_sys(e, errno, "enlarge the sandbox's disk");
	return 0;
}

int disk_grow_file(int dir_fd, uint64_t size_bytes, struct err *e)
{
	cleanup_fd int fd = openat(dir_fd, DISK_FILE_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	char path[TOOL_PATH_BYTES];
	const char *const check[] = { "e2fsck", "-f", "-p", path, NULL };
	const char *const resize[] = { "resize2fs", path, NULL };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the sandbox's disk");
	if ((uint64_t)st.st_size > size_bytes)
		size_bytes = (uint64_t)st.st_size;
	if ((uint64_t)st.st_size == size_bytes && faccessat(dir_fd, GROWING_NAME, F_OK, 0) < 0)
		return 0;
	if (name_for_tools(fd, path, e) < 0)
		return -1;
	if (run_tool(check) > E2FSCK_CORRECTED)
		return err_set(e, ERR_CORRUPT, "e2fsck found the sandbox's disk damaged");
	if (begin_growing(dir_fd, fd, size_bytes, e) < 0)
		return -1;
	if (run_tool(resize) != 0)
		return err_set(e, ERR_SYSTEM, "resize2fs could not enlarge the sandbox's disk");
	if (unlinkat(dir_fd, GROWING_NAME, 0) < 0)
		return err_sys(e, errno, "end enlarging the sandbox's disk");
	return 0;
}

/* Retries: another process may take the free loop device between the two calls. */
static int open_loop(int file_fd, int *ret_fd, char *ret_path, size_t path_size, struct err *e)
{
	cleanup_fd int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	const struct loop_config config = { .fd = (uint32_t)file_fd,
					    .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

	if (control_fd < 0)
		return err_sys(e, errno, "open /dev/loop-control");
	for (int i = 0; i < LOOP_TRIES; i++) {
		int number = ioctl(control_fd, LOOP_CTL_GET_FREE);
		cleanup_fd int loop_fd = -1;

		if (number < 0)
			return err_sys(e, errno, "find a free loop device");
		(void)snprintf(ret_path, path_size, "/dev/loop%d", number);
		loop_fd = open(ret_path, O_RDWR | O_CLOEXEC);
		if (loop_fd < 0)
			return err_sys(e, errno, "open %s", ret_path);
		if (ioctl(loop_fd, LOOP_CONFIGURE, &config) == 0) {
			*ret_fd = take_fd(&loop_fd);
			return 0;
		}
		if (errno != EBUSY)
			return err_sys(e, errno, "set up %s", ret_path);
	}
	return err_set(e, ERR_BUSY, "no loop device is free for long enough");
}

static int mount_ext4(const char *device, int *ret_tree_fd, struct err *e)
{
	cleanup_fd int fs_fd = (int)syscall(SYS_fsopen, "ext4", FSOPEN_CLOEXEC);
	int tree_fd;

	if (fs_fd < 0)
		return err_sys(e, errno, "open the ext4 file system");
	if (syscall(SYS_fsconfig, fs_fd, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
	    syscall(SYS_fsconfig, fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, errno, "mount the sandbox's disk");
	tree_fd = (int)syscall(SYS_fsmount, fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTRIBUTES);
	if (tree_fd < 0)
		return err_sys(e, errno, "mount the sandbox's disk");
	*ret_tree_fd = tree_fd;
	return 0;
}

int disk_mount_file(int dir_fd, int *ret_tree_fd, int *ret_plain_fd, struct err *e)
{
	cleanup_fd int file_fd = openat(dir_fd, DISK_FILE_NAME, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	cleanup_fd int loop_fd = -1, tree_fd = -1;
	char device[32];

	if (file_fd < 0)
		return err_sys(e, errno, "open the sandbox's disk");
	if (open_loop(file_fd, &loop_fd, device, sizeof(device), e) < 0)
		return -1;
	/* the file system is mounted by then, so the second call returns another mount of it */
	if (mount_ext4(device, &tree_fd, e) < 0 || mount_ext4(device, ret_plain_fd, e) < 0)
		return -1;
	*ret_tree_fd = take_fd(&tree_fd);
	return 0;
}
