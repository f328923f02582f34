#pragma once
/*
 * mode - presets for what one coding agent needs: native, claude, codex, gemini.
 *
 * A mode is a profile plus the rest of an agent's world: its project, its key, and the domains that
 * it and the package managers talk to, with everything else denied. To add a mode, add a row in
 * mode.c and a value here; to add a domain, add it to a list in mode.c.
 */
#include "policy/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mode_id {
	MODE_NATIVE,
	MODE_CLAUDE,
	MODE_CODEX,
	MODE_GEMINI,

	MODE_COUNT
};

#define MODE_LISTS_MAX 4u

struct mode {
	const char *name;
	enum profile_id base;
	uint64_t memory_bytes; /* 0: as the profile */
	bool has_workspace;
	/*
	 * The network is these domains and nothing else; none: as the profile. A pattern
	 * "*.example.org" stands for everything below example.org and for that name itself.
	 */
	const char *const *domains[MODE_LISTS_MAX];
	const char *origin; /* of these rules: the same, however the mode was chosen */
	const char *const *secrets; /* variables of the caller that go inside; NULL-ended */
};

const struct mode *mode_get(enum mode_id id);

/* NULL when there is no such mode. */
const struct mode *mode_find(const char *name, enum mode_id *ret_id);
