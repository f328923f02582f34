#pragma once
/*
 * configuration - what an agentkernel.toml says.
 *
 * configuration_parse() turns a document into settings for policy_resolve(), each with "FILE:LINE"
 * as its origin, and into the few things that are not policy. Every key is in one table in
 * configuration.c; an unknown one is an error that names the nearest. Pure: paths are only made
 * absolute, seen from the file's directory.
 */
#include "base/err.h"
#include "policy/policy.h"
#include "policy/toolpolicy.h"

#define CONFIGURATION_SETTINGS_MAX 2048u
#define CONFIGURATION_AGENTS_MAX 16u
#define CONFIGURATION_WARM_MAX 256u

enum configuration_owner {
	CONFIGURATION_USERS,    /* the user's own: also [registries], which others read */
	CONFIGURATION_PROJECTS, /* comes with the files it is about */
};

struct configuration_pool {
	char *agent; /* NULL: for every mode that has no pool of its own */
	char *image; /* NULL: as `run` would choose */
	uint64_t min_warm, max_warm;
};

struct configuration {
	struct policy_setting *settings; /* texts and origins are kept in .owned */
	size_t setting_count;
	char **owned;
	size_t owned_count;

	char *name;                  /* [sandbox] name, NULL: none; and so on */
	char *init;                  /* run once in a new sandbox, by its shell */
	char *agent;                 /* [agent] preferred */
	char *api_key, *api_key_env; /* whoever knows it may ask `serve`; where it is kept */
	struct toolpolicy tools;
	struct configuration_pool pools[CONFIGURATION_AGENTS_MAX];
	unsigned pool_count;
};

/*
 * `name` is for messages and origins, `dir` (absolute) is where relative paths begin. *ret is the
 * caller's to release; origins of the settings live as long.
 */
ERR_CHECKED int configuration_parse(const char *bytes, size_t len, const char *name,
				    const char *dir, enum configuration_owner owner,
				    enum policy_layer layer, struct configuration *ret,
				    struct err *e);
void configuration_done(struct configuration *c); /* may run twice, and on a zeroed struct */
