/*
 * gitprotect - protects what git outside would run or obey; see gitprotect.h.
 *
 * Theory of operation. One walk finds the repositories; each adds its protected names and is
 * recorded by inode, so that workspace/gitinspect can tell at the end which ones are new. Settings
 * are read as text: a path in a setting is made absolute as git would, and protected if it is in
 * the workspace. Conditions (includeIf) are assumed to be true.
 *
 * Hostile input: a project's own repository may name any path. Such a path is only protected, or
 * read as another configuration file: a plain file of bounded size.
 */
#include "workspace/gitprotect.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/gitconfig.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "workspace/gitlinks.h"
#include "workspace/gitrepos.h"
#include "workspace/hostpath.h"
#include "workspace/workspace.h"
#include "policy/credential.h"
#include "policy/environment.h"
#include "policy/gitsettings.h"
#include "state/ak.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SETTING_FAILED 1 /* the error is set */

struct protector {
	struct workspace *workspace;
	const struct policy *policy;
	const char *home, *config_home; /* NULL: none */
	char *real_path;                /* of the workspace, with links resolved */
	unsigned file_count, include_depth;
};

/* The configuration file being read. */
struct settings {
	struct protector *protector;
	const char *dir; /* the file's directory: included paths are relative to it */
	char *tree;      /* the working tree: paths of commands and hooks are relative to it */
	struct workspace_repository *repository; /* owner of these settings; NULL: none */
	struct err *e;
};

static int read_settings(struct protector *r, const char *path, const char *tree,
			 struct workspace_repository *repository, struct err *e);

/* ---- paths in settings ---- */

/* Returns the path relative to the workspace, by name or with links resolved; NULL: not in it. */
static char *name_in_workspace(const struct protector *r, const char *path)
{
	const char *top = r->workspace->path;
	cleanup_free char *real = NULL;

	if (path_is_within(path, top) && strcmp(path, top) != 0)
		return mem_dup(path + strlen(top) + 1);
	real = hostpath_find_real(path);
	if (real && r->real_path && path_is_within(real, r->real_path) &&
	    strcmp(real, r->real_path) != 0)
		return mem_dup(real + strlen(r->real_path) + 1);
	return NULL;
}

static char *expand(const struct protector *r, const char *base, const char *value)
{
	cleanup_free char *in_home = NULL;

	if (strncmp(value, "~/", 2) == 0) {
		if (!r->home)
			return NULL;
		in_home = mem_format("%s/%s", r->home, value + 2);
		value = in_home;
	}
	return path_absolute(base, value);
}

/* --unprotect cannot name a setting's path by a table row, only by the path itself. */
static int protect_path(struct protector *r, const char *path, struct err *e)
{
	const struct workspace_place place = { r->workspace->path, r->workspace->dir_fd };
	cleanup_free char *name = name_in_workspace(r, path);
	const struct credential_protected row = { .path = name,
						  .is_kept_free = true,
						  .is_watched = true };

	return name ? workspace_protect(r->workspace, r->policy, &place, name, &row, e) : 0;
}

/* Protects each word of a shell command that names a file of the working tree. */
static int protect_words(const struct settings *s, const char *value)
{
	cleanup_free char *copy = mem_dup(value);
	char *rest = copy, *word;

	while ((word = strsep(&rest, " \t\n\"'!;&|()<>=$`"))) {
		cleanup_free char *path = word[0] ? expand(s->protector, s->tree, word) : NULL;
		struct stat st;

		if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    protect_path(s->protector, path, s->e) < 0)
			return SETTING_FAILED;
	}
	return 0;
}

/* core.worktree; read first, as it may come after settings that are relative to it. */
static int on_tree_setting(void *context, const struct gitconfig_entry *entry)
{
	struct settings *s = context;
	char *tree = entry->value && gitsettings_judge(entry) == GITSETTINGS_WORKTREE
			     ? expand(s->protector, s->dir, entry->value)
			     : NULL;

	if (tree) {
		free(s->tree);
		s->tree = tree;
	}
	return 0;
}

static int on_setting(void *context, const struct gitconfig_entry *entry)
{
	const struct settings *s = context;
	struct protector *r = s->protector;
	enum gitsettings_kind kind = gitsettings_judge(entry);
	cleanup_free char *path = NULL;
	cleanup_free char *text = NULL;
	int read;

	if (s->repository && kind != GITSETTINGS_HARMLESS) {
		text = gitconfig_format(entry);
		(void)keyrows_list_add(&s->repository->settings, text);
	}
	if (!entry->value || !entry->value[0])
		return 0;
	if (kind == GITSETTINGS_COMMAND)
		return protect_words(s, entry->value);
	if (kind != GITSETTINGS_HOOKS && kind != GITSETTINGS_INCLUDE)
		return 0;
	path = expand(r, kind == GITSETTINGS_HOOKS ? s->tree : s->dir, entry->value);
	if (!path)
		return 0;
	if (protect_path(r, path, s->e) < 0)
		return SETTING_FAILED;
	if (kind != GITSETTINGS_INCLUDE || r->include_depth == GITPROTECT_INCLUDE_DEPTH_MAX)
		return 0;
	r->include_depth++; /* limited, because a file may include itself */
	read = read_settings(r, path, s->tree, NULL, s->e);
	r->include_depth--;
	return read < 0 ? SETTING_FAILED : 0;
}

/* A missing file, or one that is not a plain file, is ignored. */
static int read_settings(struct protector *r, const char *path, const char *tree,
			 struct workspace_repository *repository, struct err *e)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_free char *dir = mem_dup_bytes(path, (size_t)(strrchr(path, '/') - path));
	cleanup_free char *text = NULL;
	struct settings s;
	int parsed;
	struct stat st;
	size_t len = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (++r->file_count > GITPROTECT_FILES_MAX)
		return err_set(e, ERR_LIMIT, "there are more than %u files with settings of git",
			       GITPROTECT_FILES_MAX);
	if (file_read_fd(fd, GITPROTECT_CONFIG_MAX_BYTES, &text, &len) < 0)
		return err_set(e, ERR_LIMIT, "git's settings in '%s' cannot be read", path);
	s = (struct settings){ r, dir[0] ? dir : "/", mem_dup(tree), repository, e };
	(void)gitconfig_parse(text, len, on_tree_setting, &s);
	parsed = gitconfig_parse(text, len, on_setting, &s);
	free(s.tree);
	return parsed == SETTING_FAILED ? -1 : 0;
}

/* ---- repositories ---- */

static int protect_rows(struct protector *r, const struct workspace_place *place, const char *below,
			const struct credential_protected *rows, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		cleanup_free char *name =
			mem_format("%s%s%s", below, below[0] ? "/" : "", rows[i].path);

		if (workspace_protect(r->workspace, r->policy, place, name, &rows[i], e) < 0)
			return -1;
	}
	return 0;
}

/* "a/.git" -> "a"; another git directory: core.worktree decides; a bare one: itself. */
static char *tree_of(const struct workspace *w, const char *path)
{
	size_t len = strlen(path);

	if (strcmp(path, ".git") == 0)
		return mem_dup(w->path);
	if (len > 5 && strcmp(path + len - 5, "/.git") == 0)
		return mem_format("%s/%.*s", w->path, (int)(len - 5), path);
	return mem_format("%s%s%s", w->path, path[0] ? "/" : "", path);
}

static int protect_repository(struct protector *r, const char *path,
			      struct workspace_repository *repository, struct err *e)
{
	struct workspace *w = r->workspace;
	const struct workspace_place place = { w->path, w->dir_fd };
	cleanup_free char *tree = tree_of(w, path);
	cleanup_free char *config = mem_format("%s%s%s/config", w->path, path[0] ? "/" : "", path);
	cleanup_free char *own = mem_format("%s.worktree", config);

	if (protect_rows(r, &place, path, credential_git, credential_git_count, e) < 0)
		return -1;
	return read_settings(r, config, tree, repository, e) < 0 ||
			       read_settings(r, own, tree, repository, e) < 0
		       ? -1
		       : 0;
}

/* Records entry->dir_fd itself, or `name` (".git") in it. */
static int remember(struct workspace *w, const struct workspace_place *place,
		    const struct gitrepos_entry *entry, const char *name,
		    struct workspace_repository **ret, struct err *e)
{
	struct stat st, hooks;

	if (w->repository_count == GITPROTECT_REPOSITORIES_MAX)
		return err_set(e, ERR_LIMIT,
			       "it has more than %u git repositories, and not all of them can be "
			       "protected",
			       GITPROTECT_REPOSITORIES_MAX);
	if (fstatat(entry->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH)) <
	    0)
		return err_sys(e, errno, "look at a git repository");
	*ret = workspace_add_repository(w, place, entry->path, st.st_dev, st.st_ino);
	if (!name[0] && fstatat(entry->dir_fd, "hooks", &hooks, AT_SYMLINK_NOFOLLOW) == 0)
		(*ret)->hooks_inode = hooks.st_ino;
	return 0;
}

/* ".git" is a file: the settings are elsewhere, but may name paths relative to this tree. */
static int protect_linked_tree(struct protector *r, const struct gitrepos_entry *entry,
			       struct err *e)
{
	const char *top = r->workspace->path;
	cleanup_free char *tree = mem_format("%s%s%s", top, entry->path[0] ? "/" : "", entry->path);
	cleanup_free char *text = gitlinks_read_git_file(entry->dir_fd);
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	cleanup_fd int git_fd = text ? openat(entry->dir_fd, text, flags) : -1;
	cleanup_free char *shared = git_fd >= 0 ? gitlinks_read_commondir(git_fd) : NULL;
	cleanup_fd int common_fd = shared ? openat(git_fd, shared, flags) : -1;
	cleanup_free char *real =
		git_fd < 0 ? NULL : hostpath_of(common_fd >= 0 ? common_fd : git_fd);
	cleanup_free char *config = real ? mem_format("%s/config", real) : NULL;

	return config ? read_settings(r, config, tree, NULL, e) : 0;
}

static int on_found(void *context, const struct gitrepos_entry *entry, struct err *e)
{
	struct protector *r = context;
	struct workspace *w = r->workspace;
	const struct workspace_place place = { w->path, w->dir_fd };
	struct workspace_repository *repository = NULL;
	cleanup_free char *git = NULL;

	if (entry->kind == GITREPOS_REPOSITORY)
		return remember(w, &place, entry, "", &repository, e) < 0
			       ? -1
			       : protect_repository(r, entry->path, repository, e);
	if (entry->path[0] && protect_rows(r, &place, entry->path, credential_protected,
					   credential_protected_count, e) < 0)
		return -1;
	if (entry->type == DT_DIR)
		return 0;
	if (remember(w, &place, entry, ".git", &repository, e) < 0)
		return -1;
	if (entry->type != DT_LNK)
		return protect_linked_tree(r, entry, e);
	git = mem_format("%s%s.git", entry->path, entry->path[0] ? "/" : "");
	return protect_repository(r, git, NULL, e);
}

/* ---- outside the workspace ---- */

static int on_found_outside(void *context, const struct gitrepos_entry *entry, struct err *e)
{
	struct protector *r = context;
	const struct workspace_place place = { r->workspace->git_dir, r->workspace->git_fd };

	struct workspace_repository *repository = NULL;
	cleanup_free char *config = mem_format("%s%s%s/config", r->workspace->git_dir,
					       entry->path[0] ? "/" : "", entry->path);
	cleanup_free char *own = mem_format("%s.worktree", config);

	if (entry->kind != GITREPOS_REPOSITORY)
		return 0;
	if (remember(r->workspace, &place, entry, "", &repository, e) < 0 ||
	    protect_rows(r, &place, entry->path, credential_git, credential_git_count, e) < 0)
		return -1;
	return read_settings(r, config, r->workspace->path, repository, e) < 0 ||
			       read_settings(r, own, r->workspace->path, repository, e) < 0
		       ? -1
		       : 0;
}

static int protect_outside(struct protector *r, struct err *e)
{
	struct workspace *w = r->workspace;
	struct gitrepos_result result = { 0 };

	return w->git_dir ? gitrepos_find(w->git_fd, NULL, on_found_outside, r, &result, e) : 0;
}

/* If the workspace is not a repository itself, protects what the one around it names. */
static int protect_around(struct protector *r, struct err *e)
{
	cleanup_free char *dir = mem_dup(r->workspace->path);
	struct stat st;
	char *slash;

	if (fstatat(r->workspace->dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	while ((slash = strrchr(dir, '/')) && slash != dir) {
		cleanup_fd int dir_fd = -1;
		cleanup_free char *git = NULL;
		cleanup_free char *config = NULL;
		cleanup_fd int git_fd = -1;

		*slash = '\0';
		dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd < 0 || fstatat(dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			gitlinks_find_outside(dir_fd, dir, &git, &git_fd);
		config = git ? mem_format("%s/config", git) : mem_format("%s/.git/config", dir);
		return read_settings(r, config, dir, NULL, e);
	}
	return 0;
}

/* The user's and the system's git configuration. These files may be in the workspace themselves. */
static int protect_users(struct protector *r, const char *named, struct err *e)
{
	cleanup_free char *in_home = r->home ? mem_format("%s/.gitconfig", r->home) : NULL;
	cleanup_free char *in_config = r->config_home ? mem_format("%s/git/config", r->config_home)
				       : r->home      ? mem_format("%s/.config/git/config", r->home)
						      : NULL;
	const char *const files[] = { "/etc/gitconfig", named ? named : in_home,
				      named ? NULL : in_config };

	for (size_t i = 0; i < COUNT_OF(files); i++) {
		if (!files[i] || files[i][0] != '/')
			continue;
		if (protect_path(r, files[i], e) < 0 ||
		    read_settings(r, files[i], r->workspace->path, NULL, e) < 0)
			return -1;
	}
	return 0;
}

int gitprotect_run(struct workspace *w, const struct policy *p, const struct ak *ak, struct err *e)
{
	cleanup_free char *real_path = hostpath_of(w->dir_fd);
	struct protector r = {
		.workspace = w,
		.policy = p,
		.home = ak ? environment_get(ak->caller.environ_list, "HOME") : NULL,
		.config_home =
			ak ? environment_get(ak->caller.environ_list, "XDG_CONFIG_HOME") : NULL,
		.real_path = real_path,
	};
	const char *named =
		ak ? environment_get(ak->caller.environ_list, "GIT_CONFIG_GLOBAL") : NULL;
	struct gitrepos_result result = { 0 };

	if (gitrepos_find(w->dir_fd, w->own_state, on_found, &r, &result, e) < 0)
		return err_wrap(e, "'%s'", w->path);
	if (result.is_cut)
		return err_set(e, ERR_LIMIT,
			       "'%s' has more than %u directories: not all git repositories in it "
			       "can be found and protected",
			       w->path, GITREPOS_DIRS_MAX);
	if (protect_outside(&r, e) < 0 || protect_around(&r, e) < 0)
		return -1;
	return protect_users(&r, named, e);
}
