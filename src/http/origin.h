#pragma once
/*
 * origin - is a request meant for us, and by a page of ours or by no page at all?
 *
 * A web page in the user's browser can send requests to this machine, to a name of its own choosing
 * that resolves to it. So Host has to be a name of the place that was connected to, and Origin,
 * which browsers add and programs do not, has to be that place's own. Both are taken apart, never
 * searched: what is not exactly an authority is refused. Pure; hostile: every byte of the texts.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_HOST_MAX_BYTES 255u

/* Where a connection came in. */
struct origin_place {
	bool is_unix, is_tls, is_loopback;
	struct sockaddr_storage address; /* unless it is a unix socket */
};

/* "host", "host:port", "1.2.3.4", "[::1]:80" */
struct origin_authority {
	char host[ORIGIN_HOST_MAX_BYTES + 1]; /* lower case, without brackets */
	bool is_address;                      /* IPv6 was in brackets */
	uint16_t port;                        /* 0: none given */
};
bool origin_parse_authority(const char *text, struct origin_authority *ret);

/* What a request says about where it comes from; NULL where the header is missing. */
struct origin_claims {
	const char *host, *origin;
	const char *fetch_site; /* Sec-Fetch-Site: browsers say it also where they send no Origin */
};
/* NULL: it may go on; else what is wrong. */
const char *origin_check(const struct origin_place *p, const struct origin_claims *c);

/* "application/json", perhaps with a charset of utf-8: what no page can send without asking. */
bool origin_is_json_type(const char *content_type);
