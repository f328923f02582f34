#pragma once
/*
 * configuration - the parsed agentkernel.toml.
 *
 * configuration_parse() turns a document into settings for policy_resolve(), each with "FILE:LINE"
 * as its origin, and into the few values that are not policy. configuration.c has one table of all
 * keys; an unknown key is an error that suggests the nearest one. Reads no files; relative paths
 * are resolved against the file's directory.
 */
#include "base/err.h"
#include "policy/policy.h"
#include "policy/toolpolicy.h"

#define CONFIGURATION_SETTINGS_MAX 2048u
#define CONFIGURATION_AGENTS_MAX 16u
#define CONFIGURATION_WARM_MAX 256u
#define CONFIGURATION_SERVICES_MAX 32u

enum configuration_owner {
	CONFIGURATION_USERS,    /* the user's own; may have [registries], which other code reads */
	CONFIGURATION_PROJECTS, /* part of a project */
};

struct configuration_pool {
	char *agent; /* NULL: for every mode without its own pool */
	char *image; /* NULL: chosen as by `run` */
	uint64_t min_warm, max_warm;
};

struct configuration_service {
	char *name, *command; /* for a shell */
	uint64_t port;        /* 0: none */
	char **needs;         /* or NULL */
};

struct configuration {
	struct policy_setting *settings; /* .owned holds their texts and origins */
	size_t setting_count;
	char **owned;
	size_t owned_count;

	char *name;                  /* [sandbox] name, NULL: none; likewise below */
	char *init;                  /* shell script, run once in a new sandbox */
	char *dockerfile;            /* that the image is built from, relative to the file */
	char *agent;                 /* [agent] preferred */
	char *api_key, *api_key_env; /* key for clients of `serve`, or the variable that holds it */
	struct toolpolicy tools;
	struct configuration_pool pools[CONFIGURATION_AGENTS_MAX];
	unsigned pool_count;
	struct configuration_service services[CONFIGURATION_SERVICES_MAX];
	unsigned service_count;
};

/*
 * `name` is for messages and origins; relative paths start at `dir` (absolute). Free *ret with
 * configuration_done(), which also frees the settings' origins.
 */
ERR_CHECKED int configuration_parse(const char *bytes, size_t len, const char *name,
				    const char *dir, enum configuration_owner owner,
				    enum policy_layer layer, struct configuration *ret,
				    struct err *e);
void configuration_done(struct configuration *c); /* may run twice, and on a zeroed struct */
