#pragma once
/*
 * confine - the gate's own walls: what it could do if a packet took it over.
 *
 * Left are: talking to the network as an ordinary program, the sockets of one sandbox, reading
 * what its user may read in /etc, where the resolver's files are, and appending to one log. It
 * cannot be looked into, start a program, open any other file, or signal anyone.
 */
#include "base/err.h"

/* First of all: as many descriptors as we may have, bounded memory, no core files. */
void confine_set_limits(void);

/* For ever. Landlock is used where the kernel has it. */
ERR_CHECKED int confine_self(struct err *e);
