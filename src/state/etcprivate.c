/*
 * etcprivate - lists the names in /etc that are not world-readable; see etcprivate.h.
 *
 * Theory of operation. Every entry is judged by its mode: a plain file is public if others may read
 * it, a directory if others may read and enter it, a link always (its target is judged where it
 * is); anything else (sockets, fifos, devices) is private. A private directory is listed but not
 * entered. A directory that cannot be walked completely (too many entries, too deep) is listed as a
 * whole: when in doubt a name is hidden.
 */
#include "state/etcprivate.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "state/ak.h"
#include "state/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define KEPT_FILE "etc-private"
#define HEAD_MAX_BYTES 96

/* ---- scanning ---- */

struct look {
	struct buf names; /* each ended by NUL */
	unsigned name_count, entry_count;
};

static void add_name(struct look *l, const char *path)
{
	l->name_count++;
	buf_add(&l->names, path, strlen(path) + 1);
}

static bool is_for_all(const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return st->st_mode & S_IROTH;
	if (S_ISDIR(st->st_mode))
		return (st->st_mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH);
	return S_ISLNK(st->st_mode);
}

static int look_through(struct look *l, int dir_fd, const char *path, unsigned depth);

/* Returns -1 if there are too many entries. */
static int look_at(struct look *l, int dir_fd, const struct dirent *entry, const char *path,
		   unsigned depth)
{
	cleanup_fd int below_fd = -1;
	struct stat st;

	if (++l->entry_count > ETCPRIVATE_ENTRIES_MAX || l->name_count > ETCPRIVATE_NAMES_MAX)
		return -1;
	if (entry->d_type == DT_LNK || fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!is_for_all(&st)) {
		add_name(l, path);
		return 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	below_fd = openat(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below_fd < 0 || depth == ETCPRIVATE_DEPTH_MAX ||
	    look_through(l, take_fd(&below_fd), path, depth + 1) < 0)
		add_name(l, path);
	return 0;
}

/* Takes ownership of dir_fd. `path` is its path below /etc, or "". */
static int look_through(struct look *l, int dir_fd, const char *path, unsigned depth)
{
	DIR *dir = fdopendir(dir_fd);
	const struct dirent *entry;
	char below[PATH_MAX];
	int r = 0;

	if (!dir) {
		(void)close(dir_fd);
		return -1;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if ((size_t)snprintf(below, sizeof(below), "%s%s%s", path, path[0] ? "/" : "",
				     entry->d_name) >= sizeof(below))
			r = -1;
		else
			r = look_at(l, dir_fd, entry, below, depth);
	}
	(void)closedir(dir);
	return r;
}

/* ---- the cache file ---- */

/* Beside other things that need not outlive the machine's uptime, or that are kept anyway. */
static char *find_file(const struct ak *ak)
{
	const char *runtime = ak->runtime_dir;
	struct err ignored;
	char *path = NULL;

	if (runtime && file_make_dirs(runtime, 0700) == 0)
		return mem_format("%s/" KEPT_FILE, runtime);
	return statedir_path(ak, KEPT_FILE, &path, &ignored) < 0 ? NULL : path;
}

/* The key of the cache: identity and change time of /etc. */
static bool format_head(char out[HEAD_MAX_BYTES])
{
	struct stat st;

	if (stat("/etc", &st) < 0)
		return false;
	(void)snprintf(
		out, HEAD_MAX_BYTES, "agentkernel etc-private 1 %" PRIx64 " %" PRIx64 " %" PRIx64,
		(uint64_t)st.st_ino, (uint64_t)st.st_ctim.tv_sec, (uint64_t)st.st_ctim.tv_nsec);
	return true;
}

/* Reads the cached names after the header; false: there are none, or they are outdated. */
static bool read_kept(const char *path, const char *head, char **ret_bytes, size_t *ret_len)
{
	cleanup_fd int fd = openat(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *bytes = NULL;
	time_t now = time(NULL);
	size_t len = 0, head_len = strlen(head) + 1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mtime > now || now - st.st_mtime > ETCPRIVATE_KEPT_S ||
	    file_read_fd(fd, ETCPRIVATE_FILE_MAX_BYTES, &bytes, &len) < 0 || len < head_len ||
	    memcmp(bytes, head, head_len) != 0 || bytes[len - 1] != '\0')
		return false;
	*ret_len = len - head_len;
	*ret_bytes = mem_dup_bytes(bytes + head_len, *ret_len);
	return true;
}

/* Failure is ignored: the next start scans again. */
static void keep(const char *path, const char *head, const struct buf *names)
{
	cleanup_free char *fresh = mem_format("%s.%d", path, (int)getpid());
	int fd = openat(AT_FDCWD, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool is_written;

	if (fd < 0)
		return;
	is_written = file_write_all(fd, head, strlen(head) + 1) == 0 &&
		     file_write_all(fd, names->bytes, names->len) == 0;
	(void)close(fd);
	if (!is_written || rename(fresh, path) < 0)
		(void)unlink(fresh);
}

static char **split(const char *bytes, size_t len)
{
	char **list = NULL;

	for (size_t at = 0; at < len; at += strlen(bytes + at) + 1)
		(void)keyrows_list_add(&list, bytes + at);
	return list;
}

static int look_anew(struct look *l, struct err *e)
{
	int dir_fd = openat(AT_FDCWD, "/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0)
		return err_sys(e, errno, "read /etc");
	if (look_through(l, dir_fd, "", 1) < 0 || l->names.is_cut)
		return err_set(e, ERR_LIMIT,
			       "/etc has too many entries to tell which are open to all users "
			       "(at most %u, %u of them not open)",
			       ETCPRIVATE_ENTRIES_MAX, ETCPRIVATE_NAMES_MAX);
	return 0;
}

int etcprivate_list(const struct ak *ak, char ***ret, struct err *e)
{
	cleanup_free char *path = find_file(ak);
	cleanup_free char *kept = NULL;
	char head[HEAD_MAX_BYTES];
	struct look l = { 0 };
	size_t len = 0;
	int r;

	if (!format_head(head))
		return err_sys(e, errno, "look at /etc");
	if (path && read_kept(path, head, &kept, &len)) {
		*ret = split(kept, len);
		return 0;
	}
	buf_init(&l.names, ETCPRIVATE_FILE_MAX_BYTES);
	r = look_anew(&l, e);
	if (r == 0) {
		if (path)
			keep(path, head, &l.names);
		*ret = split(l.names.bytes, l.names.len);
	}
	buf_done(&l.names);
	return r;
}
