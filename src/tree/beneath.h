#pragma once
/*
 * beneath - opens directories below a shared one, following only links that stay below it.
 *
 * For names that are checked before anything runs. A link is followed if its target is below the
 * same directory; through other links nobody inside can write.
 */

/*
 * Opens the parent directory of base_fd/name; the caller closes it. Returns -errno, -ELOOP if a
 * link leads elsewhere.
 */
int beneath_open_parent(int base_fd, const char *name);
