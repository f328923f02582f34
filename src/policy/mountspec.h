#pragma once
/*
 * mountspec - the text forms of mounts: SRC[:DST][:ro] and DST[:SIZE].
 *
 * Pure text: relative sources are taken from the caller's working directory, targets are made
 * normal and checked against the places that belong to the sandbox itself.
 */
#include "base/err.h"

struct policy_mount;
struct policy_tmpfs;

/* On success the strings in *ret are the caller's to free. `cwd` may be NULL. */
ERR_CHECKED int mountspec_parse(const char *text, const char *cwd, struct policy_mount *ret,
				struct err *e);
ERR_CHECKED int mountspec_parse_tmpfs(const char *text, struct policy_tmpfs *ret, struct err *e);

/* Refuses "/" and the places that the sandbox itself makes: /proc, /sys, /dev. */
ERR_CHECKED int mountspec_check_target(const char *target, struct err *e);
