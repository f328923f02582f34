/*
 * op_checkpoint - checkpoints of named sandboxes; see op_checkpoint.h.
 *
 * The user names a checkpoint by its id, and may restore any of them into a sandbox. Callers of a
 * server can only restore checkpoints of the same sandbox, identified by its id: the disk content
 * of another sandbox of the same name is not for them.
 */
#include "ops/op_checkpoint.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "named/checkpointcost.h"
#include "named/checkpointinterval.h"
#include "named/lifecycle.h"
#include "named/reconfigure.h"
#include "named/named.h"
#include "ops/access.h"
#include "ops/events.h"
#include "state/ak.h"

#include <stdio.h>
#include <string.h>

#define INTERVAL_WORDS                                                                             \
	"sandbox '%s' has a checkpoint every %s while it runs, if something has changed; the "     \
	"last "                                                                                    \
	"%u of these are kept"

void op_checkpoint_result_done(struct op_checkpoint_result *r)
{
	checkpoint_done(&r->made);
}

static int check_interval(const struct op_checkpoint_args *args, struct op_checkpoint_result *ret,
			  struct err *e)
{
	if (!args->every)
		return args->keep ? err_set(e, ERR_INVALID, "keep: only with every") : 0;
	if (checkpointinterval_parse(args->every, &ret->every_ms, e) < 0)
		return err_wrap(e, "every");
	if (ret->every_ms == 0 && (args->keep || args->comment))
		return err_set(e, ERR_INVALID, "%s: nothing is made when the interval ends",
			       args->keep ? "keep" : "comment");
	if (args->keep > CHECKPOINTINTERVAL_KEEP_MAX)
		return err_set(e, ERR_INVALID, "keep: at most %d", CHECKPOINTINTERVAL_KEEP_MAX);
	if (ret->every_ms)
		ret->keep = args->keep ? args->keep : CHECKPOINTINTERVAL_KEEP_DEFAULT;
	return 0;
}

/* The first one is made: from now on the sandbox's supervisor makes them. */
static int set_interval(struct ak *ak, const struct op_checkpoint_args *args,
			const struct op_events *ev, const struct op_checkpoint_result *set,
			struct err *e)
{
	char every[PARSE_FORMAT_MAX_BYTES];

	if (reconfigure_checkpoints(ak, args->name, set->every_ms, set->keep, e) < 0)
		return -1;
	if (set->every_ms)
		op_remark(ev, INTERVAL_WORDS, args->name,
			  parse_format_duration(set->every_ms, every), (unsigned)set->keep);
	else
		op_remark(ev, "sandbox '%s' has no more checkpoints by interval", args->name);
	return set->every_ms ? checkpoint_thin(ak, set->made.sandbox_id, set->keep, e) : 0;
}

int op_checkpoint(struct ak *ak, const struct op_checkpoint_args *args, const struct op_events *ev,
		  struct op_checkpoint_result *ret, struct err *e)
{
	const struct checkpoint_request q = { .sandbox = args->name,
					      .comment = args->comment,
					      .is_automatic = args->every != NULL };

	if (check_interval(args, ret, e) < 0 ||
	    access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0)
		return -1;
	if ((!args->every || ret->every_ms) &&
	    checkpoint_create(ak, &q, &ret->made, &ret->timing, e) < 0)
		return -1;
	return args->every ? set_interval(ak, args, ev, ret, e) : 0;
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

static void tell_interval(const struct ak *ak, const char *name, const struct op_events *ev)
{
	CLEANUP(named_done) struct named n;
	char every[PARSE_FORMAT_MAX_BYTES];
	struct err ignored;

	named_init(&n);
	if (named_open(ak, name, &n, &ignored) == 0 && n.checkpoint_every_ms)
		op_remark(ev, INTERVAL_WORDS, name,
			  parse_format_duration(n.checkpoint_every_ms, every),
			  (unsigned)n.checkpoint_keep);
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
	if (args->name && !ak->ceiling)
		tell_interval(ak, args->name, ev);
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
