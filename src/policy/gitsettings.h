#pragma once
/*
 * gitsettings - classifies git settings by what they can run.
 *
 * git runs commands and reads further files that its configuration names. A repository created by a
 * sandbox may only have settings that do neither; in a repository that existed before, the files
 * that such settings name are protected. The list is an allowlist: a setting that a later git
 * introduces counts as harmful until it is added here.
 */
#include "base/gitconfig.h"

#include <stdbool.h>

enum gitsettings_kind {
	GITSETTINGS_HARMLESS,
	GITSETTINGS_WORKTREE, /* core.worktree: harmless if it leads to a directory that is shown */
	GITSETTINGS_HOOKS,    /* core.hooksPath: git runs programs from there */
	GITSETTINGS_INCLUDE,  /* another file with settings */
	GITSETTINGS_COMMAND,  /* anything else: git may run it through a shell */
};

enum gitsettings_kind gitsettings_judge(const struct gitconfig_entry *entry);
