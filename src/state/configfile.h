#pragma once
/*
 * configfile - finds the configuration files for a command and checks their trust.
 *
 * The user's own file ($XDG_CONFIG_HOME/agentkernel/config.toml) always applies in full. The
 * project's is the first agentkernel.toml from the working directory upward to the repository's
 * root (without a repository: in the working directory alone). Anyone who can write to the project
 * can write that file, so it can only restrict what the user's own file and the command line allow,
 * unless the user trusts it: `config trust` keeps a copy of the whole file in the state directory,
 * which no sandbox sees, and a file that differs from its copy is not trusted. A file named with
 * --config is trusted by being named.
 */
#include "base/err.h"
#include "policy/configuration.h"

#include <stdbool.h>

struct ak;

#define CONFIGFILE_NAME "agentkernel.toml"
#define CONFIGFILE_MAX_BYTES (1u << 20)
#define CONFIGFILE_LEVELS_MAX 64u /* parent directories searched */

struct configfile {
	char *user_path;    /* NULL: none */
	char *project_path; /* NULL: none */
	bool is_trusted;    /* the project's file */
	struct configuration user, project;
};

/*
 * Loads the files for the directory caller->cwd (may be NULL). `path` is the argument of --config,
 * or NULL. A missing file is not an error.
 */
ERR_CHECKED int configfile_load(const struct ak *ak, const char *path, struct configfile *ret,
				struct err *e);
void configfile_done(struct configfile *c); /* may run twice, and on a zeroed struct */

/* Finds the project's file; *ret is its path, which the caller frees, or NULL. */
ERR_CHECKED int configfile_find(const char *cwd, char **ret, struct err *e);

/* Keeps a copy: from now on a file of this name with these bytes is trusted. */
ERR_CHECKED int configfile_trust(const struct ak *ak, const char *path, struct err *e);
/* The same for bytes that the caller has made itself, whatever the file holds by now. */
ERR_CHECKED int configfile_trust_bytes(const struct ak *ak, const char *path, const char *bytes,
				       size_t len, struct err *e);
/* ERR_NOT_FOUND when it was not trusted. */
ERR_CHECKED int configfile_distrust(const struct ak *ak, const char *path, struct err *e);
