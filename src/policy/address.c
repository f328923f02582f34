/*
 * address - IP addresses and networks as values; see address.h.
 *
 * The table below holds the IANA special-purpose registries, reduced to one question: is the
 * address part of the public internet? For IPv6 only 2000::/3 is public, minus the rows before it.
 */
#include "policy/address.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define V4(a, b, c, d)                                                                             \
	{                                                                                          \
		32,                                                                                \
		{                                                                                  \
			a, b, c, d                                                                 \
		}                                                                                  \
	}
#define V6(...)                                                                                    \
	{                                                                                          \
		128,                                                                               \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* The first row that contains the address decides. */
static const struct {
	struct address_network network;
	const char *kind; /* NULL: public */
} ranges[] = {
	{ { V4(0, 0, 0, 0), 8 }, "an address of 'this network'" },
	{ { V4(10, 0, 0, 0), 8 }, "a private address" },
	{ { V4(100, 64, 0, 0), 10 }, "a carrier's shared address" },
	{ { V4(127, 0, 0, 0), 8 }, "a loopback address" },
	{ { V4(169, 254, 0, 0), 16 }, "a link-local address" },
	{ { V4(172, 16, 0, 0), 12 }, "a private address" },
	{ { V4(192, 0, 0, 0), 24 }, "a reserved address" },
	{ { V4(192, 0, 2, 0), 24 }, "a documentation address" },
	{ { V4(192, 88, 99, 0), 24 }, "a 6to4 relay address" },
	{ { V4(192, 168, 0, 0), 16 }, "a private address" },
	{ { V4(198, 18, 0, 0), 15 }, "a benchmarking address" },
	{ { V4(198, 51, 100, 0), 24 }, "a documentation address" },
	{ { V4(203, 0, 113, 0), 24 }, "a documentation address" },
	{ { V4(224, 0, 0, 0), 4 }, "a multicast address" },
	{ { V4(240, 0, 0, 0), 4 }, "a reserved address" },
	{ { V6(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), 128 }, "a loopback address" },
	{ { V6(0, 0x64, 0xff, 0x9b), 32 }, "an IPv4 address in IPv6 form (NAT64)" },
	{ { V6(0x20, 0x01), 23 }, "a reserved address (Teredo and others)" },
	{ { V6(0x20, 0x01, 0x0d, 0xb8), 32 }, "a documentation address" },
	{ { V6(0x20, 0x02), 16 }, "an IPv4 address in IPv6 form (6to4)" },
	{ { V6(0x3f, 0xff), 20 }, "a documentation address" },
	{ { V6(0xfc), 7 }, "a private address" },
	{ { V6(0xfe, 0x80), 10 }, "a link-local address" },
	{ { V6(0xff), 8 }, "a multicast address" },
	{ { V6(0x20), 3 }, NULL },
	{ { V6(0), 0 }, "a reserved address" },
};

/* Some lie in special ranges; a rule that opens such a range must not open these. */
static const struct address metadata[] = {
	V4(169, 254, 169, 254), /* most clouds */
	V4(169, 254, 170, 2),   /* credentials of containers */
	V4(169, 254, 170, 23),
	V4(169, 254, 169, 123),
	V4(169, 254, 169, 253),
	V4(169, 254, 0, 23),
	V4(100, 100, 100, 200),
	V4(192, 0, 0, 192),
	V4(168, 63, 129, 16), /* in a public range */
	V6(0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54),
	V6(0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x23),
	V6(0xfd, 0x20, 0, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54),
};

/* A v4-mapped IPv6 address becomes IPv4. */
static void set_v6(struct address *a, const uint8_t bytes[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	*a = (struct address){ .bits = 128 };
	if (memcmp(bytes, mapped, sizeof(mapped)) == 0) {
		a->bits = 32;
		memcpy(a->bytes, bytes + sizeof(mapped), 4);
		return;
	}
	memcpy(a->bytes, bytes, 16);
}

bool address_parse(const char *text, struct address *ret)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1) {
		*ret = (struct address){ .bits = 32 };
		memcpy(ret->bytes, bytes, 4);
		return true;
	}
	if (inet_pton(AF_INET6, text, bytes) != 1)
		return false;
	set_v6(ret, bytes);
	return true;
}

const char *address_format(const struct address *a, char out[ADDRESS_TEXT_MAX_BYTES])
{
	const char *text = inet_ntop(a->bits == 32 ? AF_INET : AF_INET6, a->bytes, out,
				     ADDRESS_TEXT_MAX_BYTES);

	assert(text);
	return text;
}

bool address_is_equal(const struct address *a, const struct address *b)
{
	return a->bits == b->bits && memcmp(a->bytes, b->bytes, a->bits / 8) == 0;
}

static uint8_t byte_mask(unsigned prefix_bits, unsigned at)
{
	if (prefix_bits >= (at + 1) * 8)
		return 0xff;
	return prefix_bits <= at * 8 ? 0 : (uint8_t)(0xff << (8 - (prefix_bits - at * 8)));
}

bool address_is_in(const struct address *a, const struct address_network *n)
{
	if (a->bits != n->base.bits)
		return false;
	for (unsigned i = 0; i < a->bits / 8u; i++)
		if ((a->bytes[i] ^ n->base.bytes[i]) & byte_mask(n->prefix_bits, i))
			return false;
	return true;
}

static int check_host_bits(const char *text, const struct address_network *n, struct err *e)
{
	struct address_network right = *n;
	char out[ADDRESS_TEXT_MAX_BYTES];

	for (unsigned i = 0; i < n->base.bits / 8u; i++)
		right.base.bytes[i] &= byte_mask(n->prefix_bits, i);
	if (address_is_equal(&right.base, &n->base))
		return 0;
	return err_set(e, ERR_INVALID,
		       "'%s' is an address within a network (use '%s' for all of it)", text,
		       address_format_network(&right, out));
}

int address_parse_network(const char *text, struct address_network *ret, struct err *e)
{
	cleanup_free char *copy = mem_dup(text);
	char *slash = strchr(copy, '/');
	struct address_network n;
	uint64_t prefix_bits;
	bool was_v6;

	if (slash)
		*slash = '\0';
	if (!address_parse(copy, &n.base))
		return err_set(e, ERR_INVALID, "'%s' is not an IP address or network", text);
	prefix_bits = n.base.bits;
	was_v6 = strchr(copy, ':') != NULL;
	if (slash && was_v6 && n.base.bits == 32)
		return err_set(e, ERR_INVALID, "'%s': write IPv4 networks in their own form", text);
	if (slash && parse_count(slash + 1, 0, n.base.bits, &prefix_bits, e) < 0)
		return err_wrap(e, "'%s': the length after '/'", text);
	n.prefix_bits = (uint8_t)prefix_bits;
	if (check_host_bits(text, &n, e) < 0)
		return -1;
	*ret = n;
	return 0;
}

const char *address_format_network(const struct address_network *n,
				   char out[ADDRESS_TEXT_MAX_BYTES])
{
	size_t len;

	(void)address_format(&n->base, out);
	if (n->prefix_bits == n->base.bits)
		return out;
	len = strlen(out);
	(void)snprintf(out + len, ADDRESS_TEXT_MAX_BYTES - len, "/%u", n->prefix_bits);
	return out;
}

bool address_from_sockaddr(const struct sockaddr *sa, struct address *ret, uint16_t *ret_port)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)sa;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)sa;

	if (sa->sa_family == AF_INET) {
		*ret = (struct address){ .bits = 32 };
		memcpy(ret->bytes, &v4->sin_addr, 4);
		*ret_port = ntohs(v4->sin_port);
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	set_v6(ret, v6->sin6_addr.s6_addr);
	*ret_port = ntohs(v6->sin6_port);
	return true;
}

socklen_t address_to_sockaddr(const struct address *a, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;

	memset(ret, 0, sizeof(*ret));
	if (a->bits == 32) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, a->bytes, 4);
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, a->bytes, 16);
	return sizeof(*v6);
}

const char *address_special_kind(const struct address *a)
{
	for (size_t i = 0; i < COUNT_OF(ranges); i++)
		if (address_is_in(a, &ranges[i].network))
			return ranges[i].kind;
	return NULL;
}

bool address_is_unspecified(const struct address *a)
{
	static const uint8_t zero[sizeof(a->bytes)];

	return memcmp(a->bytes, zero, a->bits / 8) == 0;
}

/* Includes the unspecified address: on Linux a connection to it reaches loopback. */
bool address_is_loopback(const struct address *a)
{
	static const struct address one = V6(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

	return address_is_unspecified(a) ||
	       (a->bits == 32 ? a->bytes[0] == 127 : address_is_equal(a, &one));
}

bool address_is_metadata(const struct address *a)
{
	for (size_t i = 0; i < COUNT_OF(metadata); i++)
		if (address_is_equal(a, &metadata[i]))
			return true;
	return false;
}
