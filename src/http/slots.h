#pragma once
/*
 * slots - how much may be under way at once: of all callers, of one key's owner, about one sandbox.
 *
 * No owner gets all places, so that whoever holds one key cannot keep the others, or the user, from
 * being answered; no sandbox does either, since calls about one whose supervisor hangs take long.
 * Operations that look or end something (OPERATION_IS_CARE) have places of their own: a server whose
 * other places are all taken can still be looked at and cleaned up. Callers who see all (owner
 * NULL) are bounded by the whole and by the sandbox alone.
 */
#include "base/err.h"
#include "http/keys.h"

enum slots_kind {
	SLOTS_CALL,   /* a call that somebody waits for */
	SLOTS_CARE,   /* one that lists, shows, stops, kills or removes */
	SLOTS_STREAM, /* a client that listens to events */
	SLOTS_READER, /* what we start on our own account: reading the audit log, counting */

	SLOTS_KIND_COUNT
};

#define SLOTS_CALLS_MAX 96u
#define SLOTS_CALLS_OF_OWNER_MAX 64u
#define SLOTS_CALLS_OF_SANDBOX_MAX 32u
#define SLOTS_CARES_MAX 24u
#define SLOTS_CARES_OF_OWNER_MAX 12u
#define SLOTS_CARES_OF_SANDBOX_MAX 4u
#define SLOTS_STREAMS_MAX 256u
#define SLOTS_STREAMS_OF_OWNER_MAX 64u
#define SLOTS_READERS_MAX 8u
#define SLOTS_SANDBOX_MAX_BYTES 64u

/* What a call takes. Zeroed, it is a call of someone who sees all, about no sandbox. */
struct slots_place {
	enum slots_kind kind;
	const char *owner;                         /* borrowed: a key's, as long as the server lives */
	char sandbox[SLOTS_SANDBOX_MAX_BYTES]; /* "": none */
};

struct slots {
	unsigned count[SLOTS_KIND_COUNT];
	struct slots_owner {
		const char *owner;
		unsigned count[SLOTS_KIND_COUNT];
	} owners[KEYS_MAX];
	unsigned owner_count;
	struct slots_sandbox {
		char name[SLOTS_SANDBOX_MAX_BYTES];
		unsigned count[SLOTS_KIND_COUNT];
	} sandboxes[SLOTS_CALLS_MAX + SLOTS_CARES_MAX]; /* those that calls are about now */
	unsigned sandbox_count;
};

/* A longer name is no sandbox's. */
void slots_set_sandbox(struct slots_place *p, const char *name);

/* ERR_BUSY: there is none left. slots_check() only looks. */
ERR_CHECKED int slots_check(struct slots *s, const struct slots_place *p, struct err *e);
ERR_CHECKED int slots_take(struct slots *s, const struct slots_place *p, struct err *e);
void slots_give(struct slots *s, const struct slots_place *p);
