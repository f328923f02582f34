#pragma once
/*
 * configfile - which configuration files count for a command, and whether they are trusted.
 *
 * The user's own file ($XDG_CONFIG_HOME/agentkernel/config.toml) always counts in full. The
 * project's is the first agentkernel.toml from the working directory upward to the repository's
 * root (without a repository: in the working directory alone). Whoever may write in the project may
 * write that file, so it can only take away from what the user's own file and the command line
 * allow, unless the user trusts it: `config trust` keeps a copy of the whole file in the state
 * directory, which no sandbox sees, and a file that differs from its copy is not trusted. A file
 * named with --config is trusted by being named.
 */
#include "base/err.h"
#include "policy/configuration.h"

#include <stdbool.h>

struct ak;

#define CONFIGFILE_NAME "agentkernel.toml"
#define CONFIGFILE_MAX_BYTES (1u << 20)
#define CONFIGFILE_LEVELS_MAX 64u /* directories that are looked into, upward */

struct configfile {
	char *user_path;    /* NULL: there is none */
	char *project_path; /* NULL: there is none */
	bool is_trusted;    /* the project's */
	struct configuration user, project;
};

/*
 * What counts in the directory `cwd` (may be NULL). `path` is the file that --config names, or
 * NULL. Nothing is wrong with there being none.
 */
ERR_CHECKED int configfile_load(const struct ak *ak, const char *path, struct configfile *ret,
				struct err *e);
void configfile_done(struct configfile *c); /* may run twice, and on a zeroed struct */

/* The project's file alone: where it is, or NULL. The caller frees. */
ERR_CHECKED int configfile_find(const char *cwd, char **ret, struct err *e);

/* Keeps a copy: from now on a file of this name with these bytes is trusted. */
ERR_CHECKED int configfile_trust(const struct ak *ak, const char *path, struct err *e);
/* The same for bytes that the caller has made itself, whatever the file holds by now. */
ERR_CHECKED int configfile_trust_bytes(const struct ak *ak, const char *path, const char *bytes,
				       size_t len, struct err *e);
/* ERR_NOT_FOUND when it was not trusted. */
ERR_CHECKED int configfile_distrust(const struct ak *ak, const char *path, struct err *e);
