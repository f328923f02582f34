#pragma once
/*
 * config - the config of an image: what a command started from it gets.
 *
 * JSON from outside, as a manifest is (see manifest.h): a wrong type or a value beyond its maximum
 * refuses the document with the name of the field. Pure code.
 */
#include "base/err.h"
#include "image/manifest.h"

#define CONFIG_MAX_BYTES MANIFEST_CONFIG_MAX_BYTES
#define CONFIG_LIST_MAX 1024u               /* entries of Env, Entrypoint, Cmd */
#define CONFIG_TEXT_MAX_BYTES (128u << 10)  /* of one entry; the kernel's own limit of a string */
#define CONFIG_TOTAL_MAX_BYTES (512u << 10) /* of all entries */

/* Owned text; lists end in NULL, and are there also when the document has none. */
struct config {
	char **env;
	char **entrypoint;
	char **cmd;
	char *user; /* "" when absent, as the next */
	char *workdir;
	char *created; /* as written, "" when absent */
	char diff_ids[MANIFEST_LAYERS_MAX][REFERENCE_DIGEST_MAX_BYTES]; /* lowest first */
	unsigned diff_count;
};

/* Refuses what is not for linux, or not for this machine's architecture. A document that does not
 * say is taken, as Docker does. */
ERR_CHECKED int config_parse(const char *text, size_t len, struct config *ret, struct err *e);
void config_done(struct config *c); /* may run twice, and on a zeroed struct */
