#pragma once
/*
 * statedir - where agentkernel keeps what outlives a run.
 *
 * $AGENTKERNEL_HOME; otherwise /var/lib/agentkernel for root and $XDG_DATA_HOME/agentkernel
 * (~/.local/share/agentkernel) for everyone else. Nothing is made until something is kept.
 */
#include "base/err.h"

/* "<directory>/<name>", the caller's to free. Fails where there is no home. */
ERR_CHECKED int statedir_path(char *const *environ_list, const char *name, char **ret,
			      struct err *e);

/* As above, and makes the directory (mode 0700) where it is missing. */
ERR_CHECKED int statedir_make_path(char *const *environ_list, const char *name, char **ret,
				   struct err *e);

/*
 * Where what need not outlive this machine's uptime is kept: /run/agentkernel for root,
 * $XDG_RUNTIME_DIR/agentkernel for everyone else; the caller's to free. NULL: there is none. Its
 * path does not tell who the user is: a sandbox sees where its mounts come from.
 */
char *statedir_runtime(char *const *environ_list);
