#pragma once
/*
 * layerconfine - confines the process that unpacks a layer.
 *
 * It can still read the open archive, use files beneath one directory, and write to other open
 * descriptors, such as the pipe for its result.
 */
#include "base/err.h"

/*
 * Cannot be undone: no network, no exec, no file except beneath dir_fd (Landlock, if the kernel's
 * version is recent enough) and a list of system calls (layer_rules.c). No core file, few
 * descriptors.
 */
ERR_CHECKED int layerconfine_self(int dir_fd, struct err *e);
