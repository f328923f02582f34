/*
 * op_checkpoint - checkpoints of named sandboxes; see op_checkpoint.h.
 *
 * The user names a checkpoint by its id, and may restore any of them into a sandbox. Callers of a
 * server can only restore checkpoints of the same sandbox, identified by its id: the disk content
 * of another sandbox of the same name is not for them.
 */
#include "ops/op_checkpoint.h"

#include "base/cleanup.h"
#include "named/checkpointcost.h"
#include "named/named.h"
#include "ops/access.h"
#include "ops/events.h"
#include "state/ak.h"

#include <stdio.h>
#include <string.h>

void op_checkpoint_result_done(struct op_checkpoint_result *r)
{
	checkpoint_done(&r->made);
}

int op_checkpoint(struct ak *ak, const struct op_checkpoint_args *args, const struct op_events *ev,
		  struct op_checkpoint_result *ret, struct err *e)
{
	(void)ev;
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	return checkpoint_create(ak, args->name, args->comment, &ret->made, &ret->timing, e);
}

/*
 * Finds a checkpoint by its id, or by a unique comment; a text in the form of an id is never
 * matched with comments, which callers can choose. `sandbox` NULL: of any sandbox; else only of
 * this one, compared by id. Returns NULL and sets `e` if there is none.
 */
static const struct checkpoint *pick_checkpoint(const struct ak *ak,
						const struct checkpoint_list *list,
						const char *text, const struct named *sandbox,
						struct err *e)
{
	const struct checkpoint *found = NULL;
	bool is_by_id = checkpoint_is_id(text);

	for (size_t i = 0; i < list->count; i++) {
		const struct checkpoint *c = &list->entries[i];
		const char *own = is_by_id ? c->id : c->comment;

		if (!own || strcmp(own, text) != 0 || !named_is_visible(ak, c->owner) ||
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

/* `name` NULL: of any sandbox. */
static int find(const struct ak *ak, const char *text, const char *name,
		char ret[CHECKPOINT_ID_BYTES + 1], struct err *e)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	CLEANUP(named_done) struct named n;
	const struct checkpoint *c;

	named_init(&n);
	if (checkpoint_list(ak, NULL, &list, e) < 0 || (name && named_open(ak, name, &n, e) < 0))
		return -1;
	c = pick_checkpoint(ak, &list, text, name ? &n : NULL, e);
	/* restoring a sandbox's own checkpoint grants nothing: the sandbox keeps its policy */
	if (!c || (!name && access_check_checkpoint(ak, c, e) < 0))
		return -1;
	(void)snprintf(ret, CHECKPOINT_ID_BYTES + 1, "%s", c->id);
	return 0;
}

int op_checkpoint_list(struct ak *ak, const struct op_checkpoint_list_args *args,
		       const struct op_events *ev, struct checkpoint_list *ret, struct err *e)
{
	const struct checkpoint *only = NULL;
	size_t kept = 0;

	if (checkpoint_list(ak, args->name, ret, e) < 0)
		return -1;
	if (args->id) {
		only = pick_checkpoint(ak, ret, args->id, NULL, e);
		if (!only)
			return -1;
	}
	for (size_t i = 0; i < ret->count; i++) {
		struct checkpoint *c = &ret->entries[i];

		if (named_is_visible(ak, c->owner) && (!only || only == c))
			ret->entries[kept++] = *c;
		else
			checkpoint_done(c);
	}
	ret->count = kept;
	if (args->has_costs && checkpointcost_find(ak, ret, e) < 0)
		return -1;
	if (ret->has_damaged && !ak->ceiling)
		op_remark(ev, "there are checkpoints whose record cannot be read");
	return 0;
}

/* The sandbox keeps its current policy. */
int op_restore(struct ak *ak, const struct op_restore_args *args, const struct op_events *ev,
	       struct err *e)
{
	char id[CHECKPOINT_ID_BYTES + 1];
	bool was_running = false;

	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    (ak->ceiling && find(ak, args->id, args->name, id, e) < 0))
		return -1;
	if (checkpoint_restore(ak, args->name, ak->ceiling ? id : args->id, &was_running, e) < 0)
		return -1;
	if (was_running && !ak->ceiling)
		op_remark(ev, "sandbox '%s' was stopped, restored and started again", args->name);
	return 0;
}

int op_checkpoint_remove(struct ak *ak, const struct op_checkpoint_remove_args *args,
			 const struct op_events *ev, struct err *e)
{
	char id[CHECKPOINT_ID_BYTES + 1];

	(void)ev;
	if (!ak->ceiling)
		return checkpoint_remove(ak, args->id, e);
	return find(ak, args->id, NULL, id, e) < 0 ? -1 : checkpoint_remove(ak, id, e);
}
