#pragma once
/*
 * builder - does what a plan says: the stages that are wanted, those that do not need each other at
 * once, and the image of the target.
 *
 * Steps that were done before are taken from the store (build/stepcache). The others run in
 * processes of their own; a step's layer is packed while the next one runs.
 */
#include "base/err.h"
#include "build/plan.h"
#include "engine/images.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct ignore;
struct policy;

#define BUILDER_SECRETS_MAX 32u
#define BUILDER_SECRET_MAX_BYTES (512u << 10)
#define BUILDER_TAIL_MAX_BYTES (64u << 10) /* of a step's output, shown when it fails */

struct builder_secret {
	char *id;
	char *value; /* its bytes */
	size_t len;
};

struct builder_options {
	const struct ak *ak;
	struct policy *policy; /* of each RUN; a process of its own changes its copy */
	const struct plan *plan;
	int context_fd; /* -1: there is none */
	const struct ignore *ignored;
	const char *name; /* of the image; NULL: it gets none */
	const struct builder_secret *secrets;
	unsigned secret_count;
	uint64_t epoch_s; /* SOURCE_DATE_EPOCH: later times become this; 0: none */
	bool has_no_cache;
	bool shows_output; /* of steps that succeed, too */
	bool is_quiet;     /* no progress of pulls */
	enum images_pull pull;
	void (*say)(void *context, const char *line); /* what happens, line by line */
	void *context;
};

struct builder_result {
	char digest[REFERENCE_DIGEST_MAX_BYTES]; /* of the manifest */
	char id[RECORD_ID_BYTES + 1];            /* of the record */
	unsigned steps, cached;
};

ERR_CHECKED int builder_run(const struct builder_options *o, struct builder_result *ret,
			    struct err *e);
