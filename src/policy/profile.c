/* profile - the permission presets; see profile.h. */
#include "policy/profile.h"

#include <assert.h>
#include <string.h>

#define MIB (1ull << 20)

static const struct profile profiles[] = {
#define PROFILE(id, text, ...) [PROFILE_##id] = { .name = (text), __VA_ARGS__ },
#include "policy/profiles.def"
};

const char *const profile_names[] = {
#define PROFILE(id, text, ...) text,
#include "policy/profiles.def"
	NULL,
};

const struct profile *profile_get(enum profile_id id)
{
	assert(id < PROFILE_COUNT);
	return &profiles[id];
}

const struct profile *profile_find(const char *name, enum profile_id *ret_id)
{
	for (unsigned id = 0; id < PROFILE_COUNT; id++) {
		if (strcmp(profiles[id].name, name) != 0)
			continue;
		*ret_id = (enum profile_id)id;
		return &profiles[id];
	}
	return NULL;
}
