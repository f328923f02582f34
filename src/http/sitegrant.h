#pragma once
/*
 * sitegrant - may this request reach a sandbox?
 *
 * Three kinds of clients. OPEN: no key is asked for, and the request does not come from a page of
 * another origin. KEY: it has a key, and sees the sandboxes of its owner. STRANGER: everybody else,
 * who gets in by a link's token (sitelink) or because the owner made the port public; whether he
 * does is known when the sandbox was looked up.
 */
#include "http/connection.h"
#include "http/site.h"
#include "http/sitelink.h"

#include <stdbool.h>

struct api;
struct buf;
struct evbuffer;
struct sitereach;

#define SITEGRANT_NEEDS_KEY                                                                        \
	"this URL needs a key (" SITE_KEY_HEADER                                                   \
	": KEY), or a link, unless its owner makes the port public"

enum sitegrant_kind { SITEGRANT_OPEN, SITEGRANT_KEY, SITEGRANT_STRANGER };

struct sitegrant {
	enum sitegrant_kind kind;
	int status;        /* of a refusal */
	const char *owner; /* whose sandboxes it sees; NULL: all */
	char *target;      /* without our parameter */
	char *token;       /* of a link; or NULL */
	bool sets_cookie;  /* the token came in the query of a page: answer with a redirect */
	bool hides_authorization; /* that field has our key */
};

/* NULL, or why it is refused, with .status. */
const char *sitegrant_judge(const struct api *a, const struct connection *c, const struct site *s,
			    struct sitegrant *ret);
/* The same for a request of HTTP/2, whose head is not the connection's. */
const char *sitegrant_judge_head(const struct api *a, const struct connection *c,
				 const struct head *h, const struct site *s, struct sitegrant *ret);
void sitegrant_done(struct sitegrant *g); /* may run twice */

/* May this stranger in? */
bool sitegrant_is_open(struct sitegrant *g, const struct sitelink *link, const struct sitereach *r,
		       uint32_t port);

/* The answer that turns the token into a cookie, and asks again without it. */
void sitegrant_redirect(const struct sitegrant *g, bool is_tls, struct evbuffer *out);

/* Adds the request's Cookie field without our cookie, if anything is left. */
void sitegrant_add_cookies(const struct head *h, struct buf *out);
