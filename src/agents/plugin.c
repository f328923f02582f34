/*
 * plugin - adds agentkernel to coding agents' settings; see plugin.h.
 *
 * A plan has one item for each file of the requested clients, also if several share it, with its
 * old and new content; apply() changes them all.
 *
 * A file that several clients read is removed with the last of them: it stays as long as one of the
 * others has another file of ours.
 */
#include "agents/plugin.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/path.h"
#include "agents/pluginentry.h"
#include "agents/pluginfile.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MODE 0644
#define NOTHING_CHANGED "nothing was changed"

/* Common to all files of a request. */
struct setting {
	const struct ak *ak;
	enum plugintable_scope scope;
	char *command;  /* that starts this program */
	int project_fd; /* -1: global */
};

static void setting_done(struct setting *s)
{
	free(s->command);
	if (s->project_fd >= 0)
		(void)close(s->project_fd);
	*s = (struct setting){ .project_fd = -1 };
}

struct item {
	const struct plugintable_file *kind;
	struct pluginfile file;
	struct pluginentry_change entry;
	enum plugin_change change;
};

struct plan {
	struct setting setting;
	struct item items[PLUGIN_STEPS_MAX];
	size_t count;
};

static void plan_done(struct plan *p)
{
	for (size_t i = 0; i < p->count; i++) {
		pluginfile_done(&p->items[i].file);
		free(p->items[i].entry.text);
	}
	p->count = 0;
	setting_done(&p->setting);
}

/* ---- the command that starts us ---- */

static bool is_same_file(const char *path, const struct stat *own)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == own->st_dev && st.st_ino == own->st_ino;
}

/* Would a search of PATH for this name find this program? */
static bool is_on_path(const char *name, const struct stat *own, const struct ak *ak)
{
	const char *rest = ak ? environment_get(ak->caller.environ_list, "PATH") : NULL;

	while (rest && *rest) {
		size_t len = strcspn(rest, ":");
		cleanup_free char *path = mem_format("%.*s/%s", (int)len, rest, name);

		/* a relative directory depends on the caller's working directory */
		if (rest[0] == '/' && access(path, X_OK) == 0)
			return is_same_file(path, own);
		rest += len + (rest[len] == ':');
	}
	return false;
}

/* The plain name if PATH finds this program by it, so that settings can be shared; else a path. */
static int find_command(const struct ak *ak, char **ret, struct err *e)
{
	char own[PATH_MAX];
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	if (n < 0 || stat("/proc/self/exe", &st) < 0)
		return err_sys(e, errno, "find this program");
	own[n] = '\0';
	*ret = mem_dup(is_on_path(path_base_name(own), &st, ak) ? path_base_name(own) : own);
	return 0;
}

static int setting_init(struct setting *s, const struct ak *ak, enum plugintable_scope scope,
			struct err *e)
{
	*s = (struct setting){ ak, scope, .project_fd = -1 };
	if (find_command(ak, &s->command, e) < 0)
		return -1;
	if (scope == PLUGINTABLE_GLOBAL)
		return 0;
	s->project_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->project_fd < 0)
		return err_sys(e, errno, "open the working directory");
	return 0;
}

/* ---- paths ---- */

static const char *const *paths_of(const struct plugintable_file *kind,
				   enum plugintable_scope scope)
{
	return scope == PLUGINTABLE_PROJECT ? kind->project : kind->global;
}

/* Returns the full path, and the length of its part that must not be removed. */
static int find_path(const struct setting *s, const struct plugintable_file *kind, const char *path,
		     char **ret, size_t *ret_root_len, struct err *e)
{
	cleanup_free char *home = NULL;

	if (s->scope == PLUGINTABLE_PROJECT) {
		*ret = mem_dup(path);
		*ret_root_len = 0;
		return 0;
	}
	if (plugintable_find_home(kind, s->ak, &home, e) < 0)
		return -1;
	*ret = mem_format("%s/%s", strcmp(home, "/") == 0 ? "" : home, path);
	*ret_root_len = strlen(*ret) - strlen(path) - 1;
	return 0;
}

/* Do two rows mean the same file? Compares the first path, as no shared file has alternatives. */
static bool is_shared(const struct setting *s, const struct plugintable_file *a,
		      const struct plugintable_file *b)
{
	const char *const *first = paths_of(a, s->scope), *const *second = paths_of(b, s->scope);
	cleanup_free char *a_path = NULL;
	cleanup_free char *b_path = NULL;
	struct err ignored = { 0 };
	size_t len = 0;

	return *first && *second && find_path(s, a, *first, &a_path, &len, &ignored) == 0 &&
	       find_path(s, b, *second, &b_path, &len, &ignored) == 0 &&
	       strcmp(a_path, b_path) == 0;
}

static bool is_shared_with(const struct setting *s, const struct plugintable_file *kind,
			   const struct plugintable_client_row *client)
{
	for (size_t i = 0; i < client->count; i++)
		if (is_shared(s, kind, &client->files[i]))
			return true;
	return false;
}

/* ---- reading ---- */

static struct pluginentry_file
entry_of(const struct setting *s, const struct plugintable_file *kind, const struct pluginfile *f)
{
	return (struct pluginentry_file){ kind, s->command, f->path, f->text, f->len, f->is_there };
}

static int read_path(const struct setting *s, const struct plugintable_file *kind, const char *path,
		     struct pluginfile *ret, enum pluginentry_state *ret_state, struct err *e)
{
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
	cleanup_free char *whole = NULL;
	struct pluginentry_file entry;
	size_t root_len = 0;

	if (find_path(s, kind, path, &whole, &root_len, e) < 0 ||
	    pluginfile_read(s->project_fd, whole, root_len, &f, e) < 0)
		return -1;
	entry = entry_of(s, kind, &f);
	if (pluginentry_look(&entry, ret_state, e) < 0)
		return -1;
	*ret = f;
	f = (struct pluginfile){ .dir_fd = -1 };
	return 0;
}

/*
 * Reads the file that matters: of several alternatives, the last with our entry, else the first
 * that exists, else the first.
 */
static int read_file(const struct setting *s, const struct plugintable_file *kind,
		     struct pluginfile *ret, enum pluginentry_state *ret_state, struct err *e)
{
	CLEANUP(pluginfile_done) struct pluginfile best = { .dir_fd = -1 };
	enum pluginentry_state best_state = PLUGINENTRY_ABSENT;

	for (const char *const *path = paths_of(kind, s->scope); *path; path++) {
		enum pluginentry_state state = PLUGINENTRY_ABSENT;
		struct pluginfile f;

		if (read_path(s, kind, *path, &f, &state, e) < 0)
			return -1;
		if (best.path && state == PLUGINENTRY_ABSENT && (best.is_there || !f.is_there)) {
			pluginfile_done(&f);
			continue;
		}
		pluginfile_done(&best);
		best = f;
		best_state = state;
	}
	*ret = best;
	*ret_state = best_state;
	best = (struct pluginfile){ .dir_fd = -1 };
	return 0;
}

/* ---- planning ---- */

static bool is_planned(const struct plan *p, const struct plugintable_file *kind)
{
	for (size_t i = 0; i < p->count; i++)
		if (is_shared(&p->setting, p->items[i].kind, kind))
			return true;
	return false;
}

/* Does the client have another file of ours besides the shared one? */
static bool is_in_use(const struct setting *s, const struct plugintable_client_row *client,
		      const struct plugintable_file *shared)
{
	for (size_t i = 0; i < client->count; i++) {
		const struct plugintable_file *kind = &client->files[i];
		CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
		enum pluginentry_state state = PLUGINENTRY_ABSENT;
		struct err ignored = { 0 };

		if (!is_shared(s, kind, shared) && *paths_of(kind, s->scope) &&
		    read_file(s, kind, &f, &state, &ignored) == 0 && state != PLUGINENTRY_ABSENT)
			return true;
	}
	return false;
}

/* Does a client that is not removed need the file? */
static bool is_kept(const struct setting *s, const struct plugintable_file *kind,
		    unsigned removed_clients)
{
	for (unsigned i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++) {
		const struct plugintable_client_row *client = &plugintable_clients[i];

		if (!(removed_clients & 1u << i) && is_shared_with(s, kind, client) &&
		    is_in_use(s, client, kind))
			return true;
	}
	return false;
}

static unsigned entry_flags(const struct plugin_request *r)
{
	return (r->flags & PLUGIN_FORCE ? PLUGINENTRY_FORCE : 0u) |
	       (r->flags & PLUGIN_APPROVE ? PLUGINENTRY_APPROVE : 0u);
}

typedef int plan_fn(struct plan *p, const struct plugintable_file *kind,
		    const struct plugin_request *r, struct err *e);

static struct item *add_item(struct plan *p, const struct plugintable_file *kind)
{
	struct item *item = &p->items[p->count];

	assert(p->count < PLUGIN_STEPS_MAX);
	*item = (struct item){ .kind = kind, .file.dir_fd = -1 };
	p->count++;
	return item;
}

static int plan_set(struct plan *p, const struct plugintable_file *kind,
		    const struct plugin_request *r, struct err *e)
{
	struct item *item = add_item(p, kind);
	enum pluginentry_state state = PLUGINENTRY_ABSENT;
	struct pluginentry_file f;

	if (read_file(&p->setting, kind, &item->file, &state, e) < 0)
		return -1;
	f = entry_of(&p->setting, kind, &item->file);
	if (pluginentry_set(&f, entry_flags(r), &item->entry, e) < 0)
		return -1;
	if (item->entry.is_change)
		item->change = item->file.is_there ? PLUGIN_CHANGED : PLUGIN_CREATED;
	return 0;
}

static int plan_removal_of(struct plan *p, struct item *item, const struct plugin_request *r,
			   struct err *e)
{
	const struct pluginentry_file f = entry_of(&p->setting, item->kind, &item->file);

	if (is_kept(&p->setting, item->kind, r->clients)) {
		item->change = PLUGIN_KEPT;
		return 0;
	}
	if (pluginentry_remove(&f, entry_flags(r), &item->entry, e) < 0)
		return -1;
	item->change = PLUGIN_CHANGED;
	/* keep an empty settings file behind a link: only the link would be removed */
	if (item->entry.is_empty && !(item->file.is_link && item->entry.text))
		item->change = PLUGIN_REMOVED;
	return 0;
}

/* Removes our entry from every alternative file, since each may have it. */
static int plan_removal(struct plan *p, const struct plugintable_file *kind,
			const struct plugin_request *r, struct err *e)
{
	for (const char *const *path = paths_of(kind, r->scope); *path; path++) {
		enum pluginentry_state state = PLUGINENTRY_ABSENT;
		struct pluginfile f;
		struct item *item;

		if (read_path(&p->setting, kind, *path, &f, &state, e) < 0)
			return -1;
		if (state == PLUGINENTRY_ABSENT) {
			pluginfile_done(&f);
			continue;
		}
		item = add_item(p, kind);
		item->file = f;
		if (plan_removal_of(p, item, r, e) < 0)
			return -1;
	}
	return 0;
}

static int make_plan(struct plan *p, const struct plugin_request *r, plan_fn *plan, struct err *e)
{
	if (setting_init(&p->setting, r->ak, r->scope, e) < 0)
		return -1;
	for (unsigned i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++) {
		const struct plugintable_client_row *client = &plugintable_clients[i];

		for (size_t k = 0; r->clients & 1u << i && k < client->count; k++) {
			const struct plugintable_file *kind = &client->files[k];

			if (*paths_of(kind, r->scope) && !is_planned(p, kind) &&
			    plan(p, kind, r, e) < 0)
				return -1;
		}
	}
	return 0;
}

/* ---- applying ---- */

static bool is_change(const struct item *item)
{
	return item->change != PLUGIN_UNCHANGED && item->change != PLUGIN_KEPT;
}

static int stage(struct item *item, enum plugintable_scope scope, struct err *e)
{
	mode_t own = scope == PLUGINTABLE_GLOBAL ? item->kind->mode : 0;

	if (item->change == PLUGIN_REMOVED)
		return pluginfile_stage_removal(&item->file, e);
	return pluginfile_stage(&item->file, item->entry.text, item->entry.len,
				own ? own : FILE_MODE, e);
}

static int stage_all(struct plan *p, struct err *e)
{
	for (size_t i = 0; i < p->count; i++)
		if (is_change(&p->items[i]) && stage(&p->items[i], p->setting.scope, e) < 0)
			return -1;
	for (size_t i = 0; i < p->count; i++)
		if (is_change(&p->items[i]) && pluginfile_check(&p->items[i].file, e) < 0)
			return -1;
	return 0;
}

static int commit_all(struct plan *p, struct err *e)
{
	for (size_t i = 0; i < p->count; i++)
		if (is_change(&p->items[i]) && pluginfile_commit(&p->items[i].file, e) < 0)
			return -1;
	return 0;
}

static int apply(struct plan *p, struct err *e)
{
	sigset_t all, before;
	int r;

	/* block signals, so that Ctrl-C cannot interrupt between two files */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	r = stage_all(p, e) < 0 ? err_wrap(e, NOTHING_CHANGED) : commit_all(p, e);
	for (size_t i = p->count; r < 0 && i > 0; i--)
		pluginfile_undo(&p->items[i - 1].file);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

static int run(const struct plugin_request *r, plan_fn *plan, struct plugin_report *ret,
	       struct err *e)
{
	CLEANUP(plan_done) struct plan p = { .setting.project_fd = -1 };

	if (make_plan(&p, r, plan, e) < 0)
		return err_wrap(e, NOTHING_CHANGED);
	if (!(r->flags & PLUGIN_DRY) && apply(&p, e) < 0)
		return -1;
	*ret = (struct plugin_report){ .count = p.count };
	for (size_t i = 0; i < p.count; i++)
		ret->steps[i] =
			(struct plugin_step){ take_ptr(p.items[i].file.path), p.items[i].change };
	return 0;
}

int plugin_install(const struct plugin_request *r, struct plugin_report *ret, struct err *e)
{
	return run(r, plan_set, ret, e);
}

int plugin_remove(const struct plugin_request *r, struct plugin_report *ret, struct err *e)
{
	return run(r, plan_removal, ret, e);
}

void plugin_report_done(struct plugin_report *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->steps[i].path);
	*r = (struct plugin_report){ 0 };
}

int plugin_format_snippet(const struct ak *ak, char **ret, struct err *e)
{
	static const struct plugintable_file kind = { .content = PLUGINTABLE_SERVER };
	struct pluginentry_change change = { 0 };
	cleanup_free char *command = NULL;
	struct pluginentry_file f = { .kind = &kind, .path = "", .text = "" };

	if (find_command(ak, &command, e) < 0)
		return -1;
	f.command = command;
	if (pluginentry_set(&f, 0, &change, e) < 0)
		return -1;
	*ret = change.text;
	return 0;
}

/* ---- status ---- */

static void look_at_file(const struct setting *s, const struct plugintable_file *kind,
			 struct plugin_file_status *ret)
{
	static const enum plugin_state states[] = {
		[PLUGINENTRY_ABSENT] = PLUGIN_NOT_INSTALLED,
		[PLUGINENTRY_SAME] = PLUGIN_INSTALLED,
		[PLUGINENTRY_APPROVED] = PLUGIN_INSTALLED,
		[PLUGINENTRY_DIFFERENT] = PLUGIN_DIFFERENT,
	};
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
	enum pluginentry_state state = PLUGINENTRY_ABSENT;
	struct err e = { 0 };
	size_t len = 0;

	if (read_file(s, kind, &f, &state, &e) == 0) {
		ret->path = take_ptr(f.path);
		ret->state = states[state];
		return;
	}
	memcpy(ret->trouble, e.msg, sizeof(ret->trouble));
	ret->state = PLUGIN_UNREADABLE;
	(void)find_path(s, kind, *paths_of(kind, s->scope), &ret->path, &len, &e);
}

static bool is_own(const struct setting *s, const struct plugintable_file *kind,
		   enum plugintable_client client)
{
	for (unsigned i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++)
		if (i != client && is_shared_with(s, kind, &plugintable_clients[i]))
			return false;
	return true;
}

/* A shared file that another client needs does not make this one installed. */
static void sum_up(const struct setting *s, enum plugintable_client client,
		   struct plugin_status *status)
{
	unsigned counts[PLUGIN_STATE_COUNT] = { 0 };
	unsigned own = 0, own_absent = 0;

	for (size_t i = 0; i < status->count; i++) {
		enum plugin_state state = status->files[i].state;

		counts[state]++;
		if (is_own(s, &plugintable_clients[client].files[i], client)) {
			own++;
			own_absent += state == PLUGIN_NOT_INSTALLED;
		}
	}
	if (counts[PLUGIN_UNREADABLE])
		status->state = PLUGIN_UNREADABLE;
	else if (counts[PLUGIN_INSTALLED] == status->count)
		status->state = PLUGIN_INSTALLED;
	else if (counts[PLUGIN_NOT_INSTALLED] == status->count || (own && own_absent == own))
		status->state = PLUGIN_NOT_INSTALLED;
	else
		status->state = PLUGIN_DIFFERENT;
}

void plugin_look(const struct ak *ak, enum plugintable_client client, enum plugintable_scope scope,
		 struct plugin_status *ret)
{
	CLEANUP(setting_done) struct setting s = { .project_fd = -1 };
	const struct plugintable_client_row *row = &plugintable_clients[client];
	struct err e = { 0 };
	bool is_ready = setting_init(&s, ak, scope, &e) == 0;

	*ret = (struct plugin_status){ 0 };
	for (size_t i = 0; i < row->count && *paths_of(&row->files[i], scope); i++) {
		struct plugin_file_status *f = &ret->files[ret->count++];

		if (is_ready) {
			look_at_file(&s, &row->files[i], f);
			continue;
		}
		f->state = PLUGIN_UNREADABLE;
		memcpy(f->trouble, e.msg, sizeof(f->trouble));
	}
	sum_up(&s, client, ret);
}

void plugin_status_done(struct plugin_status *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->files[i].path);
	*s = (struct plugin_status){ 0 };
}
