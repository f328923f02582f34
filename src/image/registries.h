#pragma once
/*
 * registries - what the user's own configuration says about a registry.
 *
 * The table [registries."HOST"] of $XDG_CONFIG_HOME/agentkernel/config.toml (~/.config/...):
 * mirrors, a list of base addresses to ask first, and insecure, whether plain HTTP and unchecked
 * certificates are fine. Only the user's own file: what a project brings cannot redirect a pull.
 */
#include "base/err.h"
#include "image/credentials.h"

#include <stdbool.h>

#define REGISTRIES_FILE_MAX_BYTES (1u << 20)
#define REGISTRIES_MIRRORS_MAX 16u

struct registries {
	char **mirrors; /* NULL-ended; NULL: none */
	bool is_insecure;
};

ERR_CHECKED int registries_load(char *const *environ_list, const char *host, struct registries *ret,
				struct err *e);
void registries_done(struct registries *r); /* may run twice */

/* Where credentials are looked for, by the same environment. */
struct credentials_options registries_credentials(char *const *environ_list);
