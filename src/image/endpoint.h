#pragma once
/*
 * endpoint - one base address of a repository: the registry itself, or a mirror.
 *
 * Always https, with one exception: a registry that may be plain (on this machine, or is_insecure)
 * is first tried with https, and used with plain HTTP if nothing there answers TLS. That is decided
 * once, quickly, before the first request. A mirror uses the scheme of its address.
 */
#include "base/err.h"
#include "image/httptransfer.h"
#include "image/login.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_ADDRESS_MAX_BYTES 1024u
#define ENDPOINT_PROBE_MAX_MS 2000u /* for a TLS answer if plain HTTP is allowed too */

struct endpoint {
	char *base; /* "https://registry.example.org:5000", without '/' at the end */
	char *name; /* for messages */
	bool is_mirror;
	bool is_unverified; /* certificates are not verified */
	bool can_be_plain;  /* not decided yet: endpoint_settle() */
	bool is_plain;
	bool is_dead; /* an unreachable mirror is not tried again */
	bool has_answered;
	struct login login;
};

void endpoint_init_registry(struct endpoint *p, const char *host, bool is_insecure);
/* "https://mirror.example.org[:PORT][/PREFIX]"; https if no scheme is given. */
ERR_CHECKED int endpoint_init_mirror(struct endpoint *p, const char *address, struct err *e);
void endpoint_done(struct endpoint *p); /* may run twice, and on a zeroed struct */

/* Decides between https and plain HTTP, once. Fails only if a tick does. */
ERR_CHECKED int endpoint_settle(struct endpoint *p, struct httptransfer_loop *l, struct err *e);
