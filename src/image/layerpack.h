#pragma once
/*
 * layerpack - a directory as a tar archive, the way back from a root directory to a layer.
 */
#include "base/err.h"

/*
 * Writes the tree beneath dir_fd as an uncompressed tar: owners, modes, times, links, holes,
 * user.* and security.capability attributes. Sockets are left out, as are devices, which
 * layer_unpack() would refuse, and user.overlay.* attributes. The same tree gives the same bytes:
 * names are sorted in each directory. `excluded` are names at the top, NULL-ended.
 */
ERR_CHECKED int layerpack_write(int dir_fd, int archive_fd, const char *const *excluded,
				struct err *e);
