/*
 * dnswire - numbers and names in DNS messages; see dnswire.h.
 *
 * Hostile input: every byte that is read. Lengths are checked against the remaining bytes before
 * each step. The work for one name is bounded by its 255 bytes and DNSWIRE_POINTERS_MAX jumps.
 */
#include "net/dnswire.h"

#include <string.h>

#define POINTER_MARK 0xc0u

bool dnswire_read_u16(struct dnswire_reader *r, uint16_t *ret)
{
	if (r->len - r->at < 2)
		return false;
	*ret = (uint16_t)(r->bytes[r->at] << 8 | r->bytes[r->at + 1]);
	r->at += 2;
	return true;
}

bool dnswire_read_u32(struct dnswire_reader *r, uint32_t *ret)
{
	uint16_t high = 0, low = 0;

	if (!dnswire_read_u16(r, &high) || !dnswire_read_u16(r, &low))
		return false;
	*ret = (uint32_t)high << 16 | low;
	return true;
}

bool dnswire_skip(struct dnswire_reader *r, size_t count)
{
	if (r->len - r->at < count)
		return false;
	r->at += count;
	return true;
}

/* A name being assembled: its text with dots between labels. */
struct gathered {
	char text[DNSWIRE_NAME_MAX_BYTES];
	size_t len;
	bool has_dot; /* inside a label: two different names would have the same text */
};

/* Reads labels up to the root (*ret_pointer false) or to a pointer (at r->at). */
static bool gather_labels(struct dnswire_reader *r, struct gathered *g, bool *ret_pointer)
{
	for (;;) {
		uint8_t label;

		if (r->at == r->len)
			return false;
		label = r->bytes[r->at];
		*ret_pointer = (label & POINTER_MARK) == POINTER_MARK;
		if (*ret_pointer)
			return true;
		r->at++;
		if (label == 0)
			return true;
		/* with this label, its length and the root the name must not exceed its maximum */
		if (label > DOMAIN_LABEL_MAX_BYTES || r->len - r->at < label ||
		    g->len + (g->len > 0) + label + 2 > DNSWIRE_NAME_MAX_BYTES)
			return false;
		if (g->len > 0)
			g->text[g->len++] = '.';
		g->has_dot = g->has_dot || memchr(r->bytes + r->at, '.', label);
		memcpy(g->text + g->len, r->bytes + r->at, label);
		g->len += label;
		r->at += label;
	}
}

/* Follows pointers; r->at is then after the first one. */
static bool gather(struct dnswire_reader *r, enum dnswire_flags flags, struct gathered *g)
{
	struct dnswire_reader part = *r;
	size_t start = r->at;
	bool is_pointer = false;

	for (unsigned jumps = 0; jumps <= DNSWIRE_POINTERS_MAX; jumps++) {
		uint16_t target = 0;

		if (!gather_labels(&part, g, &is_pointer) ||
		    (is_pointer &&
		     (flags != DNSWIRE_COMPRESSED || !dnswire_read_u16(&part, &target))))
			return false;
		if (jumps == 0)
			r->at = part.at;
		if (!is_pointer)
			return true;
		target &= (uint16_t) ~(POINTER_MARK << 8);
		if (target >= start) /* only backwards, so that a name cannot contain itself */
			return false;
		start = part.at = target;
	}
	return false;
}

bool dnswire_read_name(struct dnswire_reader *r, enum dnswire_flags flags,
		       char out[DOMAIN_MAX_BYTES + 1], enum dnswire_kind *ret_kind)
{
	struct gathered g = { .len = 0 };
	struct domain_problem ignored;

	if (!gather(r, flags, &g))
		return false;
	*ret_kind = DNSWIRE_NOBODY;
	if (g.len == 0) {
		*ret_kind = DNSWIRE_ROOT;
		out[0] = '\0';
	} else if (!g.has_dot && domain_normalize(g.text, g.len, DOMAIN_WIRE, out, &ignored)) {
		*ret_kind = DNSWIRE_HOST;
	}
	return true;
}

void dnswire_write(struct dnswire_writer *w, const void *bytes, size_t len)
{
	if (w->is_full || w->max - w->len < len) {
		w->is_full = true;
		return;
	}
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

void dnswire_write_u16(struct dnswire_writer *w, unsigned value)
{
	const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };

	dnswire_write(w, bytes, sizeof(bytes));
}

void dnswire_write_name(struct dnswire_writer *w, const char *name)
{
	static const uint8_t root;

	for (const char *label = name; *label;) {
		uint8_t len = (uint8_t)strcspn(label, ".");

		dnswire_write(w, &len, 1);
		dnswire_write(w, label, len);
		label += len + (label[len] == '.');
	}
	dnswire_write(w, &root, 1);
}
