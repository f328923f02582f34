#pragma once
/*
 * devices - the sandbox's /dev: six harmless nodes, its own terminals, its own shared memory.
 *
 * A user namespace cannot create device nodes, so the nodes are bind mounts of the host's.
 * Terminals come from a devpts instance of the sandbox's own; the host's terminals do not exist in
 * it.
 */
#include "base/err.h"

/* Fills root_fd/dev. Runs in the sandbox's mount namespace, before the pivot. */
ERR_CHECKED int devices_fill(int root_fd, struct err *e);
