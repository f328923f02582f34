#pragma once
/*
 * hostetc - the /etc of the host image.
 *
 * The host's programs need its /etc: the loader's cache, certificates, Debian's alternatives and
 * the configuration of installed packages. The sandbox sees every file that any local user may
 * read, live and read-only, except names that tend to hold secrets or identify the machine's owner
 * (policy/credential) and files that only this caller may read (state/etcprivate). A few small
 * files (accounts, names) are the sandbox's own.
 *
 * For a fresh sandbox /etc is an overlay: the host's /etc below, a layer of whiteouts that hides
 * names, a directory of the sandbox's tmpfs on top. A named sandbox keeps its own /etc in its root,
 * which is an overlay and cannot hold the upper directory of a second one: the host's /etc is
 * mounted read-only at HOSTETC_SIDE and each of its names is a link there. The overlay also makes
 * unix sockets and fifos of the host unreachable, because they get inodes of its own.
 */
#include "base/err.h"

#define HOSTETC_HOST_NAME "sandbox" /* of an unnamed sandbox */
#define HOSTETC_TEXT_MAX_BYTES 256
#define HOSTETC_ENTRIES_MAX 1024u /* entries of /etc that a named sandbox gets links for */
/* Directly below the root, like /etc: relative links in it resolve to the same targets. */
#define HOSTETC_SIDE ".etc"

struct rootfs_options;

/* For a fresh sandbox, once its bind mounts are restricted. Uses "sys", which /sys covers later. */
ERR_CHECKED int hostetc_mount(int root_fd, const struct rootfs_options *o, struct err *e);

/* For a named sandbox: writes files and links into the lowest layer of its root. */
ERR_CHECKED int hostetc_write(int base_fd, const struct rootfs_options *o, struct err *e);

/* For a named sandbox: mounts the host's /etc at HOSTETC_SIDE. staging_fd is invisible inside. */
ERR_CHECKED int hostetc_mount_side(int root_fd, int staging_fd, const struct rootfs_options *o,
				   struct err *e);

/* The small files about host names, for any image. */
struct hostetc_texts {
	char hosts[HOSTETC_TEXT_MAX_BYTES];
	char host_name[HOSTETC_TEXT_MAX_BYTES];
	char machine_id[HOSTETC_TEXT_MAX_BYTES];
};
void hostetc_format(const struct rootfs_options *o, struct hostetc_texts *ret);
