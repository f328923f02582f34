/* workersandbox - named sandboxes for programs: their lives, figures and checkpoints. */
#include "cli/worker.h"
#include "cli/ending.h"

#include "base/keyrows.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/pickimage.h"
#include "cli/sandboxview.h"
#include "named/checkpoint.h"
#include "engine/images.h"
#include "named/lifecycle.h"
#include "named/tasks.h"

#include <stdio.h>
#include <string.h>

/* What a sandbox is now, and what was done. */
static int add_state(const struct worker *w, const char *name, const char *note, struct json *j,
		     struct err *e)
{
	CLEANUP(lifecycle_entry_done) struct lifecycle_entry entry = { 0 };

	if (lifecycle_info(w->ak, name, &entry, e) < 0)
		return -1;
	json_add_text(j, "name", name);
	json_add_text(j, "state", named_state_word(entry.state));
	json_add_text(j, "note", note);
	json_open_object(j, "sandbox");
	sandboxview_add_members(j, &entry);
	json_close_object(j);
	return 0;
}

static bool is_running(const struct worker *w, const char *name)
{
	CLEANUP(lifecycle_entry_done) struct lifecycle_entry entry = { 0 };
	struct err ignored;

	return lifecycle_info(w->ak, name, &entry, &ignored) == 0 && entry.state == NAMED_RUNNING;
}

/* Also where it is paused. */
static bool is_up(const struct worker *w, const char *name)
{
	struct err ignored;
	bool is_up = false;

	return lifecycle_is_running(w->ak, name, &is_up, &ignored) == 0 && is_up;
}

static int make(struct worker *w, const char *name, struct err *e)
{
	CLEANUP(images_done) struct images image;
	CLEANUP(named_done) struct named n;
	cleanup_free char **labels = worker_list(w, "labels");
	struct lifecycle_request q = {
		.ak = w->ak,
		.name = name,
		.policy = &w->ceiling.policy,
		.labels = labels,
		.ttl_ms = worker_number(w, "ttl_ms", 0),
		.init = request_init(&w->ceiling),
	};
	struct err ignored;

	images_init(&image);
	named_init(&n);
	if (pickimage_open(&w->ceiling, NULL, &image, e) < 0)
		return -1;
	q.image = image.lock_fd >= 0 ? &image : NULL;
	if (lifecycle_create(&q, &n, e) < 0)
		return -1;
	if (lifecycle_start_locked(w->ak, &n, e) == 0)
		return 0;
	named_unlock(&n);
	(void)!lifecycle_remove(w->ak, name, LIFECYCLE_FORCE, &ignored);
	return -1;
}

int workersandbox_create(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");

	if (named_check_name(name, e) < 0 || worker_resolve(w, NULL, e) < 0)
		return -1;
	policy_done(&w->ceiling.policy);
	w->ceiling.policy = w->policy;
	w->policy = (struct policy){ 0 };
	w->ceiling.flags.is_json = true;
	if (worker_text(w, "image"))
		w->ceiling.is_image_detected = false;
	if (make(w, name, e) < 0)
		return -1;
	return add_state(w, name, "created and started", j, e);
}

/* One whose record cannot be read belongs to nobody's key. */
static bool is_shown(const struct worker *w, const struct lifecycle_entry *entry)
{
	return named_is_visible(w->ak, entry->trouble[0] ? NULL : entry->named.owner);
}

int workersandbox_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(lifecycle_list_done) struct lifecycle_list list = { 0 };

	if (lifecycle_list(w->ak, &list, e) < 0)
		return -1;
	json_open_array(j, "sandboxes");
	for (size_t i = 0; i < list.count; i++)
		if (is_shown(w, &list.entries[i]) &&
		    (!worker_flag(w, "running") || list.entries[i].state == NAMED_RUNNING))
			sandboxview_add_object(j, &list.entries[i]);
	json_close_array(j);
	lifecycle_sweep_expired(w->ak, &list);
	return 0;
}

int workersandbox_remove(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");

	bool is_there = true;

	if (worker_check_sandbox(w, name, WORKER_ENDS_IT, e) < 0) {
		is_there = e->code != ERR_NOT_FOUND;
		if (is_there && e->code != ERR_CORRUPT)
			return -1;
	}
	/* one that is not there is fine, and so is one that is not there for this caller */
	if (is_there && lifecycle_remove(w->ak, name, LIFECYCLE_FORCE, e) < 0)
		return -1;
	json_add_text(j, "name", name);
	json_add_text(j, "state", "removed");
	json_add_text(j, "note", "it is gone");
	return 0;
}

int workersandbox_start(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	const char *note = "it runs already";

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0)
		return -1;
	if (!is_running(w, name)) {
		if (worker_need_running(w, name, e) < 0)
			return -1;
		note = "started";
	}
	return add_state(w, name, note, j, e);
}

/* What became of the workspace, for the caller's notes. */
static void tell_notices(const struct worker *w, const char *name)
{
	char **notices = lifecycle_take_notices(w->ak, name);

	ending_tell_notices(notices);
	keyrows_list_free(&notices);
}

int workersandbox_stop(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	const char *note = "it does not run";

	if (worker_check_sandbox(w, name, WORKER_ENDS_IT, e) < 0)
		return -1;
	if (is_up(w, name)) {
		if (lifecycle_stop(w->ak, name, LIFECYCLE_STOP_DEFAULT_MS,
				   worker_flag(w, "force") ? LIFECYCLE_FORCE : 0, e) < 0)
			return -1;
		tell_notices(w, name);
		note = "stopped; its files stay";
	}
	return add_state(w, name, note, j, e);
}

/* Also the other way round: a pause that has been ended already is fine. */
static int move(const struct worker *w, enum named_state wanted,
		int (*fn)(const struct ak *ak, const char *name, struct err *e), const char *done,
		const char *already, struct json *j, struct err *e)
{
	CLEANUP(lifecycle_entry_done) struct lifecycle_entry entry = { 0 };
	const char *name = worker_text(w, "name");

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    lifecycle_info(w->ak, name, &entry, e) < 0)
		return -1;
	if (entry.state == wanted)
		return add_state(w, name, already, j, e);
	if (fn(w->ak, name, e) < 0)
		return -1;
	return add_state(w, name, done, j, e);
}

int workersandbox_pause(struct worker *w, struct json *j, struct err *e)
{
	return move(w, NAMED_PAUSED, lifecycle_pause, "paused", "it is paused already", j, e);
}

int workersandbox_resume(struct worker *w, struct json *j, struct err *e)
{
	return move(w, NAMED_RUNNING, lifecycle_resume, "resumed", "it is not paused", j, e);
}

int workersandbox_stats(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	struct control_stats stats;

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    tasks_stats(w->ak, name, &stats, e) < 0)
		return -1;
	json_add_text(j, "name", name);
	sandboxview_add_figures(j, &stats);
	return 0;
}

int workersandbox_checkpoint(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(checkpoint_done) struct checkpoint made = { 0 };
	struct checkpoint_timing timing = { 0 };
	const char *name = worker_text(w, "name");

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    checkpoint_create(w->ak, name, worker_text(w, "comment"), &made, &timing, e) < 0)
		return -1;
	json_add_text(j, "id", made.id);
	json_add_text(j, "name", name);
	json_add_number(j, "bytes", (int64_t)made.bytes);
	return 0;
}

/*
 * By its id, or by a comment that no other has; a text in the form of an id is never a comment: who
 * may comment could choose it. `sandbox` NULL: of any; else of the very one, by its id: what
 * another of the same name had on its disk is not for this one to see. NULL: none, and `e`.
 */
static const struct checkpoint *pick_checkpoint(const struct worker *w,
						const struct checkpoint_list *list,
						const char *text, const struct named *sandbox,
						struct err *e)
{
	const struct checkpoint *found = NULL;
	bool is_by_id = checkpoint_is_id(text);

	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *c = &list->entries[i];
		const char *own = is_by_id ? c->id : c->comment;

		if (!own || strcmp(own, text) != 0 || !named_is_visible(w->ak, c->owner) ||
		    (sandbox && (!c->sandbox_id || strcmp(c->sandbox_id, sandbox->id) != 0)))
			continue;
		if (found) {
			(void)err_set(e, ERR_INVALID,
				      "several checkpoints have the comment '%s': use an id", text);
			return NULL;
		}
		found = c;
	}
	if (!found)
		(void)err_set(e, ERR_NOT_FOUND, "no checkpoint '%s'", text);
	return found;
}

static int find_checkpoint(const struct worker *w, const char *text, const char *name,
			   char ret[CHECKPOINT_ID_BYTES + 1], struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	CLEANUP(named_done) struct named n;
	const struct checkpoint *c;

	named_init(&n);
	if (checkpoint_list(w->ak, NULL, &list, e) < 0 ||
	    (name && named_open(w->ak, name, &n, e) < 0))
		return -1;
	c = pick_checkpoint(w, &list, text, name ? &n : NULL, e);
	/* going back to one of its own raises nothing: the sandbox keeps its policy */
	if (!c || (!name && worker_check_checkpoint(w, c, e) < 0))
		return -1;
	(void)snprintf(ret, CHECKPOINT_ID_BYTES + 1, "%s", c->id);
	return 0;
}

/* The policy of a sandbox does not come from its checkpoints: it stays as it is. */
int workersandbox_restore(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	char id[CHECKPOINT_ID_BYTES + 1];
	bool was_running;

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    find_checkpoint(w, worker_text(w, "id"), name, id, e) < 0)
		return -1;
	if (checkpoint_restore(w->ak, name, id, &was_running, e) < 0)
		return -1;
	return add_state(w, name, "put back to the checkpoint", j, e);
}

int workersandbox_fork(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name"), *new_name = worker_text(w, "new_name");

	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    named_check_name(new_name, e) < 0 || checkpoint_fork(w->ak, name, new_name, 0, e) < 0)
		return -1;
	return add_state(w, new_name, "forked", j, e);
}

/* ---- for programs over HTTP ---- */

int workersandbox_info(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(lifecycle_list_done) struct lifecycle_list list = { 0 };
	const char *name = worker_text(w, "name"), *id = worker_text(w, "uuid");

	if (lifecycle_list(w->ak, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct lifecycle_entry *entry = &list.entries[i];

		if (!is_shown(w, entry) || (name && strcmp(entry->named.name, name) != 0) ||
		    (id && strcmp(entry->named.id, id) != 0))
			continue;
		json_open_object(j, "sandbox");
		sandboxview_add_members(j, entry);
		json_close_object(j);
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "no sandbox '%s'", name ? name : id ? id : "");
}

int workersandbox_extend(struct worker *w, struct json *j, struct err *e)
{
	const char *name = worker_text(w, "name");
	uint64_t by_ms = 0, expires_s = 0;

	if (parse_duration_ms(worker_text(w, "by"), NAMED_TTL_MIN_MS, NAMED_TTL_MAX_MS, &by_ms, e) <
	    0)
		return err_wrap(e, "by");
	if (worker_check_sandbox(w, name, WORKER_USES_IT, e) < 0 ||
	    lifecycle_extend(w->ak, name, by_ms, &expires_s, e) < 0)
		return -1;
	json_add_number(j, "expires", (int64_t)expires_s);
	return 0;
}

static void add_checkpoint(struct json *j, const struct checkpoint *c)
{
	json_open_object(j, NULL);
	json_add_text(j, "id", c->id);
	json_add_text(j, "sandbox", c->sandbox);
	json_add_text(j, "comment", c->comment);
	json_add_text(j, "image", c->image);
	json_add_number(j, "created", (int64_t)c->created_s);
	json_add_number(j, "bytes", (int64_t)c->bytes);
	json_close_object(j);
}

int workersandbox_checkpoint_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	const char *text = worker_text(w, "id"), *name = worker_text(w, "name");
	const struct checkpoint *only = NULL;

	if (checkpoint_list(w->ak, name, &list, e) < 0)
		return -1;
	if (text) {
		only = pick_checkpoint(w, &list, text, NULL, e);
		if (!only)
			return -1;
	}
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++)
		if (named_is_visible(w->ak, list.entries[i].owner) &&
		    (!only || only == &list.entries[i]))
			add_checkpoint(j, &list.entries[i]);
	json_close_array(j);
	return 0;
}

int workersandbox_checkpoint_remove(struct worker *w, struct json *j, struct err *e)
{
	char id[CHECKPOINT_ID_BYTES + 1];

	if (find_checkpoint(w, worker_text(w, "id"), NULL, id, e) < 0 ||
	    checkpoint_remove(w->ak, id, e) < 0)
		return -1;
	json_add_text(j, "note", "it is gone");
	return 0;
}
