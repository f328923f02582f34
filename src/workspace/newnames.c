/*
 * newnames - handles protected names that appear in a workspace; see newnames.h.
 *
 * Theory of operation. A watch is put on the deepest directory on the way to each name, and further
 * down as directories on the way appear; directories that were there at the start cannot be moved
 * aside (workspace/workspace pins them), later ones may, so every event makes us look at the whole
 * way again. A symbolic link on the way is moved like the name itself: whoever follows it would
 * find the name elsewhere.
 *
 * Hostile input: all names, and how fast they appear. The kernel's queue bounds the events to read;
 * if it overflows, all names are checked.
 */
#include "workspace/newnames.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fdpass.h"
#include "base/file.h"
#include "base/gitconfig.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/shown.h"
#include "state/audit.h"
#include "tree/beneath.h"
#include "workspace/gitinspect.h"
#include "workspace/workspace.h"
#include "policy/gitsettings.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVENTS_BYTES 16384
#define LOCK_SUFFIX ".lock"
#define READS_MAX 16u /* reads in a row */

void newnames_init(struct newnames *n)
{
	*n = (struct newnames){ .inotify_fd = -1 };
	quarantine_init(&n->quarantine, NULL);
}

void newnames_done(struct newnames *n)
{
	for (unsigned i = 0; i < n->file_count; i++) {
		free(n->files[i].path);
		keyrows_list_free(&n->files[i].accepted);
	}
	free(n->files);
	keyrows_list_free(&n->notices);
	quarantine_done(&n->quarantine);
	fdpass_close_later(&n->inotify_fd);
	newnames_init(n);
}

/* Takes ownership of `text`. */
static void add_notice(struct newnames *n, char *text)
{
	const struct audit_event event = {
		.type = AUDITLINE_PROTECTED,
		.sandbox = n->sandbox,
		.what = text,
	};

	shown_replace(text);
	if (keyrows_list_count(n->notices) < NEWNAMES_NOTICES_MAX) {
		(void)keyrows_list_add(&n->notices, text);
		(void)audit_write(n->quarantine.ak, &event);
	}
	free(text);
}

/* Returns the watch, or -1: then the directory is checked periodically. */
static int watch(struct newnames *n, int dir_fd, uint32_t more)
{
	char link[32];
	int wd;

	if (n->inotify_fd < 0)
		return -1;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	wd = inotify_add_watch(n->inotify_fd, link,
			       IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_MASK_ADD | more);
	if (wd < 0) /* the account has no watch left, or no memory */
		fdpass_close_later(&n->inotify_fd);
	return wd;
}

/* Starts before the first check, so that no name can appear in between. */
static void begin_watching(struct newnames *n)
{
	if (!n->has_begun)
		n->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	n->has_begun = true;
}

/* ---- names ---- */

static int count_burst(struct newnames *n, const char *name, struct err *e)
{
	uint64_t now_ms = clock_now_ms();

	if (n->is_over) /* nothing runs that could create names */
		return 0;
	if (now_ms - n->burst_from_ms > NEWNAMES_BURST_MS) {
		n->burst_from_ms = now_ms;
		n->burst_count = 0;
	}
	if (++n->burst_count <= NEWNAMES_BURST_MAX)
		return 0;
	return err_set(e, ERR_DENIED,
		       "the sandbox made protected names like '%.100s' again and again, and was "
		       "ended (--unprotect allows one)",
		       name);
}

static bool was_told(const struct newnames *n, const char *start)
{
	for (char **text = n->notices; text && *text; text++)
		if (strncmp(*text, start, strlen(start)) == 0)
			return true;
	return false;
}

/* dir_fd/part is `name` or one of its parents. */
static int take(struct newnames *n, int dir_fd, const char *part, const char *name, struct err *e)
{
	cleanup_free char *kept_at = NULL;
	cleanup_free char *start = mem_format("'%s' was moved", name);

	if (quarantine_take(&n->quarantine, dir_fd, part, &kept_at, e) < 0) {
		if (e->code == ERR_NOT_FOUND)
			return 0;
		return err_wrap(e, "'%s' appeared in the workspace and cannot be moved away", name);
	}
	if (!was_told(n, start))
		add_notice(n, mem_format("%s to %s, since programs outside would obey it (add "
					 "--unprotect %s to keep it)",
					 start, kept_at, name));
	return count_burst(n, name, e);
}

/* Checks from dir_fd, the deepest directory that existed at the start, which is watched. */
static int look_below(struct newnames *n, int dir_fd, const struct workspace_absent *a,
		      struct err *e)
{
	const char *rest = a->name + a->dir_len + (a->dir_len ? 1 : 0);
	cleanup_fd int next_fd = -1;

	for (;;) {
		size_t len = strcspn(rest, "/");
		cleanup_free char *part = mem_dup_bytes(rest, len);
		struct stat st;
		int fd;

		if (fstatat(dir_fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		if (rest[len] == '\0' || S_ISLNK(st.st_mode))
			return take(n, dir_fd, part, a->name, e);
		fd = openat(dir_fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return 0;
		cleanup_closep(&next_fd);
		dir_fd = next_fd = fd;
		(void)watch(n, dir_fd, 0); /* before the check: later changes cause an event */
		rest += len + 1;
	}
}

static bool is_same_dir(const struct workspace_absent *a, const struct workspace_absent *b)
{
	return a->place_fd == b->place_fd && a->dir_len == b->dir_len &&
	       strncmp(a->name, b->name, a->dir_len) == 0;
}

/* Names of one directory are adjacent, so each directory is opened and watched once. */
static int look_at_all(struct newnames *n, struct err *e)
{
	const struct workspace *w = n->workspace;
	cleanup_fd int own_fd = -1;
	int dir_fd = -1;

	for (unsigned i = 0; i < w->absent_count; i++) {
		const struct workspace_absent *a = &w->absent[i];

		if (i == 0 || !is_same_dir(a, &w->absent[i - 1])) {
			cleanup_free char *start = mem_format("%.*s/_", (int)a->dir_len, a->name);

			cleanup_closep(&own_fd);
			if (a->dir_len > 0)
				own_fd = beneath_open_parent(a->place_fd, start);
			dir_fd = a->dir_len > 0 ? own_fd : a->place_fd;
			if (dir_fd >= 0)
				(void)watch(n, dir_fd, 0);
		}
		if (dir_fd >= 0 && look_below(n, dir_fd, a, e) < 0)
			return -1;
	}
	return 0;
}

/* Is it one of the missing components of the name? */
static bool is_part(const struct workspace_absent *a, const char *part)
{
	const char *rest = a->name + a->dir_len + (a->dir_len ? 1 : 0);
	size_t len = strlen(part);

	for (; rest; rest = strchr(rest, '/') ? strchr(rest, '/') + 1 : NULL)
		if (strncmp(rest, part, len) == 0 && (rest[len] == '/' || rest[len] == '\0'))
			return true;
	return false;
}

/* ---- git's settings ---- */

/* Inode numbers are reused: the change time tells two files apart. */
static struct newnames_version version_of(const struct newnames_file *f)
{
	struct stat st;

	if (fstatat(f->place_fd, f->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (struct newnames_version){ 0 };
	return (struct newnames_version){ st.st_ino, st.st_ctim };
}

static bool is_unchanged(const struct newnames_file *f)
{
	struct newnames_version now = version_of(f);

	return now.inode == f->version.inode && now.changed.tv_sec == f->version.changed.tv_sec &&
	       now.changed.tv_nsec == f->version.changed.tv_nsec;
}

struct reading {
	struct newnames_file *file;
	struct gitconfig_writer writer; /* .out is NULL for accepting all settings */
	unsigned dropped;
};

static int on_setting(void *context, const struct gitconfig_entry *entry)
{
	struct reading *r = context;
	cleanup_free char *text = gitconfig_format(entry);
	bool is_good = gitsettings_judge(entry) == GITSETTINGS_HARMLESS;

	if (!r->writer.out) {
		if (!is_good)
			(void)keyrows_list_add(&r->file->accepted, text);
		return 0;
	}
	if (is_good || keyrows_list_has(r->file->accepted, text))
		gitconfig_put(&r->writer, entry);
	else
		r->dropped++;
	return 0;
}

/* 0: parsed; -1: unreadable, or git would refuse it. */
static int read_file(struct newnames_file *f, struct reading *r)
{
	cleanup_fd int fd = openat(f->place_fd, f->path,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	cleanup_free char *text = NULL;
	size_t len = 0;
	int parsed;

	if (fd < 0 || file_read_fd(fd, GITINSPECT_FILE_MAX_BYTES, &text, &len) < 0)
		return -1;
	parsed = gitconfig_parse(text, len, on_setting, r);
	gitconfig_writer_done(&r->writer);
	return parsed < 0 ? -1 : 0;
}

/*
 * Someone outside replaced the file, and the read-only mount vanished with the old one: now the
 * sandbox can write it, and we cannot tell whose settings these are. So harmful settings that did
 * not exist at the start are removed.
 */
static int clean_file(struct newnames *n, struct newnames_file *f, struct err *e)
{
	const char *name = path_base_name(f->path);
	cleanup_buf struct buf out;
	struct reading r = { .file = f, .writer.out = &out };
	cleanup_fd int dir_fd = beneath_open_parent(f->place_fd, f->path);
	cleanup_free char *kept_at = NULL;
	cleanup_fd int fd = -1;
	struct stat st;
	int wrote;

	buf_init(&out, 2 * GITINSPECT_FILE_MAX_BYTES);
	if (dir_fd < 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (read_file(f, &r) == 0 && r.dropped == 0))
		return 0;
	if (quarantine_take(&n->quarantine, dir_fd, name, &kept_at, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	add_notice(n, mem_format("'%s' was changed while the sandbox ran, and nobody can tell by "
				 "whom: settings that git would run and that were not there before "
				 "were taken out (all of them are in %s)",
				 f->path, kept_at));
	if (count_burst(n, f->path, e) < 0)
		return -1;
	fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	wrote = fd < 0 ? -errno : file_write_all(fd, out.bytes, out.len);
	if (wrote < 0 || fchmod(fd, st.st_mode & 0666) < 0 ||
	    (geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0))
		return err_sys(e, wrote < 0 ? -wrote : errno, "write '%s'", f->path);
	return 0;
}

static int look_at_file(struct newnames *n, struct newnames_file *f, struct err *e)
{
	if (is_unchanged(f))
		return 0;
	f->was_replaced = true;
	/* .gitmodules is a project file that git runs nothing from: a checkout may replace it */
	return strcmp(path_base_name(f->path), "config") == 0 ? clean_file(n, f, e) : 0;
}

static void tell_refusal(struct newnames *n, const struct newnames_file *f)
{
	if (f->has_lock_been_made && !f->was_replaced && is_unchanged(f))
		add_notice(n, mem_format("git could not change '%s' in the sandbox, since git "
					 "outside obeys it (add --unprotect %s to let it)",
					 f->path, f->path));
}

/* Protected files that git writes as "NAME.lock" and then renames. */
static bool is_settings(const struct rootspec_guard *g)
{
	const char *name = path_base_name(g->name);

	return g->care == ROOTSPEC_PROTECTED &&
	       (strcmp(name, "config") == 0 || strcmp(name, ".gitmodules") == 0);
}

/* Watches git's settings from the start, because a refused change is only visible as an event. */
static void add_files(struct newnames *n)
{
	const struct workspace *w = n->workspace;

	for (unsigned i = 0; i < w->guard_count && n->file_count < NEWNAMES_FILES_MAX; i++) {
		const struct rootspec_guard *g = &w->guards[i];
		struct newnames_file f = { .place_fd = strcmp(g->target, w->path) == 0
							       ? w->dir_fd
							       : w->git_fd };
		cleanup_fd int dir_fd = -1;

		if (!is_settings(g))
			continue;
		begin_watching(n);
		f.path = mem_dup(g->name);
		f.version = version_of(&f);
		(void)read_file(&f, &(struct reading){ .file = &f });
		dir_fd = beneath_open_parent(f.place_fd, f.path);
		f.wd = dir_fd < 0 ? -1 : watch(n, dir_fd, IN_CLOSE_WRITE);
		n->files = mem_grow(n->files, n->file_count + 1, sizeof(*n->files));
		n->files[n->file_count++] = f;
	}
}

/* ---- events ---- */

/* Returns 1 if a name may have appeared. */
static int on_event(struct newnames *n, const struct inotify_event *event, struct err *e)
{
	for (unsigned i = 0; i < n->file_count; i++) {
		struct newnames_file *f = &n->files[i];
		const char *name = path_base_name(f->path);
		size_t len = strlen(name);

		if (f->wd != event->wd || strncmp(event->name, name, len) != 0)
			continue;
		if (strcmp(event->name + len, LOCK_SUFFIX) == 0)
			f->has_lock_been_made = true;
		if (event->name[len] == '\0' && look_at_file(n, f, e) < 0)
			return -1;
	}
	if (!(event->mask & (IN_CREATE | IN_MOVED_TO)))
		return 0;
	for (unsigned i = 0; i < n->workspace->absent_count; i++)
		if (is_part(&n->workspace->absent[i], event->name))
			return 1;
	return 0;
}

static int look_at_files(struct newnames *n, struct err *e)
{
	for (unsigned i = 0; i < n->file_count; i++)
		if (look_at_file(n, &n->files[i], e) < 0)
			return -1;
	return 0;
}

/*
 * Reads a bounded number of events. 0: no name can have appeared since the last check; 1: the names
 * have to be checked.
 */
static int read_events(struct newnames *n, struct err *e)
{
	char events[EVENTS_BYTES] __attribute__((aligned(8)));
	int result = 0;

	for (unsigned i = 0; n->inotify_fd >= 0; i++) {
		ssize_t len = i < READS_MAX ? read(n->inotify_fd, events, sizeof(events)) : 0;

		if (len <= 0)
			return len < 0 && errno == EAGAIN ? result : 1;
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *event = (const void *)(events + at);
			int r = event->mask & IN_Q_OVERFLOW ? 1
				: event->len                ? on_event(n, event, e)
							    : 0;

			if (r < 0)
				return -1;
			result |= r;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return 1;
}

/*
 * Checking many names takes time, and a sandbox can trigger checks constantly: so the next check
 * starts no earlier than after four times the duration of this one.
 */
int newnames_look(struct newnames *n, struct err *e)
{
	uint64_t begin_ms = clock_now_ms();
	int r;

	if (!n->workspace)
		return 0;
	r = read_events(n, e);
	n->has_to_look |= r != 0; /* after a failure too: the events are lost */
	if (r < 0)
		return -1;
	if (!n->has_to_look || begin_ms < n->look_at_ms)
		return 0;
	n->has_to_look = false;
	begin_watching(n);
	r = look_at_files(n, e) < 0 ? -1 : look_at_all(n, e);
	n->has_to_look = r < 0; /* names after the failed one were not checked */
	n->look_at_ms = clock_now_ms() + 4 * (clock_now_ms() - begin_ms);
	return r;
}

/* ---- beginning and end ---- */

int newnames_open(struct newnames *n, const struct policy *p, const struct workspace *w,
		  const struct ak *ak, const char *sandbox, struct err *e)
{
	newnames_init(n);
	if (!w->path || p->is_clone)
		return 0;
	n->workspace = w;
	n->sandbox = sandbox;
	quarantine_init(&n->quarantine, ak);
	add_files(n);
	if (n->has_begun) /* names that another sandbox created since the workspace was scanned */
		return look_at_all(n, e);
	n->has_to_look = true;
	n->look_at_ms = clock_now_ms() + NEWNAMES_BEGIN_MS;
	return 0;
}

int newnames_poll_fd(const struct newnames *n)
{
	/* no reads before the next check: the kernel's queue may overflow, which it reports */
	return n->workspace && (!n->has_to_look || clock_now_ms() >= n->look_at_ms) ? n->inotify_fd
										    : -1;
}

int newnames_wait_ms(const struct newnames *n)
{
	uint64_t now_ms = clock_now_ms();

	if (!n->workspace)
		return -1;
	if (n->has_to_look)
		return n->look_at_ms > now_ms ? (int)(n->look_at_ms - now_ms) : 0;
	return n->inotify_fd < 0 ? NEWNAMES_LOOK_MS : -1;
}

static void take_words(struct newnames *n, char *text)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (line[0])
			add_notice(n, mem_dup(line));
}

/* Runs every step even if one before failed, and returns the first failure. */
int newnames_inspect(struct newnames *n, struct err *e)
{
	struct gitinspect_words words;
	struct err last = { 0 };
	int r, looked;

	if (!n->workspace)
		return 0;
	n->is_over = true;
	r = read_events(n, e);
	looked = look_at_files(n, r < 0 ? &last : e);
	if ((r != 0 || n->has_to_look) && look_at_all(n, r < 0 || looked < 0 ? &last : e) < 0)
		looked = -1;
	n->has_to_look = false;
	words.text[0] = '\0';
	words.len = 0;
	if (gitinspect_run(n->workspace, &n->quarantine, &words, r < 0 || looked < 0 ? &last : e) <
	    0)
		r = -1;
	take_words(n, words.text);
	quarantine_settle(&n->quarantine);
	for (unsigned i = 0; i < n->file_count; i++) {
		tell_refusal(n, &n->files[i]);
		n->files[i].has_lock_been_made = false;
	}
	n->is_over = false;
	return r < 0 || looked < 0 ? -1 : 0;
}

void newnames_conclude(struct newnames *n)
{
	struct err e = { 0 };
	cleanup_free char *text = NULL;

	if (newnames_inspect(n, &e) == 0)
		return;
	text = mem_format("the workspace could not be looked through for what git outside would "
			  "run: %s",
			  e.msg);
	(void)keyrows_list_add(&n->notices, text);
}
