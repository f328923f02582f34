#pragma once
/*
 * op_build - an image from a Dockerfile.
 *
 * Decides what a build may do: its commands run under the request's policy (network rules, limits,
 * profile), of which what shows the caller's files is refused by name. Only the user builds: a
 * caller of a server does not choose what is read as a context.
 */
#include "base/err.h"
#include "build/builder.h"
#include "build/committer.h"
#include "ops/request.h"

struct ak;
struct op_events;

#define OP_BUILD_CONTEXT_MAX_BYTES (64ull << 30) /* of an archive on stdin */

struct op_build_args {
	struct request *request; /* not resolved yet */
	const char *text;        /* a Dockerfile that needs no context; NULL: in a file */
	const char *context;     /* a directory, "-", or a repository's address; NULL: none */
	const char *file;        /* NULL: the context's Dockerfile; "-": stdin */
	const char *name;        /* of the image; NULL: it gets none */
	const char *target;      /* NULL: the last stage */
	char *const *build_args; /* "NAME=VALUE", or "NAME" for the caller's variable; NULL: none */
	char *const *secrets;    /* "id=NAME[,src=FILE][,env=VARIABLE]"; NULL: none */
	bool has_no_cache, shows_output;
	void (*say)(void *context, const char *line);
	void *say_context;
};

struct op_build_result {
	struct builder_result built;
};

/*
 * Builds the image of a request that says how (request_build), with the request's policy. What was
 * done before is not done again, so this is quick when nothing has changed.
 */
ERR_CHECKED int op_build_for(struct request *r, const struct request_build *build,
			     const struct op_events *ev, struct err *e);

/* An image of what a named sandbox has written. */
struct op_commit_args {
	const char *name;  /* of the sandbox */
	const char *image; /* what to call it */
};
ERR_CHECKED int op_commit(struct ak *ak, const struct op_commit_args *args,
			  const struct op_events *ev, struct committer_result *ret, struct err *e);

ERR_CHECKED int op_build(struct ak *ak, const struct op_build_args *args,
			 const struct op_events *ev, struct op_build_result *ret, struct err *e);
