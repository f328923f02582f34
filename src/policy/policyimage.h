#pragma once
/*
 * policyimage - applies an image's config to a policy: user, working directory, variables.
 *
 * The host image's accounts are ours and known in advance; those of another image are known once it
 * is pulled. Options override the image, and a profile that does not run as root does not run as
 * the image's root. No system calls.
 */
#include "policy/policy.h"

/* Last step of resolving: sets the user, as far as it is known, and values derived from it. */
ERR_CHECKED int policyimage_settle(struct policy *p, struct err *e);

/* An image's settings for its commands. All borrowed; lists end in NULL. */
struct policyimage {
	char *const *env;
	const char *user;    /* "" if none */
	const char *workdir; /* "" if none */
	const char *passwd;  /* contents of its files */
	const char *group;
};

/* Falls back to the host's programs if a detected image cannot be pulled. */
ERR_CHECKED int policyimage_use_host(struct policy *p, const char *origin, struct err *e);

/* Call once, and only if the image is not the host's. */
ERR_CHECKED int policyimage_apply(struct policy *p, const struct policyimage *image, struct err *e);
