#pragma once
/*
 * mode - presets for what one coding agent needs: native, claude, codex, gemini.
 *
 * A mode is a profile plus an agent's project, its key, and the domains that it and the package
 * managers use, with all others denied. To add a mode, add a row to modes.def; to add a domain, add
 * it to a list in mode.c.
 */
#include "policy/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mode_id {
#define MODE(id, ...) MODE_##id,
#include "policy/modes.def"
	MODE_COUNT
};

#define MODE_LISTS_MAX 4u

struct mode {
	const char *name;
	enum profile_id base;
	uint64_t memory_bytes; /* 0: the profile's */
	bool has_workspace;
	/*
	 * The network allows only these domains; none: the profile's network. A pattern
	 * "*.example.org" matches example.org and all names below it.
	 */
	const char *const *domains[MODE_LISTS_MAX];
	const char *origin;         /* of these rules; the same however the mode was chosen */
	const char *const *secrets; /* the caller's variables to pass; NULL-ended */
};

extern const char *const mode_names[]; /* in the order of enum mode_id, ended by NULL */

const struct mode *mode_get(enum mode_id id);

/* NULL if there is no such mode. */
const struct mode *mode_find(const char *name, enum mode_id *ret_id);
