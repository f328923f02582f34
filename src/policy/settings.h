#pragma once
/* settings - a growing list of policy settings, with the texts that nobody else keeps. */
#include "policy/policy.h"

#define SETTINGS_MAX 2048u

struct settings {
	struct policy_setting *list; /* texts are borrowed, or kept in .owned */
	size_t count;
	char **owned;
	size_t owned_count;
};

ERR_CHECKED int settings_add(struct settings *s, const struct policy_setting *setting,
			     struct err *e);
/* Takes `text`, and gives it back for a setting. */
const char *settings_keep(struct settings *s, char *text);
/* Has one of that field; what only sets a maximum for callers does not count. */
bool settings_have(const struct settings *s, enum policy_field field);
void settings_done(struct settings *s); /* may run twice */
