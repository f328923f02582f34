#pragma once
/*
 * etclayer - caches the layer that hides names of the host's /etc in sandboxes of the host image.
 *
 * sandbox/hostetc mounts it above /etc. Making one takes half a millisecond, so state/runtimecache
 * keeps it: named after /etc itself, whose time changes when something is made or removed in it,
 * and after the names that are not for all (state/etcprivate).
 */
#include "base/err.h"

struct ak;

#define ETCLAYER_MAX 16u /* of one user: then they are made anew */

/*
 * Its path, the caller's to free; *ret NULL: the sandbox has to make its own. The layer is kept
 * until *ret_held_fd is closed.
 */
ERR_CHECKED int etclayer_hold(const struct ak *ak, char *const *etc_private, char **ret,
			      int *ret_held_fd, struct err *e);
