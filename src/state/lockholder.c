/* lockholder - kills the process that holds a sandbox's lock; see lockholder.h. */
#include "state/lockholder.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_open(pid_t pid, const struct stat *file)
{
	char path[40];
	DIR *dir;
	const struct dirent *entry;
	bool is_found = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !is_found && (entry = readdir(dir))) {
		struct stat st;

		is_found = fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
			   st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	}
	if (dir)
		(void)closedir(dir);
	return is_found;
}

int lockholder_kill(int dir_fd, const char *lock_file, pid_t pid, struct err *e)
{
	cleanup_fd int pid_fd = -1;
	struct stat lock;

	if (fstatat(dir_fd, lock_file, &lock, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? err_set(e, ERR_NOT_FOUND, "it was removed meanwhile")
				       : err_sys(e, errno, "look at the sandbox's lock");
	pid_fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	/* open the pidfd first: from here on a reused pid cannot be mistaken for the holder */
	if (pid_fd < 0 || !has_open(pid, &lock))
		return err_set(e, ERR_NOT_FOUND, "its supervisor cannot be found");
	if (syscall(SYS_pidfd_send_signal, pid_fd, SIGKILL, NULL, 0) < 0)
		return err_sys(e, errno, "end the supervisor, process %d", (int)pid);
	return 0;
}
