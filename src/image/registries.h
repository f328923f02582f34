#pragma once
/*
 * registries - the user's configuration of registries.
 *
 * The table [registries."HOST"] of $XDG_CONFIG_HOME/agentkernel/config.toml (~/.config/...):
 * mirrors, a list of base addresses to try first; insecure, whether plain HTTP and unverified
 * certificates are allowed; private-redirects, whether a public registry may redirect to addresses
 * that are not public; and timeout, the maximum duration of a pull. Only the user's own file is
 * read, so that a project cannot redirect a pull.
 */
#include "base/err.h"
#include "image/credentials.h"

#include <stdbool.h>
#include <stdint.h>

#define REGISTRIES_FILE_MAX_BYTES (1u << 20)
#define REGISTRIES_MIRRORS_MAX 16u
#define REGISTRIES_TIMEOUT_DEFAULT_MS (6ull * 3600 * 1000) /* of one pull */
#define REGISTRIES_TIMEOUT_MIN_MS 1000ull
#define REGISTRIES_TIMEOUT_MAX_MS (7ull * 24 * 3600 * 1000)

struct registries {
	char **mirrors; /* NULL-ended; NULL: none */
	bool is_insecure;
	bool has_private_redirects;
	uint64_t timeout_ms; /* REGISTRIES_TIMEOUT_DEFAULT_MS if not set */
};

ERR_CHECKED int registries_load(char *const *environ_list, const char *host, struct registries *ret,
				struct err *e);
void registries_done(struct registries *r); /* may run twice */

/* Options for finding credentials, from the same environment. */
struct credentials_options registries_credentials(char *const *environ_list);
