/*
 * origin - checks that a request is meant for us; see origin.h.
 *
 * Accepted as Host. On loopback: localhost, 127.0.0.1, [::1] and the address that we listen on,
 * with our port or none; also with keys, because some routes need none. On other addresses: any
 * name, because only the network knows which names lead here; a key is needed there, which a web
 * page does not have. On unix sockets: localhost, 127.0.0.1 or [::1] with any port, "unix" and
 * "agentkernel", which programs send if they must put some name into a URL.
 *
 * Accepted as Origin: on loopback the same names, with our scheme and port; elsewhere the value of
 * Host, with our scheme; on a unix socket none. Requests that a browser marks as cross-site or
 * same-site (another port of ours) are refused as well, because a GET from a page has no Origin.
 */
#include "http/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define HTTP_PORT 80u
#define HTTPS_PORT 443u

/* ---- parsing ---- */

static bool read_port(const char *text, uint16_t *ret)
{
	unsigned value = 0;

	if (!*text || strlen(text) > 5 || strspn(text, "0123456789") != strlen(text) ||
	    *text == '0')
		return false;
	for (; *text; text++)
		value = value * 10 + (unsigned)(*text - '0');
	*ret = (uint16_t)value;
	return value <= UINT16_MAX;
}

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

static bool copy_host(const char *text, size_t len, char out[ORIGIN_HOST_MAX_BYTES + 1])
{
	if (len == 0 || len > ORIGIN_HOST_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
	out[len] = '\0';
	return true;
}

static bool is_plain_host(const char *host)
{
	for (; *host; host++)
		if (!is_host_char(*host))
			return false;
	return true;
}

bool origin_parse_authority(const char *text, struct origin_authority *ret)
{
	struct origin_authority a = { .port = 0 };
	bool is_bracketed = *text == '[';
	const char *end = is_bracketed ? strchr(text, ']') : text + strcspn(text, ":");
	const char *rest = is_bracketed && end ? end + 1 : end;
	unsigned char bytes[sizeof(struct in6_addr)];

	text += is_bracketed;
	if (!end || !copy_host(text, (size_t)(end - text), a.host))
		return false;
	if (*rest && (*rest != ':' || !read_port(rest + 1, &a.port)))
		return false;
	a.is_address = inet_pton(is_bracketed ? AF_INET6 : AF_INET, a.host, bytes) == 1;
	if (is_bracketed ? !a.is_address : !is_plain_host(a.host))
		return false;
	*ret = a;
	return true;
}

bool origin_is_json_type(const char *text)
{
	static const char json[] = "application/json";

	if (!text || strncasecmp(text, json, sizeof(json) - 1) != 0)
		return false;
	text += sizeof(json) - 1;
	text += strspn(text, " \t");
	if (!*text)
		return true;
	if (*text++ != ';')
		return false;
	text += strspn(text, " \t");
	return strcasecmp(text, "charset=utf-8") == 0 || strcasecmp(text, "charset=\"utf-8\"") == 0;
}

/* ---- our own names ---- */

static uint16_t place_port(const struct origin_place *p)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&p->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&p->address;

	return ntohs(p->address.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

static uint16_t scheme_port(const struct origin_place *p)
{
	return p->is_tls ? HTTPS_PORT : HTTP_PORT;
}

static bool is_local_name(const struct origin_authority *a)
{
	return strcmp(a->host, "localhost") == 0 ||
	       (a->is_address &&
		(strcmp(a->host, "127.0.0.1") == 0 || strcmp(a->host, "::1") == 0));
}

static bool is_own_address(const struct origin_place *p, const struct origin_authority *a)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&p->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&p->address;
	struct in6_addr bytes = { 0 };

	if (!a->is_address)
		return false;
	if (p->address.ss_family == AF_INET)
		return inet_pton(AF_INET, a->host, &bytes) == 1 &&
		       memcmp(&bytes, &v4->sin_addr, sizeof(v4->sin_addr)) == 0;
	return inet_pton(AF_INET6, a->host, &bytes) == 1 &&
	       memcmp(&bytes, &v6->sin6_addr, sizeof(bytes)) == 0;
}

static bool is_own_host(const struct origin_place *p, const struct origin_authority *a)
{
	if (p->is_unix)
		return is_local_name(a) || strcmp(a->host, "unix") == 0 ||
		       strcmp(a->host, "agentkernel") == 0;
	if (!p->is_loopback)
		return true;
	return (is_local_name(a) || is_own_address(p, a)) &&
	       (a->port == 0 || a->port == place_port(p));
}

/* In an origin a missing port means the scheme's default. */
static bool is_own_origin(const struct origin_place *p, const struct origin_authority *host,
			  const char *text)
{
	const char *scheme = p->is_tls ? "https://" : "http://";
	struct origin_authority a;

	if (p->is_unix || strncasecmp(text, scheme, strlen(scheme)) != 0 ||
	    !origin_parse_authority(text + strlen(scheme), &a))
		return false;
	if (a.port == 0)
		a.port = scheme_port(p);
	if (p->is_loopback)
		return a.port == place_port(p) && is_own_host(p, &a);
	return host && strcmp(a.host, host->host) == 0 &&
	       a.port == (host->port ? host->port : scheme_port(p));
}

static bool is_foreign_site(const char *text)
{
	return strcasecmp(text, "same-origin") != 0 && strcasecmp(text, "none") != 0;
}

const char *origin_check(const struct origin_place *p, const struct origin_claims *c)
{
	struct origin_authority a;

	/* HTTP/1.0 has none; every browser sends one */
	if (c->host && (!origin_parse_authority(c->host, &a) || !is_own_host(p, &a)))
		return p->is_unix ? "This Host is not ours (use localhost)"
				  : "This Host is not ours";
	if ((c->origin && !is_own_origin(p, c->host ? &a : NULL, c->origin)) ||
	    (c->fetch_site && is_foreign_site(c->fetch_site)))
		return "Requests of this origin are not allowed";
	return NULL;
}
