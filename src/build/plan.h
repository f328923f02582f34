#pragma once
/*
 * plan - what a Dockerfile asks for: its stages, what each is made from and which need each other.
 *
 * Checks every instruction's flags and words, so that a mistake in the last line is told before the
 * first one runs. Pure: nothing is looked up.
 */
#include "base/err.h"
#include "build/dockerfile.h"

#include <stdbool.h>

#define PLAN_STAGES_MAX 256u
#define PLAN_NO_STAGE (-1)

struct plan_stage {
	char *name;                                /* as given, else its number */
	const struct dockerfile_instruction *from; /* borrowed from the Dockerfile */
	const struct dockerfile_instruction *list; /* what follows it; borrowed */
	unsigned count;
	char *base;                  /* the image, variables expanded; "scratch" */
	int base_stage;              /* PLAN_NO_STAGE: an image */
	bool needs[PLAN_STAGES_MAX]; /* stages that it is made from or copies from */
	bool is_wanted;              /* the target, or needed for it */
};

struct plan {
	const struct dockerfile *file;
	char **globals; /* "NAME=value" of the ARGs before the first FROM, and of the platform */
	char **given;   /* --build-arg; borrowed */
	struct plan_stage *stages;
	unsigned count, target;
};

/* `given` are "NAME=value", NULL-ended, and live as long as the plan. `target` NULL: the last. */
ERR_CHECKED int plan_make(const struct dockerfile *d, char **given, const char *target,
			  struct plan *ret, struct err *e);
void plan_done(struct plan *p); /* may run twice, and on a zeroed struct */

/* The stage that a --from names, PLAN_NO_STAGE if it is an image. */
int plan_find_stage(const struct plan *p, const char *name);

/* The value of "--NAME=VALUE", NULL if it is not given. */
const char *plan_flag(const struct dockerfile_instruction *i, const char *name);
/* The nth value of a flag that may stand several times; NULL: no more. */
const char *plan_nth_flag(const struct dockerfile_instruction *i, const char *name, unsigned nth);

/* Checks an instruction by itself, of a stage or of an image's ONBUILD. */
ERR_CHECKED int plan_check(const struct dockerfile *d, const struct dockerfile_instruction *i,
			   struct err *e);
