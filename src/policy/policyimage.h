#pragma once
/*
 * policyimage - what an image adds to a policy: who the command is, where it starts, its variables.
 *
 * The host image's accounts are ours and known at once; another image's come with it. What an
 * option says wins over the image, and a profile that does not run as root does not run as the
 * image's root. Pure code.
 */
#include "policy/policy.h"

/* Last step of resolving: the user, as far as it is known, and what follows from it. */
ERR_CHECKED int policyimage_settle(struct policy *p, struct err *e);

/* What an image says about the commands started from it. All borrowed; lists end in NULL. */
struct policyimage {
	char *const *env;
	const char *user;    /* "" for none */
	const char *workdir; /* "" for none */
	const char *passwd;  /* texts of its own files */
	const char *group;
};

/* The image cannot be had and need not be: back to this machine's own programs. */
ERR_CHECKED int policyimage_use_host(struct policy *p, const char *origin, struct err *e);

/* Once, and only where the image is not the host's. */
ERR_CHECKED int policyimage_apply(struct policy *p, const struct policyimage *image, struct err *e);
