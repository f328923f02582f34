/*
 * moves - which act is allowed in which state; see moves.h.
 */
#include "named/moves.h"

#include "base/cleanup.h"

/* The states from which each act is allowed, and its word in the error. */
static const struct {
	const char *word;
	unsigned from; /* bit mask of states */
} moves[] = {
	[MOVES_START] = { "start", 1u << NAMED_CREATED | 1u << NAMED_STOPPED | 1u << NAMED_ASLEEP },
	[MOVES_STOP] = { "stop", 1u << NAMED_RUNNING | 1u << NAMED_PAUSED | 1u << NAMED_DOZING },
	[MOVES_PAUSE] = { "pause", 1u << NAMED_RUNNING | 1u << NAMED_DOZING },
	[MOVES_RESUME] = { "resume", 1u << NAMED_PAUSED | 1u << NAMED_DOZING },
	[MOVES_REMOVE] = { "be removed",
			   1u << NAMED_CREATED | 1u << NAMED_STOPPED | 1u << NAMED_ASLEEP },
};

static const char *const hint[] = {
	[NAMED_CREATED] = "start it first", [NAMED_RUNNING] = "stop it first",
	[NAMED_PAUSED] = "resume it first", [NAMED_STOPPED] = "start it first",
	[NAMED_DOZING] = "stop it first",   [NAMED_ASLEEP] = "start it first",
};

int moves_load_state(const struct named *n, struct namedrun *run, enum named_state *ret,
		     struct err *e)
{
	char build[BUILDID_MAX_BYTES];
	const char *reason;

	*ret = NAMED_CREATED;
	if (namedrun_load(n, run, e) < 0) {
		*run = (struct namedrun){ 0 };
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	}
	*ret = namedrun_judge(n, run, build, &reason);
	return 0;
}

bool moves_is_asleep(const struct named *n)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	enum named_state state;
	struct err ignored;

	return moves_load_state(n, &run, &state, &ignored) == 0 && state == NAMED_ASLEEP;
}

bool moves_is_allowed(enum moves_act act, enum named_state state)
{
	return moves[act].from & 1u << state;
}

int moves_check(const struct named *n, enum moves_act act, struct err *e)
{
	CLEANUP(namedrun_done) struct namedrun run = { 0 };
	enum named_state state;

	if (moves_load_state(n, &run, &state, e) < 0)
		return -1;
	if (moves_is_allowed(act, state))
		return 0;
	return err_set(e, ERR_BUSY, "sandbox '%s' is %s, so it cannot %s (%s)", n->name,
		       namedrun_state_word(state), moves[act].word,
		       act == MOVES_REMOVE && state != NAMED_CREATED ? "add -f, or stop it first"
								     : hint[state]);
}
