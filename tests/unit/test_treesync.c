/* test_treesync - trees copied in passes, and layers of differences. */
#include "treeplace.h"

#include "tree/treesync.h"

#include <sys/mman.h>
#include <time.h>

#define DEPTH 300
#define LARGE_BYTES (3 << 20)

struct made {
	struct treeindex *index;
	struct treesync *sync;
};

static void need_whiteouts(const struct place *p)
{
	if (mknodat(p->fd, "probe", S_IFCHR, 0) < 0) {
		print_message("needs root or a user namespace, for whiteouts\n");
		skip();
	}
}

/* A pass that began `later_s` from now: files that changed before are sure. */
static struct treesync_result pass(struct place *p, struct made *m, int later_s, bool is_last)
{
	struct treesync_pass order = { .is_last = is_last };
	struct treesync_result result;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &order.began), 0);
	order.began.tv_sec += later_s;
	if (treesync_run(m->sync, &order, &result, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	if (is_last && treesync_settle(m->sync, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	return result;
}

static struct made begin_full(const struct place *p)
{
	struct made m = { .index = treeindex_new() };
	const struct treesync_options o = { .from_fd = p->from_fd,
					    .to_fd = p->to_fd,
					    .base_fd = -1,
					    .previous_fd = -1,
					    .index = m.index,
					    .is_full = true };

	m.sync = treesync_new(&o);
	return m;
}

static void end(struct made *m)
{
	treesync_freep(&m->sync);
	treeindex_freep(&m->index);
}

static int save(struct place *p, struct made *m, bool is_base)
{
	const struct treeindex_header header = { .sandbox = "x" };
	int fd = memfd_create("index", MFD_CLOEXEC);

	assert_true(fd >= 0);
	if (treeindex_write(m->index, &header, treesync_last_pass(m->sync), is_base, fd, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void write_at(int dir_fd, const char *path, off_t at, const char *text)
{
	cleanup_fd int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

static void make_large(int dir_fd, const char *path)
{
	cleanup_free char *bytes = malloc(LARGE_BYTES + 1);

	memset(bytes, 'x', LARGE_BYTES);
	bytes[LARGE_BYTES] = '\0';
	make_file(dir_fd, path, bytes);
}

static void a_pass_copies_what_changed_since_the_last(void **state)
{
	struct place *p = *state;
	struct made m = begin_full(p);
	struct treesync_result r;

	make_file(p->from_fd, "same", "same");
	make_file(p->from_fd, "changed", "before");
	make_file(p->from_fd, "dir/gone", "gone");
	make_file(p->from_fd, "kind", "a file");
	make_file(p->from_fd, "moved/inside", "moves");
	make_large(p->from_fd, "large");
	assert_int_equal(linkat(p->from_fd, "same", p->from_fd, "link", 0), 0);
	r = pass(p, &m, 10, false);
	assert_int_equal(r.copied_count, 6);
	r = pass(p, &m, 10, false);
	assert_int_equal(r.copied_count, 0);
	write_at(p->from_fd, "changed", 0, "after!");
	write_at(p->from_fd, "large", 1 << 20, "y");
	assert_int_equal(unlinkat(p->from_fd, "dir/gone", 0), 0);
	assert_int_equal(unlinkat(p->from_fd, "kind", 0), 0);
	make_file(p->from_fd, "kind/file", "a directory");
	assert_int_equal(renameat(p->from_fd, "moved", p->from_fd, "there"), 0);
	r = pass(p, &m, 10, true);
	assert_int_equal(r.copied_count, 3); /* what was moved is linked */
	assert_int_equal(r.copied_bytes, 6 + (256 << 10) + 11);
	expect_text(p->to_fd, "changed", "after!");
	expect_text(p->to_fd, "kind/file", "a directory");
	expect_text(p->to_fd, "there/inside", "moves");
	assert_false(is_there(p->to_fd, "dir/gone"));
	assert_false(is_there(p->to_fd, "moved"));
	assert_int_equal(look(p->to_fd, "there/inside").st_nlink, 1);
	assert_int_equal(look(p->to_fd, "same").st_ino, look(p->to_fd, "link").st_ino);
	assert_int_equal(look(p->to_fd, "large").st_size, LARGE_BYTES);
	assert_int_equal(look(p->to_fd, "dir").st_mtime, look(p->from_fd, "dir").st_mtime);
	end(&m);
}

static void what_changed_just_now_is_copied_again(void **state)
{
	struct place *p = *state;
	struct made m = begin_full(p);

	make_file(p->from_fd, "file", "text");
	assert_int_equal(pass(p, &m, 0, false).copied_count, 1);
	assert_int_equal(pass(p, &m, 0, true).copied_count, 1);
	end(&m);
}

static void depth_does_not_matter(void **state)
{
	struct place *p = *state;
	struct made m = begin_full(p);
	int fd = openat(p->from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < DEPTH; i++) {
		int next_fd = make_directory(fd, "a-directory-with-a-long-name");

		(void)close(fd);
		fd = next_fd;
	}
	make_file(fd, "file", "deep");
	assert_int_equal(linkat(fd, "file", p->from_fd, "zz-last", 0), 0);
	(void)pass(p, &m, 10, false);
	assert_int_equal(renameat(fd, "file", fd, "other"), 0);
	(void)pass(p, &m, 10, true);
	expect_text(p->to_fd, "zz-last", "deep");
	assert_int_equal(look(p->to_fd, "zz-last").st_nlink, 2);
	(void)close(fd);
	end(&m);
}

static void a_layer_of_differences_has_nothing_else(void **state)
{
	struct place *p = *state;
	struct made m = begin_full(p), second = { 0 };
	struct treesync_options o = { .from_fd = p->from_fd,
				      .base_fd = p->to_fd,
				      .previous_fd = -1 };
	struct treeindex_header header;
	cleanup_fd int index_fd = -1, layer_fd = -1;

	need_whiteouts(p);
	make_file(p->from_fd, "keep/same", "same");
	make_file(p->from_fd, "some/changed", "before");
	make_file(p->from_fd, "some/same", "same");
	make_file(p->from_fd, "gone/file", "gone");
	make_file(p->from_fd, "hides/file", "hidden");
	(void)pass(p, &m, 10, true);
	index_fd = save(p, &m, true);
	end(&m);
	write_at(p->from_fd, "some/changed", 0, "after!");
	assert_int_equal(unlinkat(p->from_fd, "gone/file", 0), 0);
	assert_int_equal(unlinkat(p->from_fd, "gone", AT_REMOVEDIR), 0);
	make_opaque(p->from_fd, "hides");
	layer_fd = make_directory(p->fd, "layer");
	if (treeindex_read(index_fd, &header, &second.index, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	o.to_fd = layer_fd;
	o.index = second.index;
	second.sync = treesync_new(&o);
	(void)pass(p, &second, 10, true);
	expect_text(layer_fd, "some/changed", "after!");
	assert_false(is_there(layer_fd, "some/same"));
	assert_false(is_there(layer_fd, "keep"));
	assert_true(is_whiteout(layer_fd, "gone"));
	assert_true(is_opaque(layer_fd, "hides"));
	assert_int_equal(look(layer_fd, "hides/file").st_ino, look(p->to_fd, "hides/file").st_ino);
	end(&second);
}

static void an_index_that_is_damaged_is_refused(void **state)
{
	struct place *p = *state;
	struct made m = begin_full(p);
	cleanup_free char *bytes = NULL;
	cleanup_fd int index_fd = -1;
	size_t len = 0;

	make_file(p->from_fd, "a/b", "text");
	make_file(p->from_fd, "c", "text");
	(void)pass(p, &m, 10, true);
	index_fd = save(p, &m, true);
	end(&m);
	assert_int_equal(file_read_fd(index_fd, 1 << 20, &bytes, &len), 0);
	for (size_t i = 0; i <= len; i++) {
		cleanup_fd int fd = memfd_create("damaged", MFD_CLOEXEC);
		struct treeindex_header header;
		struct treeindex *index = NULL;
		bool is_cut = i % 2 == 0;

		if (i == len)
			break;
		bytes[i] ^= is_cut ? 0 : 0x41;
		assert_int_equal(write(fd, bytes, is_cut ? i : len), (ssize_t)(is_cut ? i : len));
		bytes[i] ^= is_cut ? 0 : 0x41;
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(treeindex_read(fd, &header, &index, &p->e), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(a_pass_copies_what_changed_since_the_last),
		TREE_TEST(what_changed_just_now_is_copied_again),
		TREE_TEST(depth_does_not_matter),
		TREE_TEST(a_layer_of_differences_has_nothing_else),
		TREE_TEST(an_index_that_is_damaged_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
