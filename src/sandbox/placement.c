/*
 * placement - sends host directories to a warm sandbox; see placement.h.
 *
 * The message is a header, then for each place and each guard a struct and its NUL-terminated
 * texts. Both ends are the same build of the same program (pool/claim checks this), so structs are
 * sent as they are in memory.
 */
#include "sandbox/placement.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/signals.h"
#include "protocol/order.h"
#include "host/privs.h"
#include "protocol/report.h"
#include "sandbox/seccomp.h"

#include <errno.h>
#include <poll.h>
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

bool placement_format(const struct rootfs_options *o, struct buf *out, int *ret_fds,
		      unsigned *ret_count)
{
	const struct header header = { o->place_count, o->guard_count };

	*ret_count = 0;
	buf_add(out, &header, sizeof(header));
	for (unsigned i = 0; i < o->place_count; i++) {
		const struct rootfs_place *p = &o->places[i];
		const struct place_body body = { .device = p->device,
						 .inode = p->inode,
						 .size_bytes = p->size_bytes,
						 .kind = p->kind,
						 .is_dir = p->is_dir,
						 .is_read_only = p->is_read_only,
						 .has_tree = p->tree_fd >= 0 };

		if (p->tree_fd >= 0 && *ret_count == PLACEMENT_TREES_MAX)
			return false;
		if (p->tree_fd >= 0)
			ret_fds[(*ret_count)++] = p->tree_fd;
		buf_add(out, &body, sizeof(body));
		add_text(out, p->target);
		add_text(out, p->source ? p->source : "");
	}
	for (unsigned i = 0; i < o->guard_count; i++) {
		const struct guard_body body = { .care = o->guards[i].care };

		buf_add(out, &body, sizeof(body));
		add_text(out, o->guards[i].target);
		add_text(out, o->guards[i].name);
	}
	return !out->is_cut && o->place_count <= PLACEMENT_PLACES_MAX &&
	       o->guard_count <= PLACEMENT_GUARDS_MAX;
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

static bool take_place(struct reader *r, struct rootfs_place *ret)
{
	struct place_body body;
	char *target, *source;

	if (!take(r, &body, sizeof(body)) || !(target = take_text(r)) || !(source = take_text(r)))
		return false;
	if (target[0] != '/' || body.kind > ROOTFS_TMPFS ||
	    (body.kind == ROOTFS_HOST && source[0] != '/') || (body.has_tree && r->fd_count == 0))
		return false;
	*ret = (struct rootfs_place){ .kind = body.kind,
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
static bool has_target(const struct rootfs_place *places, unsigned count, const char *target)
{
	for (unsigned i = 0; i < count; i++)
		if (places[i].kind == ROOTFS_HOST && strcmp(places[i].target, target) == 0)
			return true;
	return false;
}

static bool take_guard(struct reader *r, const struct rootfs_place *places, unsigned place_count,
		       struct rootfs_guard *ret)
{
	struct guard_body body;
	char *target, *name;

	if (!take(r, &body, sizeof(body)) || !(target = take_text(r)) || !(name = take_text(r)))
		return false;
	if (body.care > ROOTFS_MASKED || !has_target(places, place_count, target))
		return false;
	*ret = (struct rootfs_guard){ .care = body.care, .target = target, .name = name };
	return true;
}

int placement_parse(struct placement *p, struct rootfs_options *o, struct err *e)
{
	struct reader r = { .at = p->frame.bytes,
			    .end = p->frame.bytes + p->frame.len,
			    .fds = p->frame.fds + 1,
			    .fd_count = p->frame.fd_count ? p->frame.fd_count - 1 : 0 };
	struct header header;
	bool is_right = take(&r, &header, sizeof(header)) &&
			header.place_count <= PLACEMENT_PLACES_MAX &&
			header.guard_count <= PLACEMENT_GUARDS_MAX;

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
	o->places = p->places;
	o->place_count = header.place_count;
	o->guards = p->guards;
	o->guard_count = header.guard_count;
	return 0;
}

/* Also polls the lifeline, because the supervisor may die while we wait. */
static int wait_for_order(struct placement *p, struct err *e)
{
	struct pollfd polled[] = { { .fd = p->orders_fd, .events = POLLIN },
				   { .fd = p->lifeline_fd, .events = POLLIN } };
	int r;

	do
		r = poll(polled, COUNT_OF(polled), -1);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return err_sys(e, errno, "wait for a claim");
	if (polled[1].revents)
		return err_set(e, ERR_SYSTEM, "the supervisor ended while the sandbox waited");
	r = frame_receive(p->orders_fd, FRAME_WAIT, &p->frame);
	if (r < 0)
		return err_sys(e, -r, "receive what the sandbox should show");
	if (r == 0 || p->frame.kind != ORDER_PLACES || p->frame.fd_count == 0)
		return err_set(e, ERR_SYSTEM, "nobody said what the sandbox should show");
	p->placed_fd = take_fd(&p->frame.fds[0]);
	return 0;
}

/* Slow steps of sandbox/native and sandbox/serve, done early, while no client waits for this one. */
static int prepare_init(const struct placement *p, struct err *e)
{
	signals_reset();
	if (privs_bound_init(e) < 0 || privs_seclude(e) < 0)
		return -1;
	return seccomp_begin_mounting(p->seccomp_variant, e);
}

int placement_await(struct placement *p, struct rootfs_options *o, struct err *e)
{
	if (prepare_init(p, e) < 0)
		return -1;
	report_started(p->report_fd);
	if (wait_for_order(p, e) < 0)
		return -1;
	return placement_parse(p, o, e);
}
