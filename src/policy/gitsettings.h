#pragma once
/*
 * gitsettings - what a setting of git can make git do.
 *
 * git runs commands that its configuration names, and reads further files that it names. A
 * repository that a sandbox has made may hold only settings that do neither; of a repository that
 * was there before, the files that such settings lead to are protected. The list is of what is
 * harmless: a setting that a later git invents is not, until it is added here.
 */
#include "base/gitconfig.h"

#include <stdbool.h>

enum gitsettings_kind {
	GITSETTINGS_HARMLESS,
	GITSETTINGS_WORKTREE, /* core.worktree: harmless if it leads to a directory that is shown */
	GITSETTINGS_HOOKS,    /* core.hooksPath: programs are run from there */
	GITSETTINGS_INCLUDE,  /* another file with settings */
	GITSETTINGS_COMMAND,  /* all else: may be run, by way of a shell */
};

enum gitsettings_kind gitsettings_judge(const struct gitconfig_entry *entry);
