#pragma once
/*
 * copystep - does a COPY, ADD or WORKDIR: changes the root of a stage by files from elsewhere.
 *
 * Runs in a process of its own, as the owner of the store's files: what it writes is the upper
 * directory of the step.
 */
#include "base/err.h"
#include "build/copylist.h"
#include "build/stageroot.h"

#include <stdbool.h>
#include <stdint.h>

struct helper;

struct copystep_text { /* of a here-document */
	const char *name;
	const char *content;
};

struct copystep {
	struct stageroot root;
	/* where the sources are: */
	int context_fd;              /* -1: a stage */
	const char *from_lower;      /* its layers */
	const char *where;           /* for messages */
	const struct copylist *list; /* what is copied; NULL: of .words, which are looked up here */
	char *const *words;          /* NULL-ended */
	const struct ignore *excluded;
	const struct copystep_text *texts;
	unsigned text_count;

	const char *destination; /* absolute; a slash at its end says that it is a directory */
	const char *owner;  /* "user:group" as in the image; NULL: 0:0 for a context, else theirs */
	const char *mode;   /* octal; NULL: theirs */
	bool keeps_parents; /* --parents */
	bool unpacks;       /* archives are unpacked */
	bool has_one_owner; /* all files of this caller's images belong to one id */
	bool makes_directory;         /* nothing else: WORKDIR */
	const struct helper *program; /* the image helper, if something may be unpacked */
};

ERR_CHECKED int copystep_run(const struct copystep *s, struct err *e);

/* Reads the passwd and group files of a root; "" where there is none. The caller frees both. */
void copystep_read_accounts(int root_fd, char **ret_passwd, char **ret_group);
