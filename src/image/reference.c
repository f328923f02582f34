/*
 * reference - parses the name of an image; see reference.h.
 *
 * Theory of operation
 *
 * The text is split from its ends: after '@' is the digest, before the first '/' may be the
 * registry, after the last ':' of the rest is the tag, and the path remains. Each part must then
 * match its own grammar. The result is a normal form: the host in lower case, an IPv6 address as
 * the system writes it, Docker Hub under one name. So two texts for one image give the same
 * reference, and the full form parses to itself.
 *
 * Hostile input: all of it. The full form becomes a file name and part of URLs; the grammar allows
 * no '/' at the start of a part, no "..", no leading '-', and nothing that a URL would have to
 * escape.
 */
#include "image/reference.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#define DIGEST_ALGORITHM "sha256:"
#define DIGEST_DIGITS 64u
#define HUB_LIBRARY "library/"
#define PORT_DIGITS_MAX 5u
#define PORT_MAX 65535u
#define LOOPBACK_NET 127u
#define INPUT_MAX_BYTES 512u /* of the input: a longer one cannot be a reference */

/* A part of the text. */
struct part {
	const char *text;
	size_t len;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_alphanumeric(char c)
{
	return is_digit(c) || is_lower(c) || is_upper(c);
}

static bool has_char(struct part p, char c)
{
	return p.len > 0 && memchr(p.text, c, p.len);
}

static bool is_word(struct part p, const char *word)
{
	return p.len == strlen(word) && memcmp(p.text, word, p.len) == 0;
}

bool reference_is_digest(const char *text)
{
	const size_t prefix = strlen(DIGEST_ALGORITHM);

	if (strncmp(text, DIGEST_ALGORITHM, prefix) != 0)
		return false;
	for (size_t i = 0; i < DIGEST_DIGITS; i++)
		if (!is_digit(text[prefix + i]) &&
		    !(text[prefix + i] >= 'a' && text[prefix + i] <= 'f'))
			return false;
	return text[prefix + DIGEST_DIGITS] == '\0';
}

bool reference_is_loopback(const char *host)
{
	bool is_bracketed = host[0] == '[';
	size_t len = strcspn(host + is_bracketed, is_bracketed ? "]" : ":");
	char name[REFERENCE_MAX_BYTES];
	struct in6_addr v6;
	struct in_addr v4;

	if (len >= sizeof(name))
		return false;
	memcpy(name, host + is_bracketed, len);
	name[len] = '\0';
	if (is_bracketed)
		return inet_pton(AF_INET6, name, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
	if (inet_pton(AF_INET, name, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == LOOPBACK_NET;
	return strcmp(name, "localhost") == 0;
}

/* ---- the host ---- */

/* A label consists of letters, digits and inner dashes. */
static bool is_host_name(struct part p)
{
	for (size_t i = 0; i < p.len; i++) {
		bool is_edge =
			i == 0 || i + 1 == p.len || p.text[i - 1] == '.' || p.text[i + 1] == '.';

		if (is_alphanumeric(p.text[i]) || (p.text[i] == '-' && !is_edge))
			continue;
		if (p.text[i] != '.' || i == 0 || i + 1 == p.len || p.text[i + 1] == '.')
			return false;
	}
	return p.len > 0;
}

static bool is_port(struct part p)
{
	unsigned value = 0;

	if (p.len == 0 || p.len > PORT_DIGITS_MAX || p.text[0] == '0')
		return false;
	for (size_t i = 0; i < p.len; i++) {
		if (!is_digit(p.text[i]))
			return false;
		value = value * 10 + (unsigned)(p.text[i] - '0');
	}
	return value <= PORT_MAX;
}

/* Parses "[::1]" and returns the rest. The address is formatted again, so that it has one form. */
static bool format_ipv6(struct part p, char *out, size_t out_size, struct part *ret_rest)
{
	char text[INET6_ADDRSTRLEN] = "";
	const char *end = memchr(p.text, ']', p.len);
	struct in6_addr address;
	size_t len;

	if (!end)
		return false;
	len = (size_t)(end - p.text) - 1;
	if (len >= sizeof(text))
		return false;
	memcpy(text, p.text + 1, len);
	if (inet_pton(AF_INET6, text, &address) != 1 ||
	    !inet_ntop(AF_INET6, &address, text, sizeof(text)))
		return false;
	(void)snprintf(out, out_size, "[%s]", text);
	*ret_rest = (struct part){ end + 1, p.len - len - 2 };
	return true;
}

static bool format_name(struct part p, char *out, size_t out_size, struct part *ret_rest)
{
	const char *colon = memchr(p.text, ':', p.len);
	struct part name = { p.text, colon ? (size_t)(colon - p.text) : p.len };

	if (!is_host_name(name) || name.len >= out_size)
		return false;
	for (size_t i = 0; i < name.len; i++)
		out[i] = is_upper(name.text[i]) ? (char)(name.text[i] - 'A' + 'a') : name.text[i];
	out[name.len] = '\0';
	*ret_rest = (struct part){ p.text + name.len, p.len - name.len };
	return true;
}

static int parse_host(struct part p, struct reference *r, struct err *e)
{
	struct part rest = { 0 };
	size_t used;
	bool is_good;

	if (p.text[0] == '[')
		is_good = format_ipv6(p, r->host, sizeof(r->host), &rest);
	else
		is_good = format_name(p, r->host, sizeof(r->host), &rest);
	if (!is_good)
		return err_set(e, ERR_INVALID, "'%.*s' is not a host name or an address",
			       (int)p.len, p.text);
	if (rest.len > 0) {
		if (rest.text[0] != ':' || !is_port((struct part){ rest.text + 1, rest.len - 1 }))
			return err_set(e, ERR_INVALID, "'%.*s': the port is not 1..%u", (int)p.len,
				       p.text, PORT_MAX);
		used = strlen(r->host);
		if (used + rest.len >= sizeof(r->host))
			return err_set(e, ERR_LIMIT, "the host is too long");
		memcpy(r->host + used, rest.text, rest.len);
		r->host[used + rest.len] = '\0';
	}
	if (strcmp(r->host, "index." REFERENCE_HUB) == 0)
		(void)snprintf(r->host, sizeof(r->host), "%s", REFERENCE_HUB);
	return 0;
}

/* Is the first component of a name a registry? */
static bool is_host_part(struct part p)
{
	return has_char(p, '.') || has_char(p, ':') || is_word(p, "localhost");
}

/* ---- path, tag and digest ---- */

/* Valid between two runs of letters and digits: ".", "_", "__" or dashes. */
static bool is_separator(struct part p)
{
	if (is_word(p, ".") || is_word(p, "_") || is_word(p, "__"))
		return true;
	for (size_t i = 0; i < p.len; i++)
		if (p.text[i] != '-')
			return false;
	return p.len > 0;
}

static bool is_path_char(char c)
{
	return is_digit(c) || is_lower(c);
}

static bool is_path_part(struct part p)
{
	size_t i = 0;

	if (p.len == 0 || !is_path_char(p.text[0]) || !is_path_char(p.text[p.len - 1]))
		return false;
	while (i < p.len) {
		size_t start;

		while (i < p.len && is_path_char(p.text[i]))
			i++;
		start = i;
		while (i < p.len && !is_path_char(p.text[i]))
			i++;
		if (i > start && !is_separator((struct part){ p.text + start, i - start }))
			return false;
	}
	return true;
}

static int check_path(struct part p, struct err *e)
{
	struct part rest = p;

	for (size_t i = 0; i < p.len; i++)
		if (is_upper(p.text[i]))
			return err_set(e, ERR_INVALID,
				       "'%.*s' holds upper case, and names of images are lower "
				       "case",
				       (int)p.len, p.text);
	for (;;) {
		const char *slash = rest.len > 0 ? memchr(rest.text, '/', rest.len) : NULL;
		struct part one = { rest.text, slash ? (size_t)(slash - rest.text) : rest.len };

		if (!is_path_part(one))
			return err_set(e, ERR_INVALID,
				       "'%.*s' is not the name of an image: its parts are letters "
				       "and digits, with single '.', '_' or '-' between them",
				       (int)p.len, p.text);
		if (!slash)
			return 0;
		rest = (struct part){ slash + 1, rest.len - one.len - 1 };
	}
}

static int parse_path(struct part p, struct reference *r, struct err *e)
{
	bool is_in_library = strcmp(r->host, REFERENCE_HUB) == 0 && !has_char(p, '/');
	const char *prefix = is_in_library ? HUB_LIBRARY : "";

	if (check_path(p, e) < 0)
		return -1;
	if (strlen(prefix) + p.len >= sizeof(r->path))
		return err_set(e, ERR_LIMIT, "the name is longer than %u bytes",
			       REFERENCE_MAX_BYTES);
	(void)snprintf(r->path, sizeof(r->path), "%s%.*s", prefix, (int)p.len, p.text);
	return 0;
}

static bool is_tag_char(char c, size_t at)
{
	return is_alphanumeric(c) || c == '_' || (at > 0 && (c == '.' || c == '-'));
}

static int parse_tag(struct part p, struct reference *r, struct err *e)
{
	bool is_good = p.len > 0 && p.len <= REFERENCE_TAG_MAX_BYTES;

	for (size_t i = 0; is_good && i < p.len; i++)
		is_good = is_tag_char(p.text[i], i);
	if (!is_good)
		return err_set(e, ERR_INVALID,
			       "'%.*s' is not a tag: 1 to %u letters, digits, '_', '.' and '-'",
			       (int)p.len, p.text, REFERENCE_TAG_MAX_BYTES);
	memcpy(r->tag, p.text, p.len);
	r->tag[p.len] = '\0';
	return 0;
}

static int parse_digest(const char *text, struct reference *r, struct err *e)
{
	if (!reference_is_digest(text))
		return err_set(e, ERR_INVALID,
			       "'%s' is not a digest: \"sha256:\" and %u digits 0-9 a-f", text,
			       DIGEST_DIGITS);
	(void)snprintf(r->digest, sizeof(r->digest), "%s", text);
	return 0;
}

/* PATH[:TAG] without a host: the only ':' starts the tag. */
static int parse_path_and_tag(struct part p, struct reference *r, struct err *e)
{
	const char *colon = p.len > 0 ? memchr(p.text, ':', p.len) : NULL;
	size_t path_len = colon ? (size_t)(colon - p.text) : p.len;

	if (parse_path((struct part){ p.text, path_len }, r, e) < 0)
		return -1;
	if (colon)
		return parse_tag((struct part){ colon + 1, p.len - path_len - 1 }, r, e);
	if (!r->digest[0])
		(void)snprintf(r->tag, sizeof(r->tag), "latest");
	return 0;
}

static size_t full_length(const struct reference *r)
{
	return strlen(r->host) + 1 + strlen(r->path) + 1 +
	       strlen(r->digest[0] ? r->digest : r->tag);
}

static int parse_whole(const char *text, struct reference *r, struct err *e)
{
	const char *at = strchr(text, '@');
	struct part rest = { text, at ? (size_t)(at - text) : strlen(text) };
	const char *slash = rest.len > 0 ? memchr(rest.text, '/', rest.len) : NULL;
	struct part first = { text, slash ? (size_t)(slash - text) : 0 };

	if (at && parse_digest(at + 1, r, e) < 0)
		return -1;
	(void)snprintf(r->host, sizeof(r->host), "%s", REFERENCE_HUB);
	if (slash && is_host_part(first)) {
		if (parse_host(first, r, e) < 0)
			return -1;
		rest = (struct part){ slash + 1, rest.len - first.len - 1 };
	}
	if (parse_path_and_tag(rest, r, e) < 0)
		return -1;
	if (full_length(r) > REFERENCE_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "the name is longer than %u bytes",
			       REFERENCE_MAX_BYTES);
	return 0;
}

int reference_parse(const char *text, struct reference *ret, struct err *e)
{
	struct reference r = { 0 };

	if (text[0] == '\0')
		return err_set(e, ERR_INVALID, "the name of the image is empty");
	if (strnlen(text, INPUT_MAX_BYTES + 1) > INPUT_MAX_BYTES)
		return err_set(e, ERR_LIMIT, "the name of the image is longer than %u bytes",
			       REFERENCE_MAX_BYTES);
	if (parse_whole(text, &r, e) < 0) {
		err_sanitize(e);
		return err_wrap(e, "image");
	}
	*ret = r;
	return 0;
}

/* ---- formatting ---- */

static void format_after(const struct reference *r, const char *host, const char *path,
			 char out[REFERENCE_MAX_BYTES + 1])
{
	int len = snprintf(out, REFERENCE_MAX_BYTES + 1, "%s%s%s%c%s", host, host[0] ? "/" : "",
			   path, r->digest[0] ? '@' : ':', r->digest[0] ? r->digest : r->tag);

	assert(len > 0 && (unsigned)len <= REFERENCE_MAX_BYTES); /* reference_parse() checks it */
}

void reference_format(const struct reference *r, char out[REFERENCE_MAX_BYTES + 1])
{
	format_after(r, r->host, r->path, out);
}

void reference_format_short(const struct reference *r, char out[REFERENCE_MAX_BYTES + 1])
{
	const char *slash = strchr(r->path, '/');
	struct part first = { r->path, slash ? (size_t)(slash - r->path) : 0 };
	bool is_in_library = strncmp(r->path, HUB_LIBRARY, strlen(HUB_LIBRARY)) == 0;

	/* A first component that looks like a registry needs the real registry before it. */
	if (strcmp(r->host, REFERENCE_HUB) != 0 || is_host_part(first))
		format_after(r, r->host, r->path, out);
	else if (is_in_library && !strchr(r->path + strlen(HUB_LIBRARY), '/'))
		format_after(r, "", r->path + strlen(HUB_LIBRARY), out);
	else
		format_after(r, "", r->path, out);
}

void reference_format_file(const struct reference *r, char out[REFERENCE_MAX_BYTES + 1])
{
	reference_format(r, out);
	for (char *p = out; *p; p++)
		if (*p == '/')
			*p = '+';
}

const char *reference_architecture(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#elif defined(__riscv) && __riscv_xlen == 64
	return "riscv64";
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
	return "ppc64le";
#elif defined(__s390x__)
	return "s390x";
#else
#error "which name has this architecture in OCI's documents?"
#endif
}
