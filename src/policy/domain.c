/*
 * domain - one normal form for host names; see domain.h.
 *
 * Theory of operation. The text is split at its dots; each label is checked and appended. A label
 * with bytes beyond ASCII is decoded, lower-cased and encoded again by RFC 3492 (punycode). Only
 * characters with one unambiguous mapping are accepted: the full IDNA tables are large and change
 * every year, and a user who needs other characters can write the xn-- form.
 */
#include "policy/domain.h"

#include "base/cleanup.h"

#include <stdint.h>
#include <string.h>

#define PUNYCODE_BASE 36u
#define PUNYCODE_SKEW 38u
#define PUNYCODE_DAMP 700u

struct normalizer {
	const char *text;
	enum domain_source source;
	char out[DOMAIN_MAX_BYTES + 1];
	size_t len;
	struct domain_problem *problem;
};

static bool refuse(struct normalizer *n, size_t at, const char *why)
{
	n->problem->at = at;
	n->problem->why = why;
	return false;
}

static bool append(struct normalizer *n, size_t at, char c)
{
	if (n->len == DOMAIN_MAX_BYTES)
		return refuse(n, at, "the name is longer than 253 bytes");
	n->out[n->len++] = c;
	return true;
}

static const char *why_not(unsigned char c)
{
	switch (c) {
	case '\0':
		return "a NUL byte";
	case ' ':
		return "a space";
	case '*':
		return "a '*' that is not a whole label at the start";
	case '/':
		return "a '/' (leave out the scheme and the path)";
	case '@':
		return "an '@' (leave out the user)";
	case ':':
		return "a ':' that is not followed by a port";
	default:
		return c >= 0x80 ? "a byte beyond ASCII" : "a character that no host name has";
	}
}

/*
 * Letters with one unambiguous mapping: lower case, or with a lower case at a fixed distance, and
 * the same in every Unicode normal form. In EVEN/ODD ranges upper and lower case alternate.
 */
enum folding { AS_IT_IS, PLUS_32, PLUS_80, EVEN_PLUS_1, ODD_PLUS_1 };

static const struct {
	uint16_t first, last;
	enum folding folding;
} letters[] = {
	/* Latin; the last rows are Vietnamese, Pinyin, Romanian and Vietnamese again */
	{ 'A', 'Z', PLUS_32 },
	{ 'a', 'z', AS_IT_IS },
	{ 0xc0, 0xd6, PLUS_32 },
	{ 0xd8, 0xde, PLUS_32 },
	{ 0xdf, 0xf6, AS_IT_IS },
	{ 0xf8, 0xff, AS_IT_IS },
	{ 0x100, 0x12f, EVEN_PLUS_1 },
	{ 0x131, 0x131, AS_IT_IS },
	{ 0x134, 0x137, EVEN_PLUS_1 },
	{ 0x138, 0x138, AS_IT_IS },
	{ 0x139, 0x13e, ODD_PLUS_1 },
	{ 0x141, 0x148, ODD_PLUS_1 },
	{ 0x14a, 0x177, EVEN_PLUS_1 },
	{ 0x179, 0x17e, ODD_PLUS_1 },
	{ 0x1a0, 0x1a1, EVEN_PLUS_1 },
	{ 0x1af, 0x1b0, ODD_PLUS_1 },
	{ 0x1cd, 0x1dc, ODD_PLUS_1 },
	{ 0x218, 0x21b, EVEN_PLUS_1 },
	{ 0x1ea0, 0x1eff, EVEN_PLUS_1 },
	/* Greek */
	{ 0x391, 0x3a1, PLUS_32 },
	{ 0x3a3, 0x3a9, PLUS_32 },
	{ 0x3ac, 0x3ce, AS_IT_IS },
	/* Cyrillic */
	{ 0x400, 0x40f, PLUS_80 },
	{ 0x410, 0x42f, PLUS_32 },
	{ 0x430, 0x45f, AS_IT_IS },
	{ 0x48a, 0x4bf, EVEN_PLUS_1 },
	{ 0x4d0, 0x52f, EVEN_PLUS_1 },
	/* Armenian, Georgian, Hebrew */
	{ 0x561, 0x586, AS_IT_IS },
	{ 0x10d0, 0x10fa, AS_IT_IS },
	{ 0x5d0, 0x5ea, AS_IT_IS },
	/* Arabic, and its digits */
	{ 0x620, 0x63a, AS_IT_IS },
	{ 0x641, 0x64a, AS_IT_IS },
	{ 0x660, 0x669, AS_IT_IS },
	{ 0x671, 0x674, AS_IT_IS },
	{ 0x679, 0x6d3, AS_IT_IS },
	{ 0x6f0, 0x6f9, AS_IT_IS },
	/* Devanagari, Thai */
	{ 0x904, 0x939, AS_IT_IS },
	{ 0x93e, 0x94d, AS_IT_IS },
	{ 0x966, 0x96f, AS_IT_IS },
	{ 0xe01, 0xe32, AS_IT_IS },
	{ 0xe34, 0xe3a, AS_IT_IS },
	{ 0xe40, 0xe4e, AS_IT_IS },
	{ 0xe50, 0xe59, AS_IT_IS },
	/* Japanese, Chinese, Korean */
	{ 0x3005, 0x3007, AS_IT_IS },
	{ 0x3041, 0x3096, AS_IT_IS },
	{ 0x30a1, 0x30fa, AS_IT_IS },
	{ 0x30fc, 0x30fe, AS_IT_IS },
	{ 0x3400, 0x4dbf, AS_IT_IS },
	{ 0x4e00, 0x9ffc, AS_IT_IS },
	{ 0xac00, 0xd7a3, AS_IT_IS },
};

static uint32_t apply(enum folding folding, uint32_t c)
{
	switch (folding) {
	case PLUS_32:
		return c + 32;
	case PLUS_80:
		return c + 80;
	case EVEN_PLUS_1:
		return c % 2 == 0 ? c + 1 : c;
	case ODD_PLUS_1:
		return c % 2 == 1 ? c + 1 : c;
	case AS_IT_IS:
		break;
	}
	return c;
}

/* Returns the lower case of a code point; 0 if it is not in the table. */
static uint32_t fold(uint32_t c)
{
	for (size_t i = 0; i < COUNT_OF(letters); i++)
		if (c >= letters[i].first && c <= letters[i].last)
			return apply(letters[i].folding, c);
	return c < 0x80 ? c : 0;
}

/* Decodes one code point of at most three bytes; host names use only the first plane. */
static size_t decode(const char *text, size_t len, uint32_t *ret)
{
	const unsigned char *b = (const unsigned char *)text;

	if (b[0] < 0x80) {
		*ret = b[0];
		return 1;
	}
	if (len >= 2 && (b[0] & 0xe0) == 0xc0 && (b[1] & 0xc0) == 0x80 && b[0] >= 0xc2) {
		*ret = (uint32_t)(b[0] & 0x1f) << 6 | (b[1] & 0x3f);
		return 2;
	}
	if (len >= 3 && (b[0] & 0xf0) == 0xe0 && (b[1] & 0xc0) == 0x80 && (b[2] & 0xc0) == 0x80) {
		*ret = (uint32_t)(b[0] & 0x0f) << 12 | (uint32_t)(b[1] & 0x3f) << 6 | (b[2] & 0x3f);
		return *ret >= 0x800 ? 3 : 0;
	}
	return 0;
}

static uint32_t adapt(uint32_t delta, uint32_t points, bool is_first)
{
	uint32_t k = 0;

	delta = is_first ? delta / PUNYCODE_DAMP : delta / 2;
	delta += delta / points;
	for (; delta > (PUNYCODE_BASE - 1) * 26 / 2; k += PUNYCODE_BASE)
		delta /= PUNYCODE_BASE - 1;
	return k + PUNYCODE_BASE * delta / (delta + PUNYCODE_SKEW);
}

static char punycode_digit(uint32_t d)
{
	return (char)(d < 26 ? 'a' + d : '0' + (d - 26));
}

static bool append_variable(struct normalizer *n, size_t at, uint32_t delta, uint32_t bias)
{
	uint32_t q = delta;

	for (uint32_t k = PUNYCODE_BASE;; k += PUNYCODE_BASE) {
		uint32_t t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;

		if (q < t)
			break;
		if (!append(n, at, punycode_digit(t + (q - t) % (PUNYCODE_BASE - t))))
			return false;
		q = (q - t) / (PUNYCODE_BASE - t);
	}
	return append(n, at, punycode_digit(q));
}

static uint32_t next_point(const uint32_t *points, size_t count, uint32_t from)
{
	uint32_t least = UINT32_MAX;

	for (size_t i = 0; i < count; i++)
		if (points[i] >= from && points[i] < least)
			least = points[i];
	return least;
}

/* A label has at most 63 code points of 16 bits, so no arithmetic overflows. */
static bool append_punycode(struct normalizer *n, size_t at, const uint32_t *points, size_t count)
{
	uint32_t code = 0x80, delta = 0, bias = 72;
	size_t basic = 0, done;

	for (const char *c = "xn--"; *c; c++)
		if (!append(n, at, *c))
			return false;
	for (size_t i = 0; i < count; i++)
		if (points[i] < 0x80 && (basic++, !append(n, at, (char)points[i])))
			return false;
	if (basic > 0 && !append(n, at, '-'))
		return false;
	for (done = basic; done < count; code++) {
		uint32_t least = next_point(points, count, code);

		delta += (least - code) * (uint32_t)(done + 1);
		code = least;
		for (size_t i = 0; i < count; i++) {
			if (points[i] < code)
				delta++;
			if (points[i] != code)
				continue;
			if (!append_variable(n, at, delta, bias))
				return false;
			bias = adapt(delta, (uint32_t)done + 1, done == basic);
			done++;
			delta = 0;
		}
		delta++;
	}
	return true;
}

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool append_typed(struct normalizer *n, size_t at, size_t len)
{
	uint32_t points[DOMAIN_LABEL_MAX_BYTES];
	size_t count = 0;

	for (size_t i = 0; i < len;) {
		uint32_t c = 0;
		size_t used = decode(n->text + at + i, len - i, &c);

		if (used == 0)
			return refuse(n, at + i, "bytes that are not UTF-8");
		c = fold(c);
		if (c < 0x80 && !is_plain((unsigned char)c))
			return refuse(n, at + i,
				      c == 0 ? "a character with more than one reading (write the "
					       "name in its xn-- form)"
					     : why_not((unsigned char)c));
		if (count == DOMAIN_LABEL_MAX_BYTES)
			return refuse(n, at, "a label longer than 63 bytes");
		points[count++] = c;
		i += used;
	}
	return append_punycode(n, at, points, count);
}

static bool append_ascii(struct normalizer *n, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)n->text[at + i];

		if (c >= 'A' && c <= 'Z')
			c = (unsigned char)(c + 0x20);
		if (!is_plain(c))
			return refuse(n, at + i, why_not(c));
		if (!append(n, at + i, (char)c))
			return false;
	}
	return true;
}

static bool append_label(struct normalizer *n, size_t at, size_t len)
{
	size_t start = n->len;
	bool is_ascii = true;

	if (len == 0)
		return refuse(n, at, "an empty label");
	if (n->text[at] == '-' && n->source == DOMAIN_TYPED)
		return refuse(n, at, "a label that starts with '-'");
	for (size_t i = 0; i < len; i++)
		is_ascii = is_ascii && (unsigned char)n->text[at + i] < 0x80;
	if (is_ascii || n->source == DOMAIN_WIRE ? !append_ascii(n, at, len)
						 : !append_typed(n, at, len))
		return false;
	if (n->len - start > DOMAIN_LABEL_MAX_BYTES)
		return refuse(n, at, "a label longer than 63 bytes");
	return true;
}

/* Resolvers read "1.2.3", "017700000001" and "0x7f.1" as addresses. */
static bool ends_in_number(const char *name)
{
	const char *last = strrchr(name, '.');
	size_t len;

	last = last ? last + 1 : name;
	len = strlen(last);
	if (strspn(last, "0123456789") == len)
		return true;
	return last[0] == '0' && last[1] == 'x' && strspn(last + 2, "0123456789abcdef") == len - 2;
}

bool domain_normalize(const char *text, size_t len, enum domain_source source, char *out,
		      struct domain_problem *ret_problem)
{
	struct normalizer n = { .text = text, .source = source, .problem = ret_problem };
	size_t at = 0;

	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len == 0)
		return refuse(&n, 0, "no name");
	while (at <= len) {
		const char *dot = memchr(text + at, '.', len - at);
		size_t label_len = dot ? (size_t)(dot - text) - at : len - at;

		if (at > 0 && !append(&n, at, '.'))
			return false;
		if (!append_label(&n, at, label_len))
			return false;
		at += label_len + 1;
	}
	n.out[n.len] = '\0';
	if (ends_in_number(n.out))
		return refuse(&n, 0, "a number that is not an IP address");
	memcpy(out, n.out, n.len + 1);
	return true;
}

/* Length of the service label at the start of `name`; 0 if there is none. */
static size_t service_label_len(const char *name)
{
	size_t len;

	if (name[0] != '_')
		return 0;
	len = 1 + strspn(name + 1, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return len > 1 && len <= DOMAIN_SERVICE_LABEL_MAX_BYTES && name[len] == '.' ? len : 0;
}

const char *domain_service_host(const char *name)
{
	const char *host = name;
	size_t len;

	for (unsigned i = 0; i < DOMAIN_SERVICE_LABELS_MAX && (len = service_label_len(host)); i++)
		host += len + 1;
	return host[0] == '_' ? name : host; /* too many labels for a service name */
}
