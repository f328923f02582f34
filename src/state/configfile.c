/*
 * configfile - finds configuration files and checks their trust; see configfile.h.
 *
 * Hostile input: the project's file, the files beside it, and processes that replace it while we
 * read it. It is opened once, without following a link; the bytes that were read are the ones that
 * are compared with the trusted copy and used.
 */
#include "state/configfile.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/path.h"
#include "state/ak.h"
#include "state/statedir.h"
#include "policy/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRUST_DIR "trust"

void configfile_done(struct configfile *c)
{
	configuration_done(&c->user);
	configuration_done(&c->project);
	free(c->user_path);
	free(c->project_path);
	*c = (struct configfile){ 0 };
}

/* ---- finding ---- */

/*
 * A directory is none: that is how a workspace keeps the name free (workspace/workspace). What
 * cannot be looked at may forbid something: only what is not there, or not for us, is left out.
 */
static int find_file(const char *path, bool *ret, struct err *e)
{
	struct stat st;

	*ret = false;
	if (lstat(path, &st) < 0)
		return file_is_absence(-errno) ? 0 : err_sys(e, errno, "look for '%s'", path);
	*ret = !S_ISDIR(st.st_mode);
	return 0;
}

/* True for a worktree's ".git" file or a real git directory, not for a placeholder directory. */
static bool is_repository(const char *dir)
{
	cleanup_free char *git = mem_format("%s/.git", strcmp(dir, "/") == 0 ? "" : dir);
	cleanup_free char *head = mem_format("%s/HEAD", git);
	struct stat st;

	if (lstat(git, &st) < 0)
		return false;
	return !S_ISDIR(st.st_mode) || lstat(head, &st) == 0;
}

/* Returns the length of the path of the repository that contains `cwd`; 0: none. */
static size_t find_repository(const char *cwd)
{
	cleanup_free char *dir = mem_dup(cwd);

	for (unsigned level = 0; level < CONFIGFILE_LEVELS_MAX && dir[0]; level++) {
		if (is_repository(dir))
			return strlen(dir);
		*strrchr(dir, '/') = '\0';
	}
	return 0;
}

int configfile_find(const char *cwd, char **ret, struct err *e)
{
	cleanup_free char *dir = NULL;
	size_t root_len;

	*ret = NULL;
	if (!cwd || cwd[0] != '/')
		return 0;
	dir = mem_dup(cwd);
	root_len = find_repository(cwd);
	for (unsigned level = 0; level < CONFIGFILE_LEVELS_MAX; level++) {
		cleanup_free char *path =
			mem_format("%s/" CONFIGFILE_NAME, strcmp(dir, "/") == 0 ? "" : dir);
		bool is_found;

		if (find_file(path, &is_found, e) < 0)
			return -1;
		if (is_found) {
			*ret = take_ptr(path);
			return 0;
		}
		if (root_len == 0 || strlen(dir) <= root_len)
			return 0;
		*strrchr(dir, '/') = '\0';
	}
	return 0;
}

static int find_users(const struct ak *ak, char **ret, struct err *e)
{
	const char *config = environment_get(ak->caller.environ_list, "XDG_CONFIG_HOME");
	cleanup_free char *path = NULL;

	*ret = NULL;
	if (config && config[0] == '/')
		path = mem_format("%s/agentkernel/config.toml", config);
	else if (ak->caller.home)
		path = mem_format("%s/.config/agentkernel/config.toml", ak->caller.home);
	else
		return 0;
	if (access(path, F_OK) == 0)
		*ret = take_ptr(path);
	else if (!file_is_absence(-errno))
		return err_sys(e, errno, "look for '%s'", path);
	return 0;
}

/* ---- reading ---- */

static int read_bytes(const char *path, int flags, char **ret, size_t *ret_len, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_NOT_FOUND, "'%s' does not exist", path);
	if (fd < 0 && errno == ELOOP)
		return err_set(e, ERR_INVALID, "'%s' is a link", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "read '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "'%s' is not a plain file", path);
	r = file_read_fd(fd, CONFIGFILE_MAX_BYTES, ret, ret_len);
	if (r == -EFBIG)
		return err_set(e, ERR_LIMIT, "'%s' is larger than %u bytes", path,
			       CONFIGFILE_MAX_BYTES);
	return r < 0 ? err_sys(e, -r, "read '%s'", path) : 0;
}

/* As people would name it: from the working directory if it lies below, from ~ if below that. */
static char *shown_name(const struct ak *ak, const char *path)
{
	size_t cwd_len = ak->caller.cwd ? strlen(ak->caller.cwd) : 0;
	size_t home_len = ak->caller.home ? strlen(ak->caller.home) : 0;

	if (cwd_len > 1 && path_is_within(path, ak->caller.cwd))
		return mem_dup(path + cwd_len + 1);
	if (home_len > 1 && path_is_within(path, ak->caller.home))
		return mem_format("~%s", path + home_len);
	return mem_dup(path);
}

static int parse(const struct ak *ak, const char *path, const char *bytes, size_t len,
		 enum configuration_owner owner, enum policy_layer layer, struct configuration *ret,
		 struct err *e)
{
	cleanup_free char *name = shown_name(ak, path);
	cleanup_free char *dir = mem_dup_bytes(path, (size_t)(path_base_name(path) - path));

	if (strlen(dir) > 1)
		dir[strlen(dir) - 1] = '\0';
	return configuration_parse(bytes, len, name, dir, owner, layer, ret, e);
}

/* ---- trust ---- */

/* The copy's name says little; the path it is for is its first line. */
static int trust_path(const struct ak *ak, const char *path, char **ret, struct err *e)
{
	cleanup_free char *name = mem_format(TRUST_DIR "/%08" PRIx32 "%08" PRIx32,
					     hash_text(0, path), hash_text(1, path));

	return statedir_path(ak, name, ret, e);
}

static void format_copy(const char *path, const char *bytes, size_t len, struct buf *out)
{
	buf_addf(out, "%s\n", path);
	buf_add(out, bytes, len);
}

static bool is_trusted(const struct ak *ak, const char *path, const char *bytes, size_t len)
{
	cleanup_free char *copy_path = NULL;
	cleanup_free char *copy = NULL;
	cleanup_buf struct buf expected;
	size_t copy_len = 0;
	struct err ignored;

	buf_init(&expected, CONFIGFILE_MAX_BYTES + PATH_MAX + 1);
	if (trust_path(ak, path, &copy_path, &ignored) < 0)
		return false;
	if (file_read_at(AT_FDCWD, copy_path, CONFIGFILE_MAX_BYTES + PATH_MAX + 1, &copy,
			 &copy_len) < 0)
		return false;
	format_copy(path, bytes, len, &expected);
	return !expected.is_cut && copy_len == expected.len &&
	       memcmp(copy, expected.bytes, copy_len) == 0;
}

static int write_copy(const char *copy_path, const struct buf *bytes, struct err *e)
{
	cleanup_free char *temporary = mem_format("%s.%ld", copy_path, (long)getpid());
	cleanup_fd int fd =
		open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : file_write_all(fd, bytes->bytes, bytes->len);

	if (r == 0 && rename(temporary, copy_path) < 0)
		r = -errno;
	if (r < 0) {
		(void)unlink(temporary);
		return err_sys(e, -r, "write '%s'", copy_path);
	}
	return 0;
}

int configfile_trust(const struct ak *ak, const char *path, struct err *e)
{
	cleanup_free char *bytes = NULL;
	size_t len = 0;

	return read_bytes(path, O_NOFOLLOW, &bytes, &len, e) < 0
		       ? -1
		       : configfile_trust_bytes(ak, path, bytes, len, e);
}

int configfile_trust_bytes(const struct ak *ak, const char *path, const char *bytes, size_t len,
			   struct err *e)
{
	CLEANUP(configuration_done) struct configuration checked = { 0 };
	cleanup_free char *dir = NULL;
	cleanup_free char *copy_path = NULL;
	cleanup_buf struct buf copy;

	buf_init(&copy, CONFIGFILE_MAX_BYTES + PATH_MAX + 1);
	if (parse(ak, path, bytes, len, CONFIGURATION_PROJECTS, POLICY_BY_PROJECT_FILE, &checked,
		  e) < 0)
		return -1;
	if (statedir_make_path(ak, TRUST_DIR, &dir, e) < 0 ||
	    trust_path(ak, path, &copy_path, e) < 0)
		return -1;
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create '%s'", dir);
	format_copy(path, bytes, len, &copy);
	return write_copy(copy_path, &copy, e);
}

int configfile_distrust(const struct ak *ak, const char *path, struct err *e)
{
	cleanup_free char *copy_path = NULL;

	if (trust_path(ak, path, &copy_path, e) < 0)
		return -1;
	if (unlink(copy_path) < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return err_set(e, ERR_NOT_FOUND, "'%s' was not trusted", path);
		return err_sys(e, errno, "remove '%s'", copy_path);
	}
	return 0;
}

/* ---- both files ---- */

static int load_users(const struct ak *ak, struct configfile *c, struct err *e)
{
	cleanup_free char *bytes = NULL;
	size_t len = 0;

	if (find_users(ak, &c->user_path, e) < 0)
		return -1;
	if (!c->user_path)
		return 0;
	if (read_bytes(c->user_path, 0, &bytes, &len, e) < 0)
		return -1;
	return parse(ak, c->user_path, bytes, len, CONFIGURATION_USERS, POLICY_BY_USER_FILE,
		     &c->user, e);
}

static int load_projects(const struct ak *ak, const char *named, struct configfile *c,
			 struct err *e)
{
	cleanup_free char *bytes = NULL;
	size_t len = 0;

	if (named)
		c->project_path = path_absolute(ak->caller.cwd ? ak->caller.cwd : "/", named);
	else if (configfile_find(ak->caller.cwd, &c->project_path, e) < 0)
		return -1;
	if (named && !c->project_path)
		return err_set(e, ERR_INVALID, "'%s' climbs above '/'", named);
	if (!c->project_path)
		return 0;
	if (read_bytes(c->project_path, named ? 0 : O_NOFOLLOW, &bytes, &len, e) < 0)
		return -1;
	c->is_trusted = named || is_trusted(ak, c->project_path, bytes, len);
	return parse(ak, c->project_path, bytes, len, CONFIGURATION_PROJECTS,
		     POLICY_BY_PROJECT_FILE, &c->project, e);
}

int configfile_load(const struct ak *ak, const char *path, struct configfile *ret, struct err *e)
{
	CLEANUP(configfile_done) struct configfile c = { 0 };

	if (load_users(ak, &c, e) < 0)
		return -1;
	if (load_projects(ak, path, &c, e) < 0)
		return path ? err_wrap(e, "--config") : -1;
	*ret = c;
	c = (struct configfile){ 0 };
	return 0;
}
