#pragma once
/*
 * profile - the permission presets: restrictive, moderate (the default), permissive.
 *
 * A profile is a row of values; policy/policy.c applies it first and single options after it. To
 * add a profile, add a row to profiles.def.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum profile_id {
#define PROFILE(id, ...) PROFILE_##id,
#include "policy/profiles.def"
	PROFILE_COUNT
};

struct profile {
	const char *name;
	bool has_network;      /* the public internet, through the gate */
	bool has_workspace;    /* the working directory, read-write at its own path */
	bool has_home;         /* the caller's home, read-only, credential files masked */
	bool passes_env;       /* the caller's environment, minus what looks like a secret */
	bool is_read_only;     /* root file system, except /tmp and the home directory */
	bool runs_as_root;     /* root inside, with the capabilities that package managers need */
	bool may_trace;        /* debuggers may trace processes of the same sandbox */
	uint64_t memory_bytes; /* 0: no limit, here and below */
	uint64_t cpus_milli;
	uint64_t pids_count;
};

extern const char *const profile_names[]; /* in the order of enum profile_id, ended by NULL */

const struct profile *profile_get(enum profile_id id);

/* NULL if there is no such profile. */
const struct profile *profile_find(const char *name, enum profile_id *ret_id);
