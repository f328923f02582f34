#pragma once
/*
 * statedir - the directories for persistent and runtime state.
 *
 * $AGENTKERNEL_HOME; otherwise /var/lib/agentkernel for root and $XDG_DATA_HOME/agentkernel
 * (~/.local/share/agentkernel) for other users. No directory is created before something is stored.
 */
#include "base/err.h"

struct ak;

/* "<directory>/<name>", the caller's to free. Fails where there is no home. */
ERR_CHECKED int statedir_path(const struct ak *ak, const char *name, char **ret, struct err *e);

/* As above, and makes the directory (mode 0700) where it is missing. */
ERR_CHECKED int statedir_make_path(const struct ak *ak, const char *name, char **ret,
				   struct err *e);

/*
 * For ak_open(): the state directory, and the runtime directory for what need not outlive this
 * machine's uptime (/run/agentkernel for root, $XDG_RUNTIME_DIR/agentkernel for everyone else),
 * whose path does not tell who the user is: a sandbox sees where its mounts come from. The
 * caller's to free; NULL: there is none.
 */
char *statedir_find(char *const *environ_list);
char *statedir_find_runtime(char *const *environ_list);
