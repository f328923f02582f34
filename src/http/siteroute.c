/* siteroute - routes of the API about the ports and services of a sandbox; see siteroute.h. */
#include "http/siteroute.h"

#include "base/mem.h"
#include "base/timestamp.h"
#include "http/origin.h"
#include "http/sitelink.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int siteroute_decode_service(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	(void)body;
	(void)e;
	*ret = json_pack("{s:s, s:s}", "name", x->parts[0], "service", x->parts[1]);
	return 0;
}

static int read_port(const struct webcall *x, json_int_t *ret, struct err *e)
{
	size_t len = strspn(x->parts[1], "0123456789");

	if (len == 0 || len > 5 || x->parts[1][len])
		return err_set(e, ERR_INVALID, "'%.20s' is no port", x->parts[1]);
	*ret = (json_int_t)strtoul(x->parts[1], NULL, 10);
	return 0;
}

/* The body has this member alone, or nothing. */
static int check_members(const json_t *body, const char *name, struct err *e)
{
	const char *member;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)body, member,
			    value) if (strcmp(member, name) !=
				       0) return err_set(e, ERR_INVALID,
							 "unknown parameter '%.60s'", member);
	return 0;
}

int siteroute_decode_access(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	json_t *is_public = json_object_get(body, "public");
	json_int_t port = 0;

	if (check_members(body, "public", e) < 0 || read_port(x, &port, e) < 0)
		return -1;
	if (!json_is_boolean(is_public))
		return err_set(e, ERR_INVALID, "the body is {\"public\": true} or false");
	*ret = json_pack("{s:s, s:I, s:O}", "name", x->parts[0], "port", port, "public", is_public);
	return 0;
}

/* The operation tells whether the caller may; the link is made from the id that it tells. */
int siteroute_decode_link(struct webcall *x, json_t *body, json_t **ret, struct err *e)
{
	const json_t *life = json_object_get(body, "expires_s");
	json_int_t port = 0;

	if (check_members(body, "expires_s", e) < 0 || read_port(x, &port, e) < 0)
		return -1;
	x->link_life_s = life ? (uint64_t)json_integer_value(life) : SITELINK_DEFAULT_S;
	if (life && (!json_is_integer(life) || json_integer_value(life) < 1 ||
		     json_integer_value(life) > SITELINK_MAX_S))
		return err_set(e, ERR_INVALID, "the body is {\"expires_s\": 1 to %u}, or empty",
			       SITELINK_MAX_S);
	*ret = json_pack("{s:s, s:I, s:b}", "name", x->parts[0], "port", port, "look", 1);
	return 0;
}

static void format_url(const struct webcall *x, const char *token, char *out, size_t size)
{
	const struct origin_place *p = connection_place(x->connection);
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&p->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&p->address;
	unsigned port =
		p->is_unix ? 0
			   : ntohs(p->address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
	char colon[8] = "";

	if (port && port != (p->is_tls ? 443u : 80u))
		(void)snprintf(colon, sizeof(colon), ":%u", port);
	(void)snprintf(out, size, "%s://%s-%s.%s%s/?" SITELINK_NAME "=%s",
		       p->is_tls ? "https" : "http", x->parts[1], x->parts[0],
		       x->api->domain ? x->api->domain : "localhost", colon, token);
}

void siteroute_encode_link(struct webcall *x, json_t *result)
{
	uint64_t end_s = (uint64_t)time(NULL) + x->link_life_s;
	char token[SITELINK_TOKEN_MAX_BYTES], url[512], when[TIMESTAMP_TEXT_MAX_BYTES];

	if (!webcall_take_success(x, result))
		return;
	sitelink_make(&x->api->link, json_string_value(json_object_get(result, "id")),
		      (uint32_t)strtoul(x->parts[1], NULL, 10), end_s, token);
	json_decref(result);
	format_url(x, token, url, sizeof(url));
	webcall_reply_data(x->connection, 201,
			   json_pack("{s:s, s:s, s:s}", "url", url, "token", token, "expires",
				     timestamp_format(end_s * 1000, when)));
}
