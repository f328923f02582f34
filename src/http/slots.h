#pragma once
/*
 * slots - limits concurrent calls: in total, per owner of a key, and per sandbox.
 *
 * No owner can use all slots, so that the holder of one key cannot block the others, or the user;
 * no sandbox can either, because calls to one whose supervisor hangs take long. Operations that
 * inspect or end something (OPERATION_IS_CARE) have separate slots: a fully loaded server can still
 * be inspected and cleaned up. Callers who see all sandboxes (owner NULL) are only limited by the
 * total and per sandbox.
 */
#include "base/err.h"
#include "http/keys.h"

enum slots_kind {
	SLOTS_CALL,   /* a call that a client waits for */
	SLOTS_CARE,   /* lists, shows, stops, kills or removes */
	SLOTS_STREAM, /* a client that listens to events */
	SLOTS_READER, /* started by the server itself: reading the audit log, counting */

	SLOTS_KIND_COUNT
};

#define SLOTS_CALLS_MAX 96u
#define SLOTS_CALLS_OF_OWNER_MAX 64u
#define SLOTS_CALLS_OF_SANDBOX_MAX 32u
#define SLOTS_CARES_MAX 24u
#define SLOTS_CARES_OF_OWNER_MAX 12u
#define SLOTS_CARES_OF_SANDBOX_MAX 4u
#define SLOTS_STREAMS_MAX 1024u
#define SLOTS_STREAMS_OF_OWNER_MAX 512u
#define SLOTS_READERS_MAX 8u
#define SLOTS_SANDBOX_MAX_BYTES 64u

/* The slot of a call. Zeroed: a caller who sees all sandboxes, about no sandbox. */
struct slots_place {
	enum slots_kind kind;
	const char *owner;                     /* borrowed from a key, valid for good */
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
	} sandboxes[SLOTS_CALLS_MAX + SLOTS_CARES_MAX]; /* those with running calls */
	unsigned sandbox_count;
};

/* Ignores a name too long for a sandbox. */
void slots_set_sandbox(struct slots_place *p, const char *name);

/* ERR_BUSY: none left. slots_check() takes nothing. */
ERR_CHECKED int slots_check(struct slots *s, const struct slots_place *p, struct err *e);
ERR_CHECKED int slots_take(struct slots *s, const struct slots_place *p, struct err *e);
void slots_give(struct slots *s, const struct slots_place *p);
