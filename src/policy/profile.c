/* profile - the permission presets; see profile.h. */
#include "policy/profile.h"

#include <assert.h>
#include <string.h>

#define MIB (1ull << 20)

static const struct profile profiles[] = {
	[PROFILE_RESTRICTIVE] = {
		.name = "restrictive",
		.is_read_only = true,
		.memory_bytes = 512 * MIB,
		.cpus_milli = 1000,
		.pids_count = 512,
	},
	[PROFILE_MODERATE] = {
		.name = "moderate",
		.has_network = true,
		.runs_as_root = true,
		.may_trace = true,
		.memory_bytes = 2048 * MIB,
		.pids_count = 1024,
	},
	[PROFILE_PERMISSIVE] = {
		.name = "permissive",
		.has_network = true,
		.has_workspace = true,
		.has_home = true,
		.passes_env = true,
		.runs_as_root = true,
		.may_trace = true,
		.pids_count = 4096,
	},
};

static_assert(sizeof(profiles) / sizeof(profiles[0]) == PROFILE_COUNT, "a profile has no row");

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
