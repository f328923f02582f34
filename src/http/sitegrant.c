/*
 * sitegrant - may this request reach a sandbox? See sitegrant.h.
 *
 * A page in the user's browser can send requests to any name below localhost. Where no key is asked
 * for, nothing else tells it from the user: so requests that browsers mark as another origin's are
 * refused, but for following a link (navigation), and for pages of the same sandbox's other ports.
 */
#include "http/sitegrant.h"

#include "base/buf.h"
#include "base/mem.h"
#include "http/api.h"
#include "http/sitereach.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define BEARER "Bearer "

void sitegrant_done(struct sitegrant *g)
{
	free(g->target);
	free(g->token);
	*g = (struct sitegrant){ 0 };
}

/* ---- pages of other origins ---- */

static bool is_navigation(const struct head *h)
{
	const char *mode = head_get(h, "sec-fetch-mode");

	return mode && strcasecmp(mode, "navigate") == 0 &&
	       (strcmp(h->method, "GET") == 0 || strcmp(h->method, "HEAD") == 0);
}

static bool is_from_other_page(const struct api *a, const struct head *h, const struct site *s)
{
	const char *site = head_get(h, "sec-fetch-site"), *origin = head_get(h, "origin");

	if (origin)
		return !site_is_own_origin(s, origin, a->domain);
	return site && strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0 &&
	       !is_navigation(h);
}

/* ---- tokens ---- */

static bool is_ours(const char *text, size_t name_len)
{
	return name_len == strlen(SITELINK_NAME) && memcmp(text, SITELINK_NAME, name_len) == 0;
}

/* Copies the target without our parameter, and takes its value. */
static void take_parameter(const char *target, struct sitegrant *g)
{
	size_t path_len = strcspn(target, "?");
	struct buf out;

	buf_init(&out, HEAD_MAX_BYTES);
	buf_add(&out, target, path_len);
	for (const char *at = target + path_len; *at;) {
		size_t len = strcspn(at + 1, "&"), name_len = strcspn(at + 1, "=&");

		if (!is_ours(at + 1, name_len))
			buf_addf(&out, "%s%.*s", out.len == path_len ? "?" : "&", (int)len, at + 1);
		else if (!g->token && name_len < len)
			g->token = mem_dup_bytes(at + 1 + name_len + 1, len - name_len - 1);
		at += 1 + len;
	}
	g->target = mem_dup(buf_text(&out));
	buf_done(&out);
	g->sets_cookie = g->token != NULL;
}

/* The next "name=value" of a Cookie field; returns its length, 0 at the end. */
static size_t next_cookie(const char **at)
{
	*at += strspn(*at, "; \t");
	return strcspn(*at, ";");
}

static void take_cookie(const struct head *h, struct sitegrant *g)
{
	for (unsigned i = 0; i < h->field_count && !g->token; i++) {
		const char *at = h->fields[i].value;
		size_t len;

		if (strcmp(h->fields[i].name, "cookie") != 0)
			continue;
		for (; (len = next_cookie(&at)) > 0; at += len) {
			size_t name_len = strcspn(at, "=;");

			if (is_ours(at, name_len) && name_len < len && !g->token)
				g->token = mem_dup_bytes(at + name_len + 1, len - name_len - 1);
		}
	}
}

void sitegrant_add_cookies(const struct head *h, struct buf *out)
{
	bool has_begun = false;

	for (unsigned i = 0; i < h->field_count; i++) {
		const char *at = h->fields[i].value;
		size_t len;

		if (strcmp(h->fields[i].name, "cookie") != 0)
			continue;
		for (; (len = next_cookie(&at)) > 0; at += len) {
			if (is_ours(at, strcspn(at, "=;")))
				continue;
			buf_addf(out, "%s%.*s", has_begun ? "; " : "Cookie: ", (int)len, at);
			has_begun = true;
		}
	}
	if (has_begun)
		buf_add(out, "\r\n", 2);
}

/* ---- judging ---- */

static const char *refuse(struct sitegrant *g, int status, const char *why)
{
	g->status = status;
	return why;
}

/* 1: it has a key of ours; 0: none; -1: a wrong one, in our own field. */
static int find_key(const struct api *a, const struct head *h, struct sitegrant *g)
{
	const char *own = head_get(h, SITE_KEY_HEADER);
	const char *standard = head_get(h, "authorization");
	const struct keys_key *key = own ? keys_find(&a->keys, own) : NULL;

	if (own && !key)
		return -1;
	if (!key && standard && strncasecmp(standard, BEARER, strlen(BEARER)) == 0) {
		key = keys_find(&a->keys, standard + strlen(BEARER));
		g->hides_authorization = key != NULL;
	}
	if (!key)
		return 0;
	g->kind = SITEGRANT_KEY;
	g->owner = keys_owner(&a->keys, key);
	return 1;
}

const char *sitegrant_judge(const struct api *a, const struct connection *c, const struct site *s,
			    struct sitegrant *ret)
{
	return sitegrant_judge_head(a, c, &connection_request(c)->head, s, ret);
}

const char *sitegrant_judge_head(const struct api *a, const struct connection *c,
				 const struct head *h, const struct site *s, struct sitegrant *ret)
{
	const char *why = s->way == SITE_BY_HOST ? NULL : api_check_origin(c);
	int found;

	*ret = (struct sitegrant){ .kind = SITEGRANT_STRANGER };
	take_parameter(s->target, ret);
	if (why)
		return refuse(ret, 403, why);
	found = find_key(a, h, ret);
	if (found < 0)
		return refuse(ret, 401, "Invalid API key");
	if (found > 0)
		return NULL;
	if (a->keys.count == 0 || connection_place(c)->is_unix) {
		ret->kind = SITEGRANT_OPEN;
		if (s->way == SITE_BY_HOST && is_from_other_page(a, h, s))
			return refuse(ret, 403, "Requests of this origin are not allowed");
		return NULL;
	}
	if (!ret->token)
		take_cookie(h, ret);
	/* a program that asks with the token gets its answer at once */
	ret->sets_cookie = ret->sets_cookie && s->way == SITE_BY_HOST && is_navigation(h);
	return NULL;
}

bool sitegrant_is_open(struct sitegrant *g, const struct sitelink *link, const struct sitereach *r,
		       uint32_t port)
{
	bool has_link = g->token && sitelink_check(link, g->token, sitereach_facts(r)->id, port,
						   (uint64_t)time(NULL));

	/* only a good token is written into an answer; "//x" would lead to another host */
	g->sets_cookie = g->sets_cookie && has_link && g->target[1] != '/';
	/* the main port is known to those who may wake the sandbox alone */
	return has_link || (port && sitereach_is_public(r, port));
}

void sitegrant_redirect(const struct sitegrant *g, bool is_tls, struct evbuffer *out)
{
	evbuffer_add_printf(out,
			    "HTTP/1.1 302 Found\r\nLocation: %s\r\n"
			    "Set-Cookie: " SITELINK_NAME "=%s; Path=/; HttpOnly; SameSite=Lax%s\r\n"
			    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
			    "Content-Length: 0\r\nConnection: close\r\n\r\n",
			    g->target, g->token, is_tls ? "; Secure" : "");
}
