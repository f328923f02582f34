#pragma once
/*
 * confine - restricts the gate process itself, in case a packet takes it over.
 *
 * It can still use the network like an ordinary program, use the sockets of one sandbox, read what
 * its user may read in /etc, where the resolver's files are, and append to one log. It cannot be
 * traced, start a program, open any other file, or signal another process.
 */
#include "base/err.h"

/* Call first: sets the maximum of descriptors, bounded memory, no core files. */
void confine_set_limits(void);

/* Cannot be undone. Uses Landlock if the kernel has it. */
ERR_CHECKED int confine_self(struct err *e);
