#pragma once
/*
 * runclean - takes out of a sandbox's upper directory what each start writes into a root: the files
 * about names (/etc/hosts), and directories and mount points that the layers below lack and that
 * are still empty. What is left is what the commands did.
 */
#include "base/err.h"

enum runclean_flags {
	RUNCLEAN_MACHINE_ID = 1 << 0, /* of a named sandbox: it has one of its own */
};

/*
 * `lower` are the names of the layers in layers_fd, highest first, separated by ':'; `upper` is
 * beneath it, too. `paths` are further mount points and directories, absolute, NULL-ended.
 */
ERR_CHECKED int runclean_upper(int layers_fd, const char *lower, const char *upper,
			       const char *const *paths, unsigned flags, struct err *e);
