#pragma once
/*
 * hostetc - the /etc of the host image.
 *
 * Programs of this machine need some of its /etc (the loader's cache, certificates, Debian's
 * alternatives) and must not see the rest. So /etc is a new directory: what is in the table of
 * hostetc.c is bound read-only, a few small files are written anew, all else does not exist.
 */
#include "base/err.h"

#define HOSTETC_HOST_NAME "sandbox" /* of a sandbox without a name */
#define HOSTETC_TEXT_MAX_BYTES 256

struct rootfs_options;

enum hostetc_steps {
	HOSTETC_WRITE = 1 << 0, /* files, and places to bind */
	HOSTETC_BIND = 1 << 1,  /* the binds; alone, over places that may have been changed */
};

/* In the sandbox's mount namespace, before the pivot: fills root_fd/etc. Options: for writing. */
ERR_CHECKED int hostetc_fill(int root_fd, const struct rootfs_options *o, unsigned steps,
			     struct err *e);

/* The small files about names, for any image. */
struct hostetc_texts {
	char hosts[HOSTETC_TEXT_MAX_BYTES];
	char host_name[HOSTETC_TEXT_MAX_BYTES];
	char machine_id[HOSTETC_TEXT_MAX_BYTES];
};
void hostetc_format(const struct rootfs_options *o, struct hostetc_texts *ret);
