#pragma once
/*
 * site - which sandbox and port a request is for, if it is for a sandbox at all.
 *
 *   Host            PORT-NAME.localhost, NAME.localhost, and the same below --domain
 *   path            /sandboxes/NAME/proxy/PORT/...
 *   header          Agentkernel-Sandbox: NAME, Agentkernel-Port: PORT
 *
 * A name below localhost or --domain never reaches the API, and a page on such a name has an origin
 * of its own. A page that came by path has the API's origin, so it is sandboxed by a header
 * (http/siterelay). No system calls. Hostile input: every byte of the texts.
 */
#include "http/head.h"

#include <stdbool.h>
#include <stdint.h>

#define SITE_NAME_MAX_BYTES 63u
#define SITE_KEY_HEADER "agentkernel-key"
#define SITE_SANDBOX_HEADER "agentkernel-sandbox"
#define SITE_PORT_HEADER "agentkernel-port"

enum site_way { SITE_NONE, SITE_BY_HOST, SITE_BY_PATH, SITE_BY_HEADER };

struct site {
	enum site_way way;
	char name[SITE_NAME_MAX_BYTES + 1]; /* "": a host name of ours that names no sandbox */
	uint32_t port;                      /* 0: the main port */
	const char *target;                 /* what the server inside is asked for; borrowed */
	size_t prefix_len;                  /* of the path, that it does not see */
};

/* `domain` NULL: localhost alone. */
void site_find(const struct head *h, const char *domain, struct site *ret);
/* The same for the authority of an HTTP/2 request. */
void site_find_host(const char *authority, const char *domain, struct site *ret);
/* Is this origin ("http://8000-box.localhost:18888") one of the same sandbox? */
bool site_is_own_origin(const struct site *s, const char *origin, const char *domain);
