#pragma once
/*
 * gitprotect - protects what git outside would run or obey, in a workspace that a sandbox may
 * write.
 *
 * In every repository of the workspace (workspace/gitrepos): hooks, settings, and the files that
 * say where these are. In every working tree: the files that agents and editors obey. And the paths
 * in git's settings: core.hooksPath, included files, files named in commands; also for the settings
 * of the repository around the workspace and for the user's own.
 *
 * Reads git's files and runs nothing. They belong to the user, but a project may bring its own.
 */
#include "base/err.h"

struct ak;

struct policy;
struct workspace;

#define GITPROTECT_REPOSITORIES_MAX 1024u
#define GITPROTECT_CONFIG_MAX_BYTES (1u << 20)
#define GITPROTECT_FILES_MAX 8192u       /* with settings, that are read */
#define GITPROTECT_INCLUDE_DEPTH_MAX 10u /* of files that include others; git's own */

/* Adds to the workspace's guards, absent names and repositories. */
ERR_CHECKED int gitprotect_run(struct workspace *w, const struct policy *p, const struct ak *ak,
			       struct err *e);
