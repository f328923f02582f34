#pragma once
/*
 * beneath - directories below one that is shown, by way of links that were there before.
 *
 * For names that are looked at before anything runs. A link on the way is followed if it leads to
 * what lies below the same directory: elsewhere nobody inside can write by that name.
 */

/*
 * The directory that base_fd/name would lie in, now the caller's to close, or -errno. -ELOOP: a
 * link leads elsewhere.
 */
int beneath_open_parent(int base_fd, const char *name);
