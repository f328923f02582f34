#pragma once
/*
 * etcprivate - which names in /etc are not for every user of this machine.
 *
 * The host image shows what any local user may read. A sandbox of an ordinary caller has that
 * caller's id and groups for the kernel, so it could read more; what is not open to all is named
 * here, for sandbox/hostetc to hide. (A root caller's sandbox has ids of its own, which open
 * nothing.)
 *
 * Looking through /etc takes 2 ms, so the answer is kept in a file for ETCPRIVATE_KEPT_S, or until
 * something is made or removed in /etc itself. A file that loses its openness meanwhile, and that
 * the caller has a right of its own to, is hidden from the next look on.
 */
#include "base/err.h"

struct ak;

#define ETCPRIVATE_KEPT_S 60
#define ETCPRIVATE_NAMES_MAX 2048u
#define ETCPRIVATE_ENTRIES_MAX 65536u
#define ETCPRIVATE_DEPTH_MAX 12u
#define ETCPRIVATE_FILE_MAX_BYTES (256u << 10)

/* Relative to /etc, ended by NULL, for keyrows_list_free(); or NULL: there is none. */
ERR_CHECKED int etcprivate_list(const struct ak *ak, char ***ret, struct err *e);
