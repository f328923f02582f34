#pragma once
/*
 * keys - API keys for access over TCP, and whose sandboxes they see.
 *
 * A key file has one key per line: "KEY", "NAME KEY", or "NAME KEY admin". Lines with the same name
 * are one owner, so that a key can be replaced while the old one is still in use. A key without a
 * name is its own owner, identified by its digest. If keys are isolated, only the owner and admins
 * see what the owner creates; the owner is stored with every sandbox and checkpoint (named/named),
 * so this survives a restart of the server.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define KEYS_MAX 64u
#define KEYS_NAME_MAX_BYTES 63u
#define KEYS_KEY_MAX_BYTES 1024u
#define KEYS_OWNER_MAX_BYTES 72u /* "name:" and a name, or "key:" and 32 digits */

struct keys_key {
	char *text;
	char owner[KEYS_OWNER_MAX_BYTES];
	bool is_admin;
};

struct keys {
	struct keys_key list[KEYS_MAX];
	unsigned count;
	bool is_isolated; /* set by keys_parse() if there are several */
};

ERR_CHECKED int keys_parse(const char *text, struct keys *ret, struct err *e);
void keys_done(struct keys *k); /* may run twice, and on a zeroed struct */

/* NULL: no such key. Takes the same time for a wrong key as for a right one. */
const struct keys_key *keys_find(const struct keys *k, const char *text);
/* Whose sandboxes this key sees; NULL: all. */
const char *keys_owner(const struct keys *k, const struct keys_key *key);
