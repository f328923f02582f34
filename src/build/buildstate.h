#pragma once
/*
 * buildstate - what a stage is at one point: its layers and the config that its image would have.
 *
 * Instructions that only describe (ENV, LABEL, CMD ...) are applied here; the others (RUN, COPY,
 * ADD, WORKDIR) read the words and variables from it.
 */
#include "base/err.h"
#include "build/dockerfile.h"
#include "build/plan.h"
#include "image/record.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

struct buf;

#define BUILDSTATE_ROWS_MAX 8192u

struct buildstate_layer {
	char name[RECORD_ID_BYTES + 1];
	char diff_id[REFERENCE_DIGEST_MAX_BYTES]; /* "": still being packed */
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	uint64_t size_bytes;
};

struct buildstate {
	char *base_id;    /* of the record below; NULL: scratch */
	char *base_lower; /* its layers, highest first, separated by ':'; "" for scratch */
	struct buildstate_layer layers[RECORD_LAYERS_MAX]; /* above it, lowest first */
	unsigned layer_count;
	char node[RECORD_ID_BYTES + 16]; /* what a step after this depends on */
	uint64_t made_s;                 /* when the last step was done */

	char **env, **args; /* "NAME=value"; the second may have a name alone */
	char **shell, **entrypoint, **cmd, **onbuild;
	bool has_cmd; /* set by this stage, not by what it is made from */
	char *user, *workdir;
	char **rows;    /* "label=a=b" and so on, for image/compose */
	char **history; /* "history=..." or "empty=..." */
};

void buildstate_init(struct buildstate *s);
void buildstate_done(struct buildstate *s);
void buildstate_copy(const struct buildstate *from,
		     struct buildstate *to); /* into an initialized one */

/* Takes what an image says. */
void buildstate_take_record(struct buildstate *s, const struct record *r, const char *lower);

/* What every stage has that is made from an image or from nothing: a PATH, if it says none. */
void buildstate_add_path(struct buildstate *s);

/* The layers, highest first, separated by ':'; `empty` if there are none. The caller frees it. */
char *buildstate_lower(const struct buildstate *s, const char *empty);

/* A word with this stage's variables. The caller frees it. */
ERR_CHECKED int buildstate_expand(const struct buildstate *s, const struct plan *p,
				  const char *text, char **ret, struct err *e);

/* The same for a here-document: quotes are ordinary. */
ERR_CHECKED int buildstate_expand_text(const struct buildstate *s, const struct plan *p,
				       const char *text, char **ret, struct err *e);

/* Is it an instruction that buildstate_apply() does? */
bool buildstate_only_describes(const struct dockerfile_instruction *i);
ERR_CHECKED int buildstate_apply(struct buildstate *s, const struct plan *p,
				 const struct dockerfile_instruction *i, struct err *e);

/* Notes a step that was done. */
void buildstate_note(struct buildstate *s, const struct dockerfile_instruction *i, bool has_layer);

/* The absolute path of a directory or a file in this stage; a slash at its end stays. */
ERR_CHECKED int buildstate_path(const struct buildstate *s, const char *text, char **ret,
				struct err *e);

/* Variables for a RUN: the build's arguments, then the image's; NULL-ended, the caller frees it. */
char **buildstate_variables(const struct buildstate *s, const struct plan *p);

/* The description for image/compose. */
void buildstate_format(const struct buildstate *s, uint64_t created_s, struct buf *out);
