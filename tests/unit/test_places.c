/* test_places - the directories that a pooled sandbox is sent: encoded, decoded, and damaged. */
#include "unit.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "protocol/places.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rootspec_place places[] = {
	{ .kind = ROOTSPEC_HOST,
	  .target = "/shown",
	  .source = "/host/shown",
	  .tree_fd = -1,
	  .device = 7,
	  .inode = 1ull << 40,
	  .is_read_only = true },
	{ .kind = ROOTSPEC_TMPFS, .target = "/shown/hidden", .tree_fd = -1, .size_bytes = 4096 },
	{ .kind = ROOTSPEC_HOST,
	  .target = "/work",
	  .source = "/work",
	  .tree_fd = -1,
	  .device = 8,
	  .inode = 9,
	  .is_dir = true },
};
static struct rootspec_guard guards[] = {
	{ ROOTSPEC_PROTECTED, "/work", "" },
	{ ROOTSPEC_MASKED, "/work", ".env" },
	{ ROOTSPEC_PINNED, "/shown", "a/b" },
};
static const struct rootspec_shown sent = { .places = places,
					    .place_count = COUNT_OF(places),
					    .guards = guards,
					    .guard_count = COUNT_OF(guards) };

/* As received: descriptor 0 is for the report of the completed setup, then the mounts. */
struct received {
	struct frame frame;
	struct places places;
};

static void receive(struct received *p, const struct buf *body, size_t len, const int *trees,
		    unsigned tree_count)
{
	*p = (struct received){ 0 };
	p->frame.bytes =
		mem_alloc(len + 1); /* exactly this size: a sanitizer detects reads beyond it */
	memcpy(p->frame.bytes, body->bytes, len);
	p->frame.bytes[len] = '\0';
	p->frame.len = len;
	p->frame.fds[0] = -1;
	p->frame.fd_count = 1 + tree_count;
	for (unsigned i = 0; i < tree_count; i++)
		p->frame.fds[1 + i] = fcntl(trees[i], F_DUPFD_CLOEXEC, 0);
}

static void done(struct received *p, const struct rootspec_shown *o)
{
	for (unsigned i = 0; p->places.places && i < o->place_count; i++)
		cleanup_closep(&p->places.places[i].tree_fd);
	free(p->places.places);
	free(p->places.guards);
	frame_done(&p->frame);
}

static void what_is_sent_arrives(void **state)
{
	struct rootspec_shown got = { 0 };
	struct received p;
	int fds[PLACES_TREES_MAX], tree = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned count = 0;
	cleanup_buf struct buf body;

	(void)state;
	buf_init(&body, BUF_TEXT_MAX_BYTES);
	places[2].tree_fd = tree;
	assert_true(places_format(&sent, &body, fds, &count));
	assert_int_equal(count, 1);
	assert_int_equal(fds[0], tree);
	receive(&p, &body, body.len, fds, count);
	{
		struct err e = { 0 };

		assert_int_equal(places_parse(&p.frame, &p.places, &got, &e), 0);
	}
	assert_int_equal(got.place_count, COUNT_OF(places));
	for (unsigned i = 0; i < got.place_count; i++) {
		const struct rootspec_place *a = &places[i], *b = &got.places[i];

		assert_int_equal(a->kind, b->kind);
		assert_string_equal(a->target, b->target);
		assert_true(a->source ? b->source && strcmp(a->source, b->source) == 0
				      : !b->source);
		assert_true(a->device == b->device && a->inode == b->inode &&
			    a->size_bytes == b->size_bytes);
		assert_true(a->is_dir == b->is_dir && a->is_read_only == b->is_read_only);
		assert_true((a->tree_fd >= 0) == (b->tree_fd >= 0));
	}
	assert_int_equal(got.guard_count, COUNT_OF(guards));
	for (unsigned i = 0; i < got.guard_count; i++) {
		assert_int_equal(guards[i].care, got.guards[i].care);
		assert_string_equal(guards[i].target, got.guards[i].target);
		assert_string_equal(guards[i].name, got.guards[i].name);
	}
	done(&p, &got);
	places[2].tree_fd = -1;
	(void)close(tree);
}

/* A truncated message, an additional byte, a descriptor too many or too few: all are refused. */
static void what_is_damaged_is_refused(void **state)
{
	int fds[PLACES_TREES_MAX], tree = open("/dev/null", O_RDONLY | O_CLOEXEC);
	unsigned count = 0;
	cleanup_buf struct buf body;

	(void)state;
	buf_init(&body, BUF_TEXT_MAX_BYTES);
	assert_true(places_format(&sent, &body, fds, &count));
	buf_add(&body, "x", 1);
	for (size_t len = 0; len <= body.len; len++) {
		struct rootspec_shown got = { 0 };
		struct received p;
		struct err e = { 0 };

		receive(&p, &body, len, NULL, 0);
		assert_int_equal(places_parse(&p.frame, &p.places, &got, &e),
				 len == body.len - 1 ? 0 : -1);
		done(&p, &got);
	}
	{
		struct rootspec_shown got = { 0 };
		struct received p;
		struct err e = { 0 };

		receive(&p, &body, body.len - 1, &tree, 1);
		assert_int_equal(places_parse(&p.frame, &p.places, &got, &e), -1);
		done(&p, &got);
	}
	(void)close(tree);
}

/*
 * Changes every byte once: the message is refused or decoded differently, without reading beyond
 * it.
 */
static void no_byte_leads_astray(void **state)
{
	int fds[PLACES_TREES_MAX];
	unsigned count = 0;
	cleanup_buf struct buf body;

	(void)state;
	buf_init(&body, BUF_TEXT_MAX_BYTES);
	assert_true(places_format(&sent, &body, fds, &count));
	for (size_t at = 0; at < body.len; at++)
		for (unsigned bit = 0; bit < 8; bit++) {
			struct rootspec_shown got = { 0 };
			struct received p;
			struct err e = { 0 };

			receive(&p, &body, body.len, NULL, 0);
			p.frame.bytes[at] = (char)(p.frame.bytes[at] ^ (1 << bit));
			(void)!places_parse(&p.frame, &p.places, &got, &e);
			for (unsigned i = 0; i < got.place_count; i++) {
				assert_int_equal(got.places[i].target[0], '/');
				assert_true(got.places[i].kind == ROOTSPEC_TMPFS ||
					    got.places[i].source[0] == '/');
			}
			done(&p, &got);
		}
}

static void more_mounts_than_a_message_takes_are_not_sent(void **state)
{
	struct rootspec_place many[PLACES_TREES_MAX + 1];
	const struct rootspec_shown o = { .places = many, .place_count = COUNT_OF(many) };
	int fds[PLACES_TREES_MAX];
	unsigned count = 0;
	cleanup_buf struct buf body;

	(void)state;
	buf_init(&body, BUF_TEXT_MAX_BYTES);
	for (size_t i = 0; i < COUNT_OF(many); i++)
		many[i] = (struct rootspec_place){
			.kind = ROOTSPEC_HOST, .target = "/a", .source = "/a", .tree_fd = 0
		};
	assert_false(places_format(&o, &body, fds, &count));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_arrives),
		cmocka_unit_test(what_is_damaged_is_refused),
		cmocka_unit_test(no_byte_leads_astray),
		cmocka_unit_test(more_mounts_than_a_message_takes_are_not_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
