#pragma once
/*
 * etchide - a layer of whiteouts over the host's /etc, for sandboxes that use the host's programs:
 * what may hold secrets (policy/credential), what only this caller may read, and names for which
 * the sandbox writes its own file.
 */
#include "base/err.h"

#include <stdbool.h>

/* Fills an empty directory with whiteouts; used by state/etclayer and for a sandbox's own layer. */
ERR_CHECKED int etchide_make_layer(int layer_fd, char *const *etc_private, struct err *e);

/* True if the sandbox never takes this name from the host: it writes its own file or none. */
bool etchide_is_own(const char *name);
/* The host's /etc, opened with O_PATH. */
ERR_CHECKED int etchide_open(int *ret_fd, struct err *e);
