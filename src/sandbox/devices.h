#pragma once
/*
 * devices - the sandbox's /dev: six harmless nodes, its own terminals, its own shared memory.
 *
 * User namespaces cannot make device nodes, so the nodes are binds of the host's. Terminals
 * come from an own devpts instance: those of the host are not there to be opened.
 */
#include "base/err.h"

/* In the sandbox's mount namespace, before the pivot: fills root_fd/dev. */
ERR_CHECKED int devices_fill(int root_fd, struct err *e);
