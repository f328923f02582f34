/* workersandbox - operations on named sandboxes and their checkpoints. */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "ops/op_checkpoint.h"
#include "ops/op_sandbox.h"
#include "ops/sandboxview.h"

/* Adds the sandbox's current state, and a note about what was done. */
static int add_state(const struct worker *w, const char *name, const char *note, struct json *j,
		     struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };
	const struct op_info_args args = { .name = name };

	if (op_info(w->ak, &args, &w->events, &entry, e) < 0)
		return -1;
	json_add_text(j, "name", name);
	json_add_text(j, "state", namedrun_state_word(entry.state));
	json_add_text(j, "note", note);
	json_open_object(j, "sandbox");
	sandboxview_add_members(j, &entry);
	json_close_object(j);
	return 0;
}

/* ---- creating and listing ---- */

int worker_create(struct worker *w, struct json *j, struct err *e)
{
	cleanup_free char **labels = worker_list(w, "labels");
	cleanup_free char **words = worker_command(w);
	const struct op_create_args args = {
		.words = words,
		.request = &w->call,
		.name = worker_text(w, "name"),
		.labels = labels,
		.ttl_ms = worker_number(w, "ttl_ms", 0),
		.starts_it = true,
	};
	struct op_create_result result;

	if (worker_fill_request(w, e) < 0 || op_create(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	return add_state(w, args.name, "created and started", j, e);
}

int worker_fork(struct worker *w, struct json *j, struct err *e)
{
	const struct op_fork_args args = { .name = worker_text(w, "name"),
					   .new_name = worker_text(w, "new_name") };

	if (op_fork(w->ak, &args, &w->events, e) < 0)
		return -1;
	return add_state(w, args.new_name, "forked", j, e);
}

int worker_list_sandboxes(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };
	const struct op_list_args args = { .is_running = worker_flag(w, "running") };

	if (op_list(w->ak, &args, &w->events, &list, e) < 0)
		return -1;
	json_open_array(j, "sandboxes");
	for (size_t i = 0; i < list.count; i++)
		sandboxview_add_object(j, &list.entries[i]);
	json_close_array(j);
	return 0;
}

int worker_info(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };
	const struct op_info_args args = { .name = worker_text(w, "name"),
					   .id = worker_text(w, "uuid") };

	if (op_info(w->ak, &args, &w->events, &entry, e) < 0)
		return -1;
	json_open_object(j, "sandbox");
	sandboxview_add_members(j, &entry);
	json_close_object(j);
	return 0;
}

int worker_stats(struct worker *w, struct json *j, struct err *e)
{
	const struct op_stats_args args = { .name = worker_text(w, "name") };
	struct control_stats stats;

	if (op_stats(w->ak, &args, &w->events, &stats, e) < 0)
		return -1;
	json_add_text(j, "name", args.name);
	sandboxview_add_figures(j, &stats);
	return 0;
}

/* ---- state changes ---- */

static int move(const struct worker *w, op_move_fn *op, const char *done, const char *already,
		struct json *j, struct err *e)
{
	const struct op_move_args args = { .name = worker_text(w, "name"),
					   .may_be_done = true,
					   .is_forced = worker_flag(w, "force"),
					   .timeout_ms = LIFECYCLE_STOP_DEFAULT_MS };
	struct op_move_result result = { 0 };

	if (op(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	return add_state(w, args.name, result.was_done ? already : done, j, e);
}

int worker_start(struct worker *w, struct json *j, struct err *e)
{
	return move(w, op_start, "started", "it runs already", j, e);
}

int worker_stop(struct worker *w, struct json *j, struct err *e)
{
	return move(w, op_stop, "stopped; its files stay", "it does not run", j, e);
}

int worker_pause(struct worker *w, struct json *j, struct err *e)
{
	return move(w, op_pause, "paused", "it is paused already", j, e);
}

int worker_resume(struct worker *w, struct json *j, struct err *e)
{
	return move(w, op_resume, "resumed", "it is not paused", j, e);
}

int worker_remove(struct worker *w, struct json *j, struct err *e)
{
	const struct op_move_args args = { .name = worker_text(w, "name"),
					   .may_be_done = true,
					   .is_forced = true };
	struct op_move_result result = { 0 };

	if (op_remove(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "name", args.name);
	json_add_text(j, "state", "removed");
	json_add_text(j, "note", "it is gone");
	return 0;
}

int worker_extend(struct worker *w, struct json *j, struct err *e)
{
	struct op_extend_args args = { .name = worker_text(w, "name") };
	struct op_extend_result result = { 0 };

	if (parse_duration_ms(worker_text(w, "by"), NAMED_TTL_MIN_MS, NAMED_TTL_MAX_MS, &args.by_ms,
			      e) < 0)
		return err_wrap(e, "by");
	if (op_extend(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_number(j, "expires", (int64_t)result.expires_s);
	return 0;
}

/* ---- checkpoints ---- */

int worker_checkpoint(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_checkpoint_result_done) struct op_checkpoint_result result = { 0 };
	const struct op_checkpoint_args args = { .name = worker_text(w, "name"),
						 .comment = worker_text(w, "comment"),
						 .every = worker_text(w, "every"),
						 .keep = worker_number(w, "keep", 0) };

	if (op_checkpoint(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	if (result.made.id[0])
		json_add_text(j, "id", result.made.id);
	json_add_text(j, "name", args.name);
	if (result.made.id[0])
		json_add_number(j, "bytes", (int64_t)result.made.bytes);
	if (args.every)
		json_add_number(j, "every_ms", (int64_t)result.every_ms);
	if (result.keep)
		json_add_number(j, "keep", (int64_t)result.keep);
	return 0;
}

int worker_checkpoint_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	const struct op_checkpoint_list_args args = { .name = worker_text(w, "name"),
						      .id = worker_text(w, "id") };

	if (op_checkpoint_list(w->ak, &args, &w->events, &list, e) < 0)
		return -1;
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++) {
		json_open_object(j, NULL);
		sandboxview_add_checkpoint(j, &list.entries[i]);
		json_close_object(j);
	}
	json_close_array(j);
	return 0;
}

int worker_restore(struct worker *w, struct json *j, struct err *e)
{
	const struct op_restore_args args = { .name = worker_text(w, "name"),
					      .id = worker_text(w, "id") };

	if (op_restore(w->ak, &args, &w->events, e) < 0)
		return -1;
	return add_state(w, args.name, "put back to the checkpoint", j, e);
}

int worker_checkpoint_remove(struct worker *w, struct json *j, struct err *e)
{
	const struct op_checkpoint_remove_args args = { .id = worker_text(w, "id") };

	if (op_checkpoint_remove(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "note", "it is gone");
	return 0;
}
