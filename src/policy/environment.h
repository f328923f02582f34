#pragma once
/*
 * environment - the variables that a command starts with.
 *
 * Always made anew: a few fixed ones, then (permissive profile) the caller's, less what looks
 * like a secret or points at a service of the host, then the ones asked for by name.
 */
#include <stdbool.h>

struct policy;
struct policy_caller;

#define ENVIRONMENT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* A NULL-terminated list of "NAME=value"; free with environment_free(). `term` may be NULL. */
char **environment_build(const struct policy *p, const struct policy_caller *caller,
			 const char *term);
void environment_free(char **list);

/* The value in such a list, or NULL. */
const char *environment_get(char *const *list, const char *name);

/* "NAME=value" looks like a secret, by its name or by a password in an address. */
bool environment_is_secret(const char *entry);

/* "NAME=value" of the caller's goes inside without being asked for by name. */
bool environment_is_passed(const struct policy *p, const char *entry);

/* Names of the caller's variables that do not go inside although the policy passes them. */
struct buf;
void environment_format_dropped(const struct policy *p, const struct policy_caller *caller,
				struct buf *out);
