#pragma once
/*
 * credential - paths that need protection when a host directory is shown to a sandbox.
 *
 * In /etc: files that any local user may read but a sandbox should not. In a home directory: keys,
 * tokens, cookies and histories; they are masked. In a workspace: files that a program outside
 * would later run or obey; they are read-only inside.
 */
#include <stdbool.h>
#include <stddef.h>

extern const char *const credential_etc[]; /* relative to /etc */
extern const size_t credential_etc_count;

extern const char *const credential_home[]; /* relative to the home directory */
extern const size_t credential_home_count;

struct credential_protected {
	const char *path;    /* relative to the workspace */
	bool is_pinned_only; /* writable, but cannot be moved away and replaced */
	bool is_kept_free;   /* --protect-new strict: if missing, create a placeholder */
	bool is_watched;     /* --protect-new watch: if it appears, quarantine it */
	const char *text;    /* content of a placeholder file; NULL: an empty directory */
};
extern const struct credential_protected credential_protected[];
extern const size_t credential_protected_count;

/* Likewise, relative to a git directory. */
extern const struct credential_protected credential_git[];
extern const size_t credential_git_count;
