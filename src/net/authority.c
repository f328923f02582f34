/* authority - strict parser for a host with an optional port; see authority.h. */
#include "net/authority.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool is_name_byte(uint8_t b)
{
	return (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
	       b == '-' || b == '.' || b == '_';
}

static bool is_plain_name(const uint8_t *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_name_byte(text[i]))
			return false;
	return len > 0;
}

static bool copy_name(const uint8_t *text, size_t len, struct authority *ret)
{
	if (len == 0 || len > AUTHORITY_NAME_MAX_BYTES || memchr(text, '\0', len))
		return false;
	memcpy(ret->name, text, len);
	ret->name[len] = '\0';
	return true;
}

static bool copy_ipv6(const uint8_t *text, size_t len, struct authority *ret)
{
	struct in6_addr address;

	return copy_name(text, len, ret) && inet_pton(AF_INET6, ret->name, &address) == 1;
}

/* `text` follows the host: it is empty, or ':' and digits. */
static bool parse_port(const uint8_t *text, size_t len, uint16_t *ret)
{
	uint32_t port = 0;

	*ret = 0;
	if (len == 0)
		return true;
	if (text[0] != ':' || len < 2 || len > 6)
		return false;
	for (size_t i = 1; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = port * 10 + (uint32_t)(text[i] - '0');
	}
	*ret = (uint16_t)port;
	return port >= 1 && port <= UINT16_MAX;
}

bool authority_parse(const uint8_t *text, size_t len, struct authority *ret)
{
	bool is_bracketed = len > 0 && text[0] == '[';
	const uint8_t *end = len > 0 ? memchr(text, is_bracketed ? ']' : ':', len) : NULL;
	size_t name_len = end ? (size_t)(end - text) : len;

	if (!is_bracketed)
		return is_plain_name(text, name_len) && copy_name(text, name_len, ret) &&
		       parse_port(text + name_len, len - name_len, &ret->port);
	return end && copy_ipv6(text + 1, name_len - 1, ret) &&
	       parse_port(end + 1, len - name_len - 1, &ret->port);
}

bool authority_parse_name(const uint8_t *text, size_t len, struct authority *ret)
{
	ret->port = 0;
	if (is_plain_name(text, len))
		return copy_name(text, len, ret);
	return copy_ipv6(text, len, ret);
}

bool authority_is_same_host(const struct authority *a, const struct authority *b)
{
	return strcasecmp(a->name, b->name) == 0;
}
