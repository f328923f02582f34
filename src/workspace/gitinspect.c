/*
 * gitinspect - finds what a sandbox left that git outside would run; see gitinspect.h.
 *
 * Theory of operation. workspace/gitrepos finds the repositories, in the workspace and in the git
 * directory outside that belongs to a linked worktree. A configuration file is parsed as a whole;
 * if it has a harmful setting that was not there at the start, or if its text is ambiguous, it is
 * moved to the quarantine and rewritten with the harmless settings. Every file in "hooks" except
 * samples is a hook. A ".git" file or link and a "commondir" may lead to a directory in the
 * workspace, which is then inspected too, but not outside it; the kernel resolves these paths, we
 * do not interpret their text.
 *
 * A failure in one repository does not stop the inspection: the first failure is returned at the
 * end.
 *
 * An ordinary caller's sandbox may have left directories that only root of its id range can read:
 * if one was met, the whole inspection is repeated as that root (tree/owner).
 */
#include "workspace/gitinspect.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/gitconfig.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/shown.h"
#include "workspace/gitlinks.h"
#include "workspace/gitrepos.h"
#include "workspace/hostpath.h"
#include "tree/owner.h"
#include "workspace/quarantine.h"
#include "workspace/workspace.h"
#include "policy/gitsettings.h"
#include "host/mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define FOLLOW_DEPTH_MAX 8u  /* chain of repositories that lead to others */
#define FOUND_MAX_BYTES 400u /* of the names in one message */

struct inspection {
	const struct workspace *workspace;
	struct quarantine *quarantine;
	struct gitinspect_words *words;
	char *tops[2]; /* real paths of the inspected directories; or NULL */
	unsigned follow_depth;
	bool was_denied;
	struct err failure; /* the first one; code 0: none */
};

/* Findings in one repository. */
struct findings {
	struct inspection *inspection;
	int dir_fd;
	const char *path;                         /* of the repository, relative to the workspace */
	const struct workspace_repository *known; /* existed at the start; NULL: new */
	struct buf names;                         /* "core.fsmonitor, hooks/pre-commit" */
	bool was_moved;                           /* something was moved to the quarantine */
};

static void add_name(struct findings *f, const char *prefix, const char *name)
{
	buf_addf(&f->names, "%s%s%s", f->names.len ? ", " : "", prefix, name);
}

/* Moves an entry of the repository, or of a directory in it, to the quarantine. */
static int move_away(struct findings *f, int dir_fd, const char *name, struct err *e)
{
	cleanup_free char *path = NULL;

	if (quarantine_take(f->inspection->quarantine, dir_fd, name, &path, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	f->was_moved = true;
	return 0;
}

static void tell(struct findings *f)
{
	struct gitinspect_words *w = f->inspection->words;
	cleanup_free char *line = NULL;
	size_t len;

	if (!f->was_moved || f->names.len == 0)
		return;
	line = mem_format("git outside would run what the sandbox left in '%s': %s%s (moved to %s)",
			  f->path[0] ? f->path : ".", buf_text(&f->names),
			  f->names.is_cut ? ", ..." : "", f->inspection->quarantine->path);
	shown_replace(line);
	len = strlen(line);
	if (w->len + len + 2 > sizeof(w->text))
		return;
	memcpy(w->text + w->len, line, len);
	w->len += len;
	w->text[w->len++] = '\n';
	w->text[w->len] = '\0';
}

/* ---- settings ---- */

struct sanitizing {
	struct findings *findings;
	struct gitconfig_writer writer;
	unsigned dropped;
};

/* Is the open file in a directory that the sandbox could write to? */
static bool is_inside(const struct inspection *i, int fd)
{
	cleanup_free char *real = hostpath_of(fd);

	for (size_t n = 0; real && n < COUNT_OF(i->tops); n++)
		if (i->tops[n] && path_is_within(real, i->tops[n]))
			return true;
	return false;
}

/* core.worktree of a submodule: does the tree's own ".git" file lead back to this repository? */
static bool leads_back(const struct findings *f, const char *worktree)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	cleanup_fd int tree_fd = openat(f->dir_fd, worktree, flags);
	cleanup_free char *text = tree_fd < 0 ? NULL : gitlinks_read_git_file(tree_fd);
	cleanup_fd int back_fd = text ? openat(tree_fd, text, flags) : -1;
	struct stat own, back;

	return back_fd >= 0 && is_inside(f->inspection, tree_fd) && fstat(f->dir_fd, &own) == 0 &&
	       fstat(back_fd, &back) == 0 && own.st_dev == back.st_dev && own.st_ino == back.st_ino;
}

static bool is_accepted(const struct findings *f, const struct gitconfig_entry *entry)
{
	enum gitsettings_kind kind = gitsettings_judge(entry);
	cleanup_free char *text = NULL;

	if (kind == GITSETTINGS_HARMLESS)
		return true;
	if (f->known) {
		text = gitconfig_format(entry);
		return keyrows_list_has(f->known->settings, text);
	}
	return kind == GITSETTINGS_WORKTREE && entry->value && leads_back(f, entry->value);
}

static int on_setting(void *context, const struct gitconfig_entry *entry)
{
	struct sanitizing *s = context;
	cleanup_free char *name = NULL;

	if (is_accepted(s->findings, entry)) {
		gitconfig_put(&s->writer, entry);
		return 0;
	}
	name = mem_format("%s%s%s.%s", entry->section, entry->subsection ? "." : "",
			  entry->subsection ? entry->subsection : "", entry->key);
	add_name(s->findings, "", name);
	s->dropped++;
	return 0;
}

/* Replaces the file that was moved away, with its owner and mode. */
static int write_anew(int dir_fd, const char *name, const struct stat *st, const struct buf *text,
		      struct err *e)
{
	cleanup_fd int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return err_sys(e, errno, "write '%s'", name);
	r = file_write_all(fd, text->bytes, text->len);
	if (r < 0)
		return err_sys(e, -r, "write '%s'", name);
	/* an ordinary caller owns the new file already */
	if (geteuid() == 0 && fchown(fd, st->st_uid, st->st_gid) < 0)
		return err_sys(e, errno, "give '%s' to its owner", name);
	if (fchmod(fd, st->st_mode & 0666) < 0)
		return err_sys(e, errno, "set the mode of '%s'", name);
	return 0;
}

static int inspect_settings(struct findings *f, const char *name, struct err *e)
{
	cleanup_fd int fd = openat(f->dir_fd, name, READ_FLAGS);
	cleanup_buf struct buf out;
	struct sanitizing s = { .findings = f, .writer.out = &out };
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct stat st;
	int r = 0, parsed;

	buf_init(&out, 2 * GITINSPECT_FILE_MAX_BYTES);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	f->inspection->was_denied |= fd < 0 && errno == EACCES;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    file_read_fd(fd, GITINSPECT_FILE_MAX_BYTES, &text, &len) < 0) {
		add_name(f, "", name);
		return move_away(f, f->dir_fd, name, e);
	}
	parsed = gitconfig_parse(text, len, on_setting, &s);
	gitconfig_writer_done(&s.writer);
	/* keep the user's file unchanged unless a setting was added */
	if (f->known && s.dropped == 0)
		return 0;
	if (parsed < 0)
		add_name(f, "", name);
	if (s.dropped > 0 || parsed < 0 || !gitconfig_is_plain(text, len)) {
		r = move_away(f, f->dir_fd, name, e);
		if (r == 0)
			r = write_anew(f->dir_fd, name, &st, &out, e);
	}
	return r;
}

/* ---- hooks ---- */

static bool is_sample(const char *name)
{
	size_t len = strlen(name);

	return len > 7 && strcmp(name + len - 7, ".sample") == 0;
}

static void close_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

/* Collects the names first: readdir() may skip or repeat entries while others are moved. */
static int list_hooks(DIR *dir, struct buf *out)
{
	struct dirent *entry;
	unsigned count = 0;

	while ((entry = readdir(dir)) && count <= GITINSPECT_HOOKS_MAX) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    is_sample(entry->d_name))
			continue;
		buf_add(out, entry->d_name, strlen(entry->d_name) + 1);
		count++;
	}
	return (int)count;
}

static int inspect_hooks(struct findings *f, struct err *e)
{
	int fd = openat(f->dir_fd, "hooks", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(close_dir) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	cleanup_buf struct buf names;
	struct stat st;

	buf_init(&names, BUF_TEXT_MAX_BYTES);
	if (!dir) {
		f->inspection->was_denied |= errno == EACCES;
		if (fstatat(f->dir_fd, "hooks", &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		add_name(f, "", "hooks"); /* a link, or unreadable for us */
		return move_away(f, f->dir_fd, "hooks", e);
	}
	if (list_hooks(dir, &names) > (int)GITINSPECT_HOOKS_MAX) {
		add_name(f, "", "hooks");
		return move_away(f, f->dir_fd, "hooks", e);
	}
	for (size_t at = 0; at < names.len; at += strlen(names.bytes + at) + 1) {
		add_name(f, "hooks/", names.bytes + at);
		if (move_away(f, dirfd(dir), names.bytes + at, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- references to other directories ---- */

/* Removes references to object stores outside the workspace: a push could send their content. */
static int inspect_alternates(struct findings *f, struct err *e)
{
	cleanup_fd int objects_fd = openat(f->dir_fd, "objects", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int info_fd =
		objects_fd < 0 ? -1 : mount_open_plain(objects_fd, "info", O_PATH | O_DIRECTORY);
	cleanup_fd int fd = info_fd < 0 ? -1 : openat(info_fd, "alternates", READ_FLAGS);
	cleanup_free char *text = NULL;
	char *rest, *line;
	size_t len = 0;
	bool is_bad;

	if (objects_fd >= 0 && !is_inside(f->inspection, objects_fd)) {
		add_name(f, "", "objects"); /* a link */
		return move_away(f, f->dir_fd, "objects", e);
	}
	if (info_fd < 0 || (fd < 0 && errno != ELOOP))
		return 0;
	is_bad = fd < 0 || file_read_fd(fd, GITINSPECT_FILE_MAX_BYTES, &text, &len) < 0;
	rest = text;
	while (!is_bad && rest && (line = strsep(&rest, "\n"))) {
		cleanup_fd int store_fd = -1;

		if (!line[0] || line[0] == '#')
			continue;
		store_fd = openat(objects_fd, line, O_PATH | O_DIRECTORY | O_CLOEXEC);
		is_bad = store_fd < 0 || !is_inside(f->inspection, store_fd);
	}
	if (!is_bad)
		return 0;
	add_name(f, "", "objects/info/alternates");
	return move_away(f, info_fd, "alternates", e);
}

static int inspect_repository(struct inspection *i, int dir_fd, const char *path, struct err *e);

/* Would git accept this directory as a repository? */
static bool is_repository(int dir_fd)
{
	static const char *const names[] = { "HEAD", "objects", "refs", "commondir" };
	bool has[COUNT_OF(names)];
	struct stat st;

	for (size_t i = 0; i < COUNT_OF(names); i++)
		has[i] = fstatat(dir_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0;
	return has[0] && ((has[1] && has[2]) || has[3]);
}

enum leading { LEADS_TO_REPOSITORY, LEADS_TO_NOTHING, LEADS_ELSEWHERE };

/*
 * Resolves the text of a ".git" file or link, or "commondir", from dir_fd. A repository in the
 * workspace is inspected here, because the walk may not find it by itself.
 */
static int follow(struct findings *f, const char *text, enum leading *ret, struct err *e)
{
	struct inspection *i = f->inspection;
	cleanup_fd int fd = -1;
	int r = 0;

	*ret = LEADS_ELSEWHERE;
	if (!text || i->follow_depth == FOLLOW_DEPTH_MAX)
		return 0;
	fd = openat(f->dir_fd, text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
		*ret = LEADS_TO_NOTHING;
		return 0;
	}
	if (fd < 0 || !is_inside(i, fd))
		return 0;
	*ret = is_repository(fd) ? LEADS_TO_REPOSITORY : LEADS_TO_NOTHING;
	i->follow_depth++;
	if (*ret == LEADS_TO_REPOSITORY)
		r = inspect_repository(i, fd, text, e);
	i->follow_depth--;
	return r;
}

static int inspect_commondir(struct findings *f, struct err *e)
{
	cleanup_free char *text = gitlinks_read_commondir(f->dir_fd);
	enum leading leads = LEADS_TO_REPOSITORY;
	struct stat st;

	if (fstatat(f->dir_fd, "commondir", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (follow(f, text, &leads, e) < 0)
		return -1;
	if (leads == LEADS_TO_REPOSITORY)
		return 0;
	/* git uses settings and objects from there, with or without HEAD */
	add_name(f, "", "commondir");
	return move_away(f, f->dir_fd, "commondir", e);
}

/* ---- repositories ---- */

static const struct workspace_repository *find_known(const struct inspection *i,
						     const struct stat *st)
{
	const struct workspace *w = i->workspace;

	for (unsigned n = 0; n < w->repository_count; n++)
		if (w->repositories[n].device == st->st_dev &&
		    w->repositories[n].inode == st->st_ino)
			return &w->repositories[n];
	return NULL;
}

/* The hooks were read-only inside, unless someone outside replaced the directory. */
static bool has_other_hooks(const struct findings *f)
{
	struct stat st;

	return fstatat(f->dir_fd, "hooks", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino != f->known->hooks_inode;
}

static int inspect_all(struct findings *f, struct err *e)
{
	if (inspect_settings(f, "config", e) < 0 || inspect_settings(f, "config.worktree", e) < 0)
		return -1;
	if (f->known)
		return has_other_hooks(f) ? inspect_hooks(f, e) : 0;
	if (inspect_hooks(f, e) < 0 || inspect_alternates(f, e) < 0)
		return -1;
	return inspect_commondir(f, e);
}

static int inspect_repository(struct inspection *i, int dir_fd, const char *path, struct err *e)
{
	struct findings f = { .inspection = i, .dir_fd = dir_fd, .path = path };
	struct stat st;
	int r;

	if (fstat(dir_fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	f.known = find_known(i, &st);
	buf_init(&f.names, FOUND_MAX_BYTES);
	r = inspect_all(&f, e);
	tell(&f);
	buf_done(&f.names);
	return r;
}

/* Inspects a ".git" that is not a directory but leads to one. */
static int inspect_tree(struct inspection *i, const struct gitrepos_entry *entry, struct err *e)
{
	struct findings f = { .inspection = i, .dir_fd = entry->dir_fd, .path = entry->path };
	cleanup_free char *file = NULL;
	char link[PATH_MAX] = "";
	enum leading leads = LEADS_ELSEWHERE;
	struct stat st;
	int r;

	if (fstatat(entry->dir_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0 || find_known(i, &st))
		return 0;
	if (S_ISLNK(st.st_mode))
		(void)!readlinkat(entry->dir_fd, ".git", link, sizeof(link) - 1);
	else
		file = gitlinks_read_git_file(entry->dir_fd);
	buf_init(&f.names, FOUND_MAX_BYTES);
	r = follow(&f, S_ISLNK(st.st_mode) ? link : file, &leads, e);
	if (r == 0 && leads == LEADS_ELSEWHERE) {
		add_name(&f, "", ".git");
		r = move_away(&f, f.dir_fd, ".git", e);
	}
	tell(&f);
	buf_done(&f.names);
	return r;
}

/* Records a failure and continues with the next repository. */
static int on_found(void *context, const struct gitrepos_entry *entry, struct err *e)
{
	struct inspection *i = context;
	int r;

	if (entry->kind == GITREPOS_TREE)
		r = entry->type == DT_DIR ? 0 : inspect_tree(i, entry, e);
	else
		r = inspect_repository(i, entry->dir_fd, entry->path, e);
	if (r < 0) {
		i->was_denied |= e->sys == EACCES || e->sys == EPERM;
		if (i->failure.code == ERR_NONE)
			i->failure = *e;
	}
	return 0;
}

static int inspect(void *context, struct err *e)
{
	struct inspection *i = context;
	const struct workspace *w = i->workspace;
	const int fds[] = { w->dir_fd, w->git_fd };

	i->failure.code = ERR_NONE;
	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		struct gitrepos_result result = { 0 };

		if (fds[n] < 0)
			continue;
		if (gitrepos_find(fds[n], n == 0 ? w->own_state : NULL, on_found, i, &result, e) <
		    0)
			return -1;
		i->was_denied |= result.was_denied;
		if (result.is_cut && i->failure.code == ERR_NONE)
			(void)err_set(&i->failure, ERR_LIMIT,
				      "there are more than %u directories, or too many in one",
				      GITREPOS_DIRS_MAX);
	}
	if (i->failure.code != ERR_NONE) {
		*e = i->failure;
		return -1;
	}
	return 0;
}

int gitinspect_run(const struct workspace *w, struct quarantine *q, struct gitinspect_words *ret,
		   struct err *e)
{
	struct inspection i = { .workspace = w, .quarantine = q, .words = ret };
	int r;

	i.tops[0] = hostpath_of(w->dir_fd);
	i.tops[1] = w->git_fd >= 0 ? hostpath_of(w->git_fd) : NULL;
	r = inspect(&i, e);
	if (i.was_denied)
		r = owner_run(inspect, &i, ret, sizeof(*ret), e);
	free(i.tops[0]);
	free(i.tops[1]);
	return r;
}
