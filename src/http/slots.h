#pragma once
/*
 * slots - how much may be under way at once: of all callers, and of one key's owner.
 *
 * No owner gets all of it, so that whoever holds one key cannot keep the others, or the user, from
 * being answered. Callers who see all (owner NULL) are bounded by the whole alone.
 */
#include "base/err.h"
#include "http/keys.h"

enum slots_kind {
	SLOTS_CALL,   /* a call that somebody waits for */
	SLOTS_STREAM, /* a client that listens to events */
	SLOTS_READER, /* what we start on our own account: reading the audit log, counting */

	SLOTS_KIND_COUNT
};

#define SLOTS_CALLS_MAX 64u
#define SLOTS_CALLS_OF_OWNER_MAX 48u
#define SLOTS_STREAMS_MAX 256u
#define SLOTS_STREAMS_OF_OWNER_MAX 64u
#define SLOTS_READERS_MAX 8u

struct slots {
	unsigned count[SLOTS_KIND_COUNT];
	struct slots_owner {
		const char *owner; /* borrowed: a key's, for as long as the server lives */
		unsigned count[SLOTS_KIND_COUNT];
	} owners[KEYS_MAX];
	unsigned owner_count;
};

/* ERR_BUSY: there is none left. slots_check() only looks. */
ERR_CHECKED int slots_check(struct slots *s, enum slots_kind kind, const char *owner,
			    struct err *e);
ERR_CHECKED int slots_take(struct slots *s, enum slots_kind kind, const char *owner, struct err *e);
void slots_give(struct slots *s, enum slots_kind kind, const char *owner);
