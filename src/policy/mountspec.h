#pragma once
/*
 * mountspec - parses the text forms of mounts: SRC[:DST][:ro] and DST[:SIZE].
 *
 * Reads no files: relative sources are resolved against the caller's working directory; targets are
 * normalised and must not be paths that the sandbox itself sets up.
 */
#include "base/err.h"

struct policy_mount;
struct policy_tmpfs;

/* On success the caller frees the strings in *ret. `cwd` may be NULL. */
ERR_CHECKED int mountspec_parse(const char *text, const char *cwd, struct policy_mount *ret,
				struct err *e);
ERR_CHECKED int mountspec_parse_tmpfs(const char *text, struct policy_tmpfs *ret, struct err *e);

/* Refuses "/" and the paths that the sandbox itself mounts: /proc, /sys, /dev. */
ERR_CHECKED int mountspec_check_target(const char *target, struct err *e);
