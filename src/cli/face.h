#pragma once
/* face - becoming a program that serves others: which it is, and what it is told. */
#include "base/err.h"
#include "cli/runoptions.h"

struct face {
	char *path;
	char **words; /* ended by NULL */
	size_t count;
};

/* Finds the program; its first words are its name and ours. */
ERR_CHECKED int face_begin(struct face *f, const char *program, struct err *e);
void face_done(struct face *f);

void face_add(struct face *f, char *word); /* takes it */
void face_add_pair(struct face *f, const char *option, const char *value);
/* What was typed is the ceiling of every call; and rates. */
void face_add_ceiling(struct face *f, const struct request *r);

/* Returns only on failure. */
ERR_CHECKED int face_become(const struct face *f, char *const *environ_list, struct err *e);
