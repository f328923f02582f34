/* gitlinks - where else git looks when it works in a directory; see gitlinks.h. */
#include "engine/gitlinks.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "engine/hostpath.h"
#include "sandbox/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define GITDIR_PREFIX "gitdir: "

void gitlinks_done(struct gitlinks *g)
{
	keyrows_list_free(&g->dirs);
	keyrows_list_free(&g->admin);
	free(g->outside);
	g->outside = NULL;
	cleanup_closep(&g->outside_fd);
}

/* The text of a small plain file below dir_fd, no link on the way; NULL: there is none. */
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

static int add(char ***list, const char *name, unsigned max, const char *what, struct err *e)
{
	for (char **known = *list; known && *known; known++)
		if (strcmp(*known, name) == 0)
			return 0;
	if (keyrows_list_count(*list) >= max || !keyrows_list_add(list, name))
		return err_set(e, ERR_LIMIT,
			       "it has more than %u %s, and not all of them can be protected", max,
			       what);
	return 0;
}

/* ---- submodules ---- */

/* The value of a line "path = ..." of .gitmodules, normal and relative; NULL: another line. */
static char *path_in_line(char *line)
{
	char *value, *out;
	cleanup_free char *absolute = NULL;

	line += strspn(line, " \t");
	if (strncasecmp(line, "path", 4) != 0)
		return NULL;
	value = line + 4 + strspn(line + 4, " \t");
	if (*value != '=')
		return NULL;
	value++;
	value += strspn(value, " \t");
	out = value;
	for (char *in = value; *in; in++) {
		if (*in == '"')
			continue;
		if (*in == '\\' && in[1])
			in++;
		*out++ = *in;
	}
	while (out > value && strchr(" \t\r", out[-1]))
		out--;
	*out = '\0';
	absolute = value[0] == '/' ? NULL : path_absolute("/", value);
	return absolute && absolute[1] ? mem_dup(absolute + 1) : NULL;
}

/* What cannot be read as a whole could name what is not protected then. */
static int read_modules(int dir_fd, const char *name, char **ret, struct err *e)
{
	cleanup_fd int fd =
		mount_open_plain(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	size_t len = 0;
	int r;

	if (fd < 0)
		return file_is_absence(fd) ? 0 : err_sys(e, -fd, "read '%s'", name);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "read '%s'", name);
	if (!S_ISREG(st.st_mode))
		return 0;
	r = file_read_fd(fd, GITLINKS_FILE_MAX_BYTES, ret, &len);
	if (r == -EFBIG)
		return err_set(e, ERR_LIMIT,
			       "'%s' is larger than %u bytes, and not all submodules can be "
			       "protected",
			       name, GITLINKS_FILE_MAX_BYTES);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", name);
	for (char *nul = *ret; (nul = memchr(nul, '\0', len - (size_t)(nul - *ret)));)
		*nul = ' ';
	return 0;
}

static int add_submodules(int dir_fd, const char *below, struct gitlinks *g, struct err *e)
{
	cleanup_free char *name = mem_format("%s%s.gitmodules", below, below[0] ? "/" : "");
	cleanup_free char *text = NULL;
	char *rest, *line;

	if (read_modules(dir_fd, name, &text, e) < 0)
		return -1;
	rest = text;

	while (rest && (line = strsep(&rest, "\n"))) {
		cleanup_free char *path = path_in_line(line);
		cleanup_free char *dir = NULL;

		if (!path)
			continue;
		dir = mem_format("%s%s%s", below, below[0] ? "/" : "", path);
		if (add(&g->dirs, dir, GITLINKS_DIRS_MAX, "submodules and worktrees", e) < 0)
			return -1;
	}
	return 0;
}

/* Submodules have submodules; the list grows while it is walked. */
static int add_all_submodules(int dir_fd, struct gitlinks *g, struct err *e)
{
	if (add_submodules(dir_fd, "", g, e) < 0)
		return -1;
	for (size_t i = 0; g->dirs && g->dirs[i]; i++)
		if (add_submodules(dir_fd, g->dirs[i], g, e) < 0)
			return -1;
	return 0;
}

/* ---- worktrees ---- */

/* git 2.48 and later can write paths that begin at the file they stand in. */
static char *read_gitdir(int admin_fd, const char *admin_path)
{
	cleanup_free char *text = read_text(admin_fd, "gitdir");

	return text ? path_absolute(admin_path, text) : NULL;
}

/* Where a linked worktree lies, if that is below `dir`. */
static int add_worktree(int git_fd, const char *git_path, const char *dir, const char *name,
			struct gitlinks *g, struct err *e)
{
	cleanup_free char *admin = mem_format("worktrees/%s", name);
	cleanup_free char *admin_path = mem_format("%s/%s", git_path, admin);
	cleanup_fd int admin_fd = mount_open_plain(git_fd, admin, O_PATH | O_DIRECTORY);
	cleanup_free char *path = admin_fd >= 0 ? read_gitdir(admin_fd, admin_path) : NULL;
	char *end = path ? strrchr(path, '/') : NULL;

	if (add(&g->admin, admin, GITLINKS_ADMIN_MAX, "linked worktrees", e) < 0)
		return -1;
	if (!end || strcmp(end, "/.git") != 0)
		return 0;
	*end = '\0';
	if (strcmp(path, dir) == 0 || !path_is_within(path, dir))
		return 0;
	return add(&g->dirs, path + strlen(dir) + 1, GITLINKS_DIRS_MAX, "submodules and worktrees",
		   e);
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

static int add_worktrees(int git_fd, const char *git_path, const char *dir, struct gitlinks *g,
			 struct err *e)
{
	int fd = mount_open_plain(git_fd, "worktrees", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	CLEANUP(close_dir) DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (fd < 0)
		return file_is_absence(fd) ? 0 : err_sys(e, -fd, "list the worktrees");
	if (!entries)
		return err_sys(e, errno, "list the worktrees");
	while ((errno = 0, entry = readdir(entries)))
		if (entry->d_name[0] != '.' &&
		    add_worktree(git_fd, git_path, dir, entry->d_name, g, e) < 0)
			return -1;
	return errno != 0 ? err_sys(e, errno, "list the worktrees") : 0;
}

/* ---- the directory is a worktree itself ---- */

/* Does the repository say that this worktree is its own? */
static bool is_named_in_return(int admin_fd, const char *admin, const char *dir)
{
	cleanup_free char *path = read_gitdir(admin_fd, admin);
	cleanup_free char *expected = mem_format("%s/.git", dir);

	return path && strcmp(path, expected) == 0;
}

/* Somebody's "worktrees" directory is none. */
static bool is_git_dir(int fd)
{
	struct stat head, objects;

	return fstatat(fd, "HEAD", &head, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(head.st_mode) &&
	       fstatat(fd, "objects", &objects, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(objects.st_mode);
}

/*
 * ".git" is a file with the path of REPOSITORY/.git/worktrees/NAME. That exact shape, and the
 * repository's own word for it, or nothing.
 */
static int find_outside(const char *dir, const char *git_file, struct gitlinks *g, struct err *e)
{
	cleanup_free char *admin = NULL;
	cleanup_free char *common = NULL;
	cleanup_fd int admin_fd = -1;
	cleanup_fd int common_fd = -1;
	struct err ignored;
	char *name;

	if (strncmp(git_file, GITDIR_PREFIX, strlen(GITDIR_PREFIX)) != 0)
		return 0;
	admin = path_absolute(dir, git_file + strlen(GITDIR_PREFIX));
	name = admin ? strrchr(admin, '/') : NULL;
	if (!name || name == admin)
		return 0;
	common = mem_dup_bytes(admin, (size_t)(name - admin));
	name = strrchr(common, '/');
	if (!name || strcmp(name, "/worktrees") != 0)
		return 0;
	*name = '\0';
	if (!common[0] || path_is_within(common, dir) || path_is_within(dir, common))
		return 0;
	if (hostpath_open(common, &common_fd, &ignored) < 0 || !is_git_dir(common_fd))
		return 0;
	admin_fd = mount_open_plain(common_fd, admin + strlen(common) + 1, O_PATH | O_DIRECTORY);
	if (admin_fd < 0 || !is_named_in_return(admin_fd, admin, dir))
		return 0;
	g->outside = take_ptr(common);
	g->outside_fd = take_fd(&common_fd);
	return add_worktrees(g->outside_fd, g->outside, dir, g, e);
}

int gitlinks_read(int dir_fd, const char *dir, struct gitlinks *ret, struct err *e)
{
	CLEANUP(gitlinks_done) struct gitlinks g = { .outside_fd = -1 };
	cleanup_fd int git_fd = -1;
	cleanup_free char *git_file = NULL;
	cleanup_free char *git_path = mem_format("%s/.git", dir);

	git_fd = mount_open_plain(dir_fd, ".git", O_PATH | O_DIRECTORY | O_NOFOLLOW);
	git_file = git_fd < 0 ? read_text(dir_fd, ".git") : NULL;
	if (git_fd >= 0 && add_worktrees(git_fd, git_path, dir, &g, e) < 0)
		return -1;
	if (git_file && find_outside(dir, git_file, &g, e) < 0)
		return -1;
	if (add_all_submodules(dir_fd, &g, e) < 0)
		return -1;
	*ret = g;
	g = (struct gitlinks){ .outside_fd = -1 };
	return 0;
}
