#pragma once
/*
 * hostetc - the /etc of the host image.
 *
 * Programs of this machine need some of its /etc (the loader's cache, certificates, Debian's
 * alternatives) and must not see the rest. So /etc is a new directory: what is in the table of
 * hostetc.c is bound read-only, a few small files are written anew, all else does not exist.
 */
#include "base/err.h"

#define HOSTETC_HOST_NAME "sandbox"
#define HOSTETC_HOSTS                                                                              \
	"127.0.0.1 localhost " HOSTETC_HOST_NAME "\n::1 localhost ip6-localhost ip6-loopback\n"

struct policy;

/* In the sandbox's mount namespace, before the pivot: fills root_fd/etc. resolv_conf may be NULL.
 */
ERR_CHECKED int hostetc_fill(int root_fd, const struct policy *p, const char *resolv_conf,
			     struct err *e);
