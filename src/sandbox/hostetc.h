#pragma once
/*
 * hostetc - the /etc of the host image.
 *
 * Programs of this machine need its /etc: the loader's cache, certificates, Debian's alternatives,
 * and whatever the packages that are installed have put there. What any local user may read is
 * shown, live and read-only, less names that tend to hold secrets or tell whose machine this is
 * (policy/credential) and less what only this caller may read (state/etcprivate). A few small
 * files (accounts, names) are the sandbox's own.
 *
 * For a fresh sandbox /etc is an overlay: this machine's below, a layer of whiteouts that hides
 * names, a directory of the sandbox's tmpfs on top. A named one keeps its own /etc on its disk,
 * where no second overlay can have its upper directory: this machine's is mounted read-only beside
 * it, at HOSTETC_SIDE, and each of its names is a link. An overlay also keeps unix sockets and
 * fifos of the host from being reached: they have inodes of its own.
 */
#include "base/err.h"

#define HOSTETC_HOST_NAME "sandbox" /* of a sandbox without a name */
#define HOSTETC_TEXT_MAX_BYTES 256
#define HOSTETC_ENTRIES_MAX 1024u /* names in /etc itself that a named sandbox gets links for */
/* At the top, as /etc is: relative links in it lead to the same places. */
#define HOSTETC_SIDE ".etc"

struct rootfs_options;

/* Fills an empty directory with what hides names: state/etclayer's, or a sandbox's own. */
ERR_CHECKED int hostetc_make_layer(int layer_fd, char *const *etc_private, struct err *e);

/* Of a fresh sandbox: its root's binds are restricted already. Hides its directories below "sys".
 */
ERR_CHECKED int hostetc_mount(int root_fd, const struct rootfs_options *o, struct err *e);

/* Of a named one: files and links, into the lowest layer of its root. */
ERR_CHECKED int hostetc_write(int base_fd, const struct rootfs_options *o, struct err *e);

/* Of a named one: this machine's /etc beside its own. staging_fd: a directory it never sees. */
ERR_CHECKED int hostetc_mount_side(int root_fd, int staging_fd, const struct rootfs_options *o,
				   struct err *e);

/* The small files about names, for any image. */
struct hostetc_texts {
	char hosts[HOSTETC_TEXT_MAX_BYTES];
	char host_name[HOSTETC_TEXT_MAX_BYTES];
	char machine_id[HOSTETC_TEXT_MAX_BYTES];
};
void hostetc_format(const struct rootfs_options *o, struct hostetc_texts *ret);
