#pragma once
/*
 * origin - checks that a request is meant for us, and comes from our own page or from no page.
 *
 * A web page in the user's browser can send requests to this machine, under a name of its own
 * choosing that resolves to it. So Host must be a name of the listening address, and Origin, which
 * browsers add and programs do not, must be that address's own. Both are parsed, never searched:
 * anything but an exact authority is refused. No system calls. Hostile input: every byte of the
 * texts.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_HOST_MAX_BYTES 255u

/* The listening address of a connection. */
struct origin_place {
	bool is_unix, is_tls, is_loopback;
	struct sockaddr_storage address; /* unless it is a unix socket */
};

/* "host", "host:port", "1.2.3.4", "[::1]:80" */
struct origin_authority {
	char host[ORIGIN_HOST_MAX_BYTES + 1]; /* lower case, without brackets */
	bool is_address;                      /* an IPv6 address was in brackets */
	uint16_t port;                        /* 0: not given */
};
bool origin_parse_authority(const char *text, struct origin_authority *ret);

/* Headers about the origin of a request; NULL if the header is missing. */
struct origin_claims {
	const char *host, *origin;
	const char *fetch_site; /* Sec-Fetch-Site: browsers send it even without Origin */
};
/* NULL: allowed; otherwise the reason. */
const char *origin_check(const struct origin_place *p, const struct origin_claims *c);

/* "application/json", optionally with charset utf-8: a page cannot send this without permission. */
bool origin_is_json_type(const char *content_type);
