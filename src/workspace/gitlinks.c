/* gitlinks - parses git's files that refer to other directories; see gitlinks.h. */
#include "workspace/gitlinks.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "workspace/hostpath.h"
#include "host/mount.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GITDIR_PREFIX "gitdir: "

/* Reads a small plain file below dir_fd, following no link; NULL if there is none. */
static char *read_text(int dir_fd, const char *name)
{
	cleanup_fd int fd =
		mount_open_plain(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	cleanup_free char *text = NULL;
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    file_read_fd(fd, GITLINKS_FILE_MAX_BYTES, &text, &len) < 0 || strlen(text) != len)
		return NULL;
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	return take_ptr(text);
}

char *gitlinks_read_git_file(int dir_fd)
{
	cleanup_free char *text = read_text(dir_fd, ".git");

	if (!text || strncmp(text, GITDIR_PREFIX, strlen(GITDIR_PREFIX)) != 0)
		return NULL;
	return mem_dup(text + strlen(GITDIR_PREFIX));
}

char *gitlinks_read_commondir(int git_fd)
{
	return read_text(git_fd, "commondir");
}

/* ---- a linked worktree ---- */

/* git 2.48 and later can write paths relative to the file that contains them. */
static char *read_gitdir(int admin_fd, const char *admin_path)
{
	cleanup_free char *text = read_text(admin_fd, "gitdir");

	return text ? path_absolute(admin_path, text) : NULL;
}

/* Does the repository's worktree entry lead back to this worktree? */
static bool is_named_in_return(int admin_fd, const char *admin, const char *dir)
{
	cleanup_free char *path = read_gitdir(admin_fd, admin);
	cleanup_free char *expected = mem_format("%s/.git", dir);

	return path && strcmp(path, expected) == 0;
}

/* Excludes an unrelated directory that happens to be named "worktrees". */
static bool is_git_dir(int fd)
{
	struct stat head, objects;

	return fstatat(fd, "HEAD", &head, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(head.st_mode) &&
	       fstatat(fd, "objects", &objects, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(objects.st_mode);
}

/*
 * ".git" is a file with the path of REPOSITORY/.git/worktrees/NAME. Only that exact form is
 * accepted, and only if the repository refers back to this directory.
 */
void gitlinks_find_outside(int dir_fd, const char *dir, char **ret_path, int *ret_fd)
{
	cleanup_free char *text = gitlinks_read_git_file(dir_fd);
	cleanup_free char *admin = text ? path_absolute(dir, text) : NULL;
	cleanup_free char *common = NULL;
	cleanup_fd int admin_fd = -1;
	cleanup_fd int common_fd = -1;
	char *name = admin ? strrchr(admin, '/') : NULL;
	struct err ignored;

	if (!name || name == admin)
		return;
	common = mem_dup_bytes(admin, (size_t)(name - admin));
	name = strrchr(common, '/');
	if (!name || strcmp(name, "/worktrees") != 0)
		return;
	*name = '\0';
	if (!common[0] || path_is_within(common, dir) || path_is_within(dir, common))
		return;
	if (hostpath_open(common, &common_fd, &ignored) < 0 || !is_git_dir(common_fd))
		return;
	admin_fd = mount_open_plain(common_fd, admin + strlen(common) + 1, O_PATH | O_DIRECTORY);
	if (admin_fd < 0 || !is_named_in_return(admin_fd, admin, dir))
		return;
	*ret_path = take_ptr(common);
	*ret_fd = take_fd(&common_fd);
}
