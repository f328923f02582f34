#pragma once
/*
 * moves - the states of a named sandbox, and which act is allowed in which.
 *
 * The state is read from the run file, and corrected where a free lock shows that the supervisor
 * died. It can change as soon as it is read, unless the caller holds the lock: acts check it before
 * they wait for the lock, for a good message, and again with the lock.
 */
#include "named/namedrun.h"

enum moves_act { MOVES_START, MOVES_STOP, MOVES_PAUSE, MOVES_RESUME, MOVES_REMOVE };

/* *run stays empty, and the state is NAMED_CREATED, if the sandbox was never started. */
ERR_CHECKED int moves_load_state(const struct named *n, struct namedrun *run, enum named_state *ret,
				 struct err *e);
bool moves_is_asleep(const struct named *n); /* false also if unknown */
bool moves_is_allowed(enum moves_act act, enum named_state state);
/* ERR_BUSY, with what to do first, if the act is not allowed in the current state. */
ERR_CHECKED int moves_check(const struct named *n, enum moves_act act, struct err *e);
