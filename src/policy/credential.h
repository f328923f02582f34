#pragma once
/*
 * credential - paths that need care when a directory of the host is shown to a sandbox.
 *
 * In a home directory: where programs keep keys, tokens, cookies and histories; they are
 * masked. In a workspace: what a program outside would run or obey later; read-only inside.
 */
#include <stddef.h>

extern const char *const credential_home[]; /* relative to the home directory */
extern const size_t credential_home_count;

extern const char *const credential_protected[]; /* relative to the workspace */
extern const size_t credential_protected_count;
