/*
 * portowner - says which process listens on a TCP port; see portowner.h.
 *
 * /proc/net/tcp has the inode of each listening socket, and a process that has it open a link
 * "socket:[INODE]" in /proc/PID/fd. Other users' links cannot be read.
 *
 * Hostile input: names of processes, which are shown with control characters replaced.
 */
#include "host/portowner.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/shown.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 65536u     /* sockets looked at */
#define PROCESSES_MAX 32768u /* processes looked at */
#define LISTENING 0x0au      /* the kernel's TCP_LISTEN */

static bool find_inode(const char *path, uint16_t port, uint64_t *ret)
{
	FILE *file = fopen(path, "re");
	char line[512];
	bool is_found = false;

	for (unsigned i = 0; file && !is_found && i < LINES_MAX && fgets(line, sizeof(line), file);
	     i++) {
		unsigned own_port = 0, state = 0;
		uint64_t inode = 0;

		if (sscanf(line, "%*s %*[0-9A-Fa-f]:%4x %*s %2x %*s %*s %*s %*s %*s %" SCNu64,
			   &own_port, &state, &inode) != 3 ||
		    state != LISTENING || own_port != port)
			continue;
		*ret = inode;
		is_found = true;
	}
	if (file)
		(void)fclose(file);
	return is_found;
}

static bool has_open(int fds_fd, const char *wanted)
{
	DIR *dir = fdopendir(fds_fd);
	const struct dirent *entry;
	bool is_found = false;

	if (!dir) {
		(void)close(fds_fd);
		return false;
	}
	while (!is_found && (entry = readdir(dir))) {
		char target[64];
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		if (n <= 0)
			continue;
		target[n] = '\0';
		is_found = strcmp(target, wanted) == 0;
	}
	(void)closedir(dir);
	return is_found;
}

static bool name_process(int proc_fd, const char *pid, char *out)
{
	char path[64], name[32];

	(void)snprintf(path, sizeof(path), "%.20s/comm", pid);
	if (file_read_line(proc_fd, path, name, sizeof(name)) < 0)
		return false;
	shown_replace(name);
	(void)snprintf(out, PORTOWNER_TEXT_MAX_BYTES, "%s (process %.20s)", name, pid);
	return true;
}

const char *portowner_find(uint16_t port, char out[PORTOWNER_TEXT_MAX_BYTES])
{
	DIR *proc = NULL;
	const struct dirent *entry;
	char wanted[48], path[64];
	uint64_t inode = 0;
	bool is_found = false;

	(void)snprintf(out, PORTOWNER_TEXT_MAX_BYTES, "another process");
	if (!find_inode("/proc/net/tcp", port, &inode) &&
	    !find_inode("/proc/net/tcp6", port, &inode))
		return out;
	(void)snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	proc = opendir("/proc");
	for (unsigned i = 0; proc && !is_found && i < PROCESSES_MAX && (entry = readdir(proc));
	     i++) {
		int fds_fd;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "%.20s/fd", entry->d_name);
		fds_fd = openat(dirfd(proc), path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		is_found = fds_fd >= 0 && has_open(fds_fd, wanted) &&
			   name_process(dirfd(proc), entry->d_name, out);
	}
	if (proc)
		(void)closedir(proc);
	return out;
}
