#pragma once
/*
 * config - parses an image's config: settings for commands started from it.
 *
 * Hostile input: JSON, as for a manifest (see manifest.h); a wrong type or a value above its
 * maximum refuses the document with the name of the field. No system calls.
 */
#include "base/err.h"
#include "image/manifest.h"

#define CONFIG_MAX_BYTES MANIFEST_CONFIG_MAX_BYTES
#define CONFIG_LIST_MAX 1024u               /* entries of Env, Entrypoint, Cmd */
#define CONFIG_TEXT_MAX_BYTES (128u << 10)  /* of one entry; the kernel's limit of a string */
#define CONFIG_TOTAL_MAX_BYTES (512u << 10) /* of all entries */

/* Owns its texts; lists end in NULL, and are never NULL themselves. */
struct config {
	char **env;
	char **entrypoint;
	char **cmd;
	char **onbuild; /* instructions for a build from this image */
	char **shell;   /* what its RUN uses; empty: /bin/sh -c */
	char *user; /* "" if absent, like the next */
	char *workdir;
	char *created; /* as written, "" if absent */
	char diff_ids[MANIFEST_LAYERS_MAX][REFERENCE_DIGEST_MAX_BYTES]; /* lowest first */
	unsigned diff_count;
};

/* Refuses an image that is not for linux or for this machine's architecture. A document that names
 * none is accepted, as in Docker. */
ERR_CHECKED int config_parse(const char *text, size_t len, struct config *ret, struct err *e);
void config_done(struct config *c); /* may run twice, and on a zeroed struct */
