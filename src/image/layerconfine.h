#pragma once
/*
 * layerconfine - the walls around the process that unpacks a layer.
 *
 * Left are: reading the archive that is open already, working with files beneath one directory,
 * and writing to what else is open, such as the pipe for the answer.
 */
#include "base/err.h"

/*
 * For good: no network, no new program, no file but beneath dir_fd (Landlock, where the kernel has
 * one that can tell) and a list of system calls (layer_rules.c). No core file, few descriptors.
 */
ERR_CHECKED int layerconfine_self(int dir_fd, struct err *e);
