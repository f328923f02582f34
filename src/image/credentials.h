#pragma once
/*
 * credentials - finds credentials for a registry in Docker's configuration.
 *
 * $DOCKER_CONFIG/config.json, otherwise ~/.docker/config.json: "credHelpers" for the host, then
 * "credsStore", then "auths" (base64 of user:password, or an identity token). A helper is the
 * program docker-credential-NAME in the caller's PATH, called as Docker does ("get", the server on
 * stdin). No file, no entry, or a helper without an entry means no credentials, which is not an
 * error. A file that cannot be read or parsed, or a helper that fails, is an error with its
 * message. No error contains a secret.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define CREDENTIALS_FILE_MAX_BYTES (1u << 20)
#define CREDENTIALS_TEXT_MAX_BYTES 8192u /* of a user name, password or token */
#define CREDENTIALS_ANSWER_MAX_BYTES (64u << 10)
#define CREDENTIALS_HELPER_MAX_MS 30000

struct credentials {
	bool has_any;
	char *user;
	char *password;       /* NULL with an identity token */
	char *identity_token; /* for the token endpoint's refresh flow; or NULL */
};

/* All may be NULL. */
struct credentials_options {
	const char *docker_config; /* $DOCKER_CONFIG */
	const char *home;
	char *const *environ_list; /* environment for a helper; its PATH is searched for helpers */
	uint64_t helper_max_ms;    /* 0: CREDENTIALS_HELPER_MAX_MS */
};

/* `host` as in struct reference. */
ERR_CHECKED int credentials_find(const struct credentials_options *o, const char *host,
				 struct credentials *ret, struct err *e);
void credentials_done(struct credentials *c); /* wipes; may run twice */

/* Overwrites and frees a secret; accepts NULL. */
void credentials_wipe(char *secret);
void credentials_wipe_buf(struct buf *b);
