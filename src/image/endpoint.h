#pragma once
/*
 * endpoint - one base address that a repository is asked for: the registry itself, or a mirror.
 *
 * https, always, with one exception: a registry that may be plain (this machine's own, or
 * is_insecure) is first tried in https, and spoken to in plain HTTP when nothing there answers TLS.
 * That is decided once, quickly, before the first question. A mirror speaks what its address says.
 */
#include "base/err.h"
#include "image/httptransfer.h"
#include "image/login.h"
#include "image/reference.h"

#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_ADDRESS_MAX_BYTES 1024u
#define ENDPOINT_PROBE_MAX_MS 2000u /* for TLS to answer where plain HTTP is fine too */

struct endpoint {
	char *base; /* "https://registry.example.org:5000", no '/' at the end */
	char *name; /* for people */
	bool is_mirror;
	bool is_unverified; /* any certificate will do */
	bool can_be_plain;  /* not yet decided: endpoint_settle() */
	bool is_plain;
	bool is_dead; /* a mirror that cannot be reached is not asked again */
	bool has_answered;
	struct login login;
};

void endpoint_init_registry(struct endpoint *p, const char *host, bool is_insecure);
/* "https://mirror.example.org[:PORT][/PREFIX]"; https when no protocol is named. */
ERR_CHECKED int endpoint_init_mirror(struct endpoint *p, const char *address, struct err *e);
void endpoint_done(struct endpoint *p); /* may run twice, and on a zeroed struct */

/* Decides between https and plain HTTP, once. Fails only when a tick does. */
ERR_CHECKED int endpoint_settle(struct endpoint *p, struct httptransfer_loop *l, struct err *e);
