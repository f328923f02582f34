#pragma once
/*
 * etcprivate - lists the names in /etc that are not world-readable.
 *
 * The host image shows what any local user may read. To the kernel an ordinary caller's sandbox has
 * the caller's id and groups, so it could read more; the names listed here are hidden by
 * sandbox/hostetc. (A root caller's sandbox has its own ids, which give no extra access.)
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
