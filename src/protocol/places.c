/*
 * places - what a warm sandbox is told to show; see places.h.
 *
 * The message is a header, then for each place and each guard a struct and its NUL-terminated
 * texts. Both ends are the same build of the same program (pool/claim checks this), so structs are
 * sent as they are in memory.
 */
#include "protocol/places.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <string.h>

struct header {
	uint32_t place_count, guard_count;
};

struct place_body {
	uint64_t device, inode, size_bytes;
	uint32_t kind, is_dir, is_read_only, has_tree;
};

struct guard_body {
	uint32_t care;
};

/* ---- sending ---- */

static void add_text(struct buf *out, const char *text)
{
	buf_add(out, text, strlen(text) + 1);
}

bool places_format(const struct rootspec_shown *s, struct buf *out, int *ret_fds,
		   unsigned *ret_count)
{
	const struct header header = { s->place_count, s->guard_count };

	*ret_count = 0;
	buf_add(out, &header, sizeof(header));
	for (unsigned i = 0; i < s->place_count; i++) {
		const struct rootspec_place *p = &s->places[i];
		const struct place_body body = { .device = p->device,
						 .inode = p->inode,
						 .size_bytes = p->size_bytes,
						 .kind = p->kind,
						 .is_dir = p->is_dir,
						 .is_read_only = p->is_read_only,
						 .has_tree = p->tree_fd >= 0 };

		if (p->tree_fd >= 0 && *ret_count == PLACES_TREES_MAX)
			return false;
		if (p->tree_fd >= 0)
			ret_fds[(*ret_count)++] = p->tree_fd;
		buf_add(out, &body, sizeof(body));
		add_text(out, p->target);
		add_text(out, p->source ? p->source : "");
	}
	for (unsigned i = 0; i < s->guard_count; i++) {
		const struct guard_body body = { .care = s->guards[i].care };

		buf_add(out, &body, sizeof(body));
		add_text(out, s->guards[i].target);
		add_text(out, s->guards[i].name);
	}
	return !out->is_cut && s->place_count <= PLACES_MAX && s->guard_count <= PLACES_GUARDS_MAX;
}

/* ---- receiving ---- */

struct reader {
	char *at, *end;
	int *fds;
	unsigned fd_count;
};

static bool take(struct reader *r, void *ret, size_t len)
{
	if ((size_t)(r->end - r->at) < len)
		return false;
	memcpy(ret, r->at, len);
	r->at += len;
	return true;
}

/* NULL if no NUL-terminated text is left. */
static char *take_text(struct reader *r)
{
	char *text = r->at;
	size_t len = strnlen(text, (size_t)(r->end - r->at));

	if (len == (size_t)(r->end - r->at))
		return NULL;
	r->at += len + 1;
	return text;
}

static bool take_place(struct reader *r, struct rootspec_place *ret)
{
	struct place_body body;
	char *target, *source;

	if (!take(r, &body, sizeof(body)) || !(target = take_text(r)) || !(source = take_text(r)))
		return false;
	if (target[0] != '/' || body.kind > ROOTSPEC_TMPFS ||
	    (body.kind == ROOTSPEC_HOST && source[0] != '/') || (body.has_tree && r->fd_count == 0))
		return false;
	*ret = (struct rootspec_place){ .kind = body.kind,
					.target = target,
					.source = source[0] ? source : NULL,
					.tree_fd = -1,
					.device = body.device,
					.inode = body.inode,
					.is_dir = body.is_dir,
					.is_read_only = body.is_read_only,
					.size_bytes = body.size_bytes };
	if (body.has_tree) {
		ret->tree_fd = take_fd(r->fds);
		r->fds++;
		r->fd_count--;
	}
	return true;
}

/* Is `target` the target of one of the host directories? */
static bool has_target(const struct rootspec_place *places, unsigned count, const char *target)
{
	for (unsigned i = 0; i < count; i++)
		if (places[i].kind == ROOTSPEC_HOST && strcmp(places[i].target, target) == 0)
			return true;
	return false;
}

static bool take_guard(struct reader *r, const struct rootspec_place *places, unsigned place_count,
		       struct rootspec_guard *ret)
{
	struct guard_body body;
	char *target, *name;

	if (!take(r, &body, sizeof(body)) || !(target = take_text(r)) || !(name = take_text(r)))
		return false;
	if (body.care > ROOTSPEC_MASKED || !has_target(places, place_count, target))
		return false;
	*ret = (struct rootspec_guard){ .care = body.care, .target = target, .name = name };
	return true;
}

int places_parse(struct frame *f, struct places *p, struct rootspec_shown *ret, struct err *e)
{
	struct reader r = { .at = f->bytes,
			    .end = f->bytes + f->len,
			    .fds = f->fds + 1,
			    .fd_count = f->fd_count ? f->fd_count - 1 : 0 };
	struct header header;
	bool is_right = take(&r, &header, sizeof(header)) && header.place_count <= PLACES_MAX &&
			header.guard_count <= PLACES_GUARDS_MAX;

	if (is_right) {
		p->places = mem_alloc((header.place_count + 1) * sizeof(*p->places));
		p->guards = mem_alloc((header.guard_count + 1) * sizeof(*p->guards));
	}
	for (uint32_t i = 0; is_right && i < header.place_count; i++)
		is_right = take_place(&r, &p->places[i]);
	for (uint32_t i = 0; is_right && i < header.guard_count; i++)
		is_right = take_guard(&r, p->places, header.place_count, &p->guards[i]);
	if (!is_right || r.at != r.end || r.fd_count > 0)
		return err_set(e, ERR_INVALID, "what a claimed sandbox should show makes no sense");
	*ret = (struct rootspec_shown){ .places = p->places,
					.guards = p->guards,
					.place_count = header.place_count,
					.guard_count = header.guard_count };
	return 0;
}
