#pragma once
/*
 * environment - the environment of a command.
 *
 * Always built from scratch: a few fixed variables, then (permissive profile) the caller's, except
 * those that look like a secret or refer to a service of the host, then those requested by name.
 */
#include <stdbool.h>

struct policy;
struct policy_caller;

#define ENVIRONMENT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* A NULL-terminated list of "NAME=value"; free with environment_free(). `term` may be NULL. */
char **environment_build(const struct policy *p, const struct policy_caller *caller,
			 const char *term);
void environment_free(char **list);

/* Returns the value in such a list, or NULL. */
const char *environment_get(char *const *list, const char *name);

/* Does "NAME=value" look like a secret, by its name or by a password in a URL? */
bool environment_is_secret(const char *entry);

/* Is the caller's "NAME=value" passed without being requested by name? */
bool environment_is_passed(const struct policy *p, const char *entry);

/* Lists the caller's variables that are not passed although the policy passes the environment. */
struct buf;
void environment_format_dropped(const struct policy *p, const struct policy_caller *caller,
				struct buf *out);
