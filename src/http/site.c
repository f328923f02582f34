/* site - which sandbox and port a request is for; see site.h. */
#include "http/site.h"

#include "http/origin.h"

#include <stdio.h>
#include <string.h>

#define LOCALHOST "localhost"
#define PATH_BEGIN "/sandboxes/"
#define PATH_MIDDLE "/proxy/"

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static bool copy_name(const char *text, size_t len, char out[SITE_NAME_MAX_BYTES + 1])
{
	if (len == 0 || len > SITE_NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_name_char(text[i]))
			return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

/* The length of a port's digits at the start of the text; 0: there is no port. */
static size_t read_port(const char *text, uint32_t *ret)
{
	size_t len = strspn(text, "0123456789");
	uint32_t value = 0;

	if (len == 0 || len > 5 || text[0] == '0')
		return 0;
	for (size_t i = 0; i < len; i++)
		value = value * 10 + (uint32_t)(text[i] - '0');
	if (value > UINT16_MAX)
		return 0;
	*ret = value;
	return len;
}

/* The length of what stands before ".SUFFIX"; 0: it is not below it. */
static size_t find_below(const char *host, const char *suffix)
{
	size_t len = strlen(host), suffix_len = strlen(suffix);

	if (len < suffix_len + 2 || host[len - suffix_len - 1] != '.' ||
	    strcmp(host + len - suffix_len, suffix) != 0)
		return 0;
	return len - suffix_len - 1;
}

void site_find_host(const char *authority, const char *domain, struct site *ret)
{
	struct origin_authority a;
	size_t len, digits;

	*ret = (struct site){ .way = SITE_NONE };
	if (!origin_parse_authority(authority, &a) || a.is_address)
		return;
	len = find_below(a.host, LOCALHOST);
	if (len == 0 && domain)
		len = find_below(a.host, domain);
	if (len == 0)
		return;
	ret->way = SITE_BY_HOST;
	digits = read_port(a.host, &ret->port);
	if (digits > 0 && digits < len && a.host[digits] == '-') {
		(void)copy_name(a.host + digits + 1, len - digits - 1, ret->name);
		return;
	}
	ret->port = 0;
	(void)copy_name(a.host, len, ret->name);
}

/* "/sandboxes/NAME/proxy/PORT" and what follows. */
static bool find_path(const char *target, struct site *ret)
{
	const char *name = target + strlen(PATH_BEGIN), *end, *rest;
	size_t digits;

	if (strncmp(target, PATH_BEGIN, strlen(PATH_BEGIN)) != 0)
		return false;
	end = strchr(name, '/');
	if (!end || strncmp(end, PATH_MIDDLE, strlen(PATH_MIDDLE)) != 0 ||
	    !copy_name(name, (size_t)(end - name), ret->name))
		return false;
	digits = read_port(end + strlen(PATH_MIDDLE), &ret->port);
	rest = end + strlen(PATH_MIDDLE) + digits;
	if (digits == 0 || (*rest && *rest != '/' && *rest != '?'))
		return false;
	ret->way = SITE_BY_PATH;
	ret->prefix_len = (size_t)(rest - target);
	ret->target = *rest ? rest : "/";
	return true;
}

void site_find(const struct head *h, const char *domain, struct site *ret)
{
	const char *host = head_get(h, "host");
	const char *name = head_get(h, SITE_SANDBOX_HEADER);
	const char *port = head_get(h, SITE_PORT_HEADER);

	*ret = (struct site){ .way = SITE_NONE };
	if (host)
		site_find_host(host, domain, ret);
	ret->target = h->target;
	if (ret->way != SITE_NONE || find_path(h->target, ret) || !name)
		return;
	if (!copy_name(name, strlen(name), ret->name) ||
	    (port && (read_port(port, &ret->port) != strlen(port) || !*port)))
		ret->name[0] = '\0';
	ret->way = SITE_BY_HEADER;
	ret->target = h->target;
}

bool site_is_own_origin(const struct site *s, const char *origin, const char *domain)
{
	const char *host = strstr(origin, "://");
	struct site other;

	if (!host)
		return false;
	site_find_host(host + 3, domain, &other);
	return other.way == SITE_BY_HOST && other.name[0] && strcmp(other.name, s->name) == 0;
}
