#pragma once
/*
 * credential - paths that need care when a directory of the host is shown to a sandbox.
 *
 * In /etc: what any user of this machine may read and a sandbox has no business to know. In a home
 * directory: where programs keep keys, tokens, cookies and histories; they are
 * masked. In a workspace: what a program outside would run or obey later; read-only inside.
 */
#include <stdbool.h>
#include <stddef.h>

extern const char *const credential_etc[]; /* relative to /etc */
extern const size_t credential_etc_count;

extern const char *const credential_home[]; /* relative to the home directory */
extern const size_t credential_home_count;

struct credential_protected {
	const char *path;    /* relative to the workspace */
	bool is_pinned_only; /* writable, but cannot be moved aside to make another in its place */
	bool is_kept_free;   /* --protect-new strict: where it is missing, a placeholder is made */
	bool is_watched;  /* --protect-new watch: where it is missing, it is taken away once made */
	const char *text; /* of the placeholder, if that is a file; NULL: an empty directory */
};
extern const struct credential_protected credential_protected[];
extern const size_t credential_protected_count;

/* The same for a git directory, relative to it. */
extern const struct credential_protected credential_git[];
extern const size_t credential_git_count;
