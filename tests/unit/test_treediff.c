/* test_treediff - differences between layers. */
#include "treeplace.h"

#include "base/buf.h"
#include "tree/treediff.h"

#include <sys/mount.h>

#define LAYERS 3 /* of each kind */

static char *program;
static int upper[LAYERS], base[LAYERS]; /* highest first */

static int layers_setup(void **state)
{
	struct place *p;
	char name[16];

	(void)place_setup(state);
	p = *state;
	for (unsigned i = 0; i < LAYERS; i++) {
		(void)snprintf(name, sizeof(name), "upper%u", i);
		upper[i] = make_directory(p->fd, name);
		(void)snprintf(name, sizeof(name), "base%u", i);
		base[i] = make_directory(p->fd, name);
	}
	return 0;
}

static int layers_teardown(void **state)
{
	for (unsigned i = 0; i < LAYERS; i++) {
		(void)close(upper[i]);
		(void)close(base[i]);
	}
	return place_teardown(state);
}

static void need_whiteouts(const struct place *p)
{
	if (mknodat(p->fd, "probe", S_IFCHR, 0) < 0) {
		print_message("needs root or a user namespace, for whiteouts\n");
		skip();
	}
}

static void expect_list(const struct treediff_options *o, const char *expected, bool is_cut)
{
	struct treediff d = { 0 };
	struct err e;
	cleanup_buf struct buf text = { .max = 1u << 20 };

	if (treediff_run(o, &d, &e) < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < d.count; i++)
		buf_addf(&text, "%c %s\n", treediff_letter(d.list[i].kind), d.list[i].path);
	assert_string_equal(buf_text(&text), expected);
	assert_int_equal(d.is_cut, is_cut);
	treediff_done(&d);
	treediff_done(&d);
}

static void expect_diff(const char *expected)
{
	expect_list(&(struct treediff_options){ upper, LAYERS, base, LAYERS }, expected, false);
}

static void nothing_written_is_no_change(void **state)
{
	(void)state;
	make_directories(base[0], "etc");
	make_file(base[2], "file", "x");
	expect_diff("");
}

static void files_are_added_changed_and_deleted(void **state)
{
	need_whiteouts(*state);
	make_directories(base[2], "etc/sub");
	make_file(base[2], "etc/changed", "old");
	make_file(base[1], "etc/gone", "old");
	make_file(base[0], "etc/stays", "old");
	make_directories(base[0], "tree/below");
	make_directories(upper[0], "etc");
	make_file(upper[0], "etc/changed", "new");
	make_whiteout(upper[0], "etc/gone");
	make_file(upper[0], "etc/new", "new");
	make_whiteout(upper[0], "tree");
	make_whiteout(upper[0], "never there");
	assert_int_equal(symlinkat("/etc/shadow", upper[0], "link"), 0);
	expect_diff("C /etc\nC /etc/changed\nD /etc/gone\nA /etc/new\nA /link\nD /tree\n");
}

static void a_new_directory_is_added_with_all_in_it(void **state)
{
	(void)state;
	make_directories(upper[1], "a/b/c");
	make_file(upper[1], "a/b/c/f", "1");
	make_file(upper[0], "a.b", "1");
	expect_diff("A /a\nA /a.b\nA /a/b\nA /a/b/c\nA /a/b/c/f\n");
}

static void a_directory_is_changed_by_its_mode_and_owner(void **state)
{
	const struct place *p = *state;

	make_directories(base[0], "mode");
	make_directories(base[0], "owner");
	make_directories(base[0], "same/same");
	make_directories(upper[0], "mode");
	make_directories(upper[0], "owner");
	make_directories(upper[0], "same/same");
	assert_int_equal(fchmodat(upper[0], "mode", 0700, 0), 0);
	if (!can_give_away(p)) {
		expect_diff("C /mode\n");
		return;
	}
	assert_int_equal(fchownat(upper[0], "owner", 0, 5, 0), 0);
	expect_diff("C /mode\nC /owner\n");
}

/* The mode is that of the highest layer with the entry. */
static void modes_are_those_of_the_highest_layers(void **state)
{
	(void)state;
	make_directories(base[0], "d");
	make_directories(base[1], "d");
	make_directories(upper[0], "d");
	make_directories(upper[1], "d");
	assert_int_equal(fchmodat(base[1], "d", 0700, 0), 0);
	assert_int_equal(fchmodat(upper[1], "d", 0711, 0), 0);
	expect_diff("");
	assert_int_equal(fchmodat(base[0], "d", 0700, 0), 0);
	expect_diff("C /d\n");
}

static void kinds_can_change(void **state)
{
	(void)state;
	make_directories(base[0], "dir/sub");
	make_file(base[0], "dir/sub/f", "x");
	make_file(base[0], "file", "x");
	make_file(upper[0], "dir", "x");
	make_directories(upper[0], "file/sub");
	make_opaque(upper[0], "file");
	expect_diff("C /dir\nC /file\nA /file/sub\n");
}

static void an_opaque_directory_deletes_what_was_in_it(void **state)
{
	(void)state;
	make_directories(base[1], "d/old");
	make_directories(base[1], "d/both/old");
	make_file(base[0], "d/both/file", "old");
	make_file(base[0], "d/file", "old");
	make_file(base[0], "d/kept", "old");
	make_directories(upper[0], "d/both");
	make_opaque(upper[0], "d");
	make_file(upper[0], "d/kept", "new");
	make_file(upper[0], "d/new", "new");
	expect_diff("C /d\nC /d/both\nD /d/both/file\nD /d/both/old\nD /d/file\nC /d/kept\n"
		    "A /d/new\nD /d/old\n");
}

static void a_higher_layer_hides_a_lower_one(void **state)
{
	need_whiteouts(*state);
	make_directories(base[0], "d");
	make_file(base[0], "d/f", "x");
	make_file(base[0], "d/g", "x");
	/* changes of the lower checkpoint do not matter if the higher ones hide them */
	make_directories(upper[2], "d/added");
	make_file(upper[2], "d/f", "changed");
	make_file(upper[2], "x", "added");
	make_directories(upper[2], "tree/sub");
	make_whiteout(upper[1], "x");
	make_whiteout(upper[1], "d");
	make_whiteout(upper[1], "tree");
	make_directories(upper[0], "d");
	make_opaque(upper[0], "d");
	make_file(upper[0], "d/g", "back");
	expect_diff("C /d\nD /d/f\nC /d/g\n");
}

static void a_directory_above_a_whiteout_hides_without_being_opaque(void **state)
{
	need_whiteouts(*state);
	make_directories(base[0], "d");
	make_file(base[0], "d/f", "x");
	make_directories(upper[2], "d");
	make_file(upper[2], "d/h", "x");
	make_whiteout(upper[1], "d");
	make_directories(upper[0], "d");
	expect_diff("C /d\nD /d/f\n");
}

static void the_image_may_hide_its_own(void **state)
{
	need_whiteouts(*state);
	make_directories(base[2], "d");
	make_file(base[2], "d/hidden", "x");
	make_file(base[2], "f", "x");
	make_directories(base[0], "d");
	make_opaque(base[0], "d");
	make_whiteout(base[0], "f");
	make_directories(upper[0], "d");
	make_file(upper[0], "d/hidden", "new");
	make_file(upper[0], "f", "new");
	expect_diff("C /d\nA /d/hidden\nA /f\n");
	assert_int_equal(unlinkat(upper[0], "f", 0), 0);
	make_whiteout(upper[0], "f");
	expect_diff("C /d\nA /d/hidden\n");
}

static void without_layers_known_paths_were_there(void **state)
{
	static const char *const known[] = { "/etc", "/etc/passwd", "/home", "/bin", NULL };
	const struct treediff_options o = { upper, 1, NULL, 0, known };

	(void)state;
	make_directories(upper[0], "etc");
	make_directories(upper[0], "home/user");
	make_file(upper[0], "etc/passwd", "x");
	assert_int_equal(symlinkat("usr/bin", upper[0], "bin"), 0);
	make_directories(upper[0], "etcetera/passwd");
	expect_list(&o, "A /etcetera\nA /etcetera/passwd\nC /home\nA /home/user\n", false);
}

static void the_list_is_cut_and_says_so(void **state)
{
	struct treediff_options o = { upper, LAYERS, base, LAYERS, .max_entries = 2 };

	(void)state;
	make_directories(base[0], "d");
	make_directories(upper[0], "d");
	make_file(upper[0], "d/a", "1");
	make_file(upper[0], "d/b", "1");
	expect_list(&o, "C /d\nA /d/a\nA /d/b\n", false);
	make_file(upper[0], "d/c", "1");
	expect_list(&o, "C /d\nA /d/a\nA /d/b\n", true);
}

/* Deeper than a path can name. */
static void what_lies_too_deep_is_cut(void **state)
{
	const struct treediff_options o = { upper, LAYERS, base, LAYERS };
	struct treediff d = { 0 };
	struct err e;
	cleanup_fd int fd = openat(upper[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		int next = make_directory(fd, "d");

		(void)close(fd);
		fd = next;
	}
	if (treediff_run(&o, &d, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(d.is_cut);
	assert_int_equal(d.count, 2049);
	treediff_done(&d);
}

static void links_are_not_followed(void **state)
{
	const struct place *p = *state;

	assert_int_equal(mkdirat(p->fd, "outside", 0755), 0);
	make_file(p->fd, "outside/secret", "x");
	make_directories(base[0], "d");
	assert_int_equal(symlinkat("../outside", base[0], "e"), 0);
	assert_int_equal(symlinkat("../outside", upper[0], "d"), 0);
	assert_int_equal(symlinkat("../outside", upper[0], "new"), 0);
	make_directories(upper[0], "e");
	make_file(upper[0], "e/secret", "x");
	expect_diff("C /d\nC /e\nA /e/secret\nA /new\n");
}

/* ---- overlay itself ---- */

static void change(int fd)
{
	make_file(fd, "etc/new", "1");
	assert_int_equal(unlinkat(fd, "etc/old", 0), 0);
	assert_int_equal(fchmodat(fd, "etc/mode", 0600, 0), 0);
	assert_int_equal(unlinkat(fd, "tree/f", 0), 0);
	assert_int_equal(unlinkat(fd, "tree", AT_REMOVEDIR), 0);
	make_directories(fd, "tree");
	assert_int_equal(unlinkat(fd, "file", 0), 0);
	make_directories(fd, "file/sub");
	assert_int_equal(unlinkat(fd, "empty", AT_REMOVEDIR), 0);
	make_file(fd, "empty", "a file");
}

static void what_overlay_makes_is_understood(void **state)
{
	const struct place *p = *state;
	char options[512], target[128];
	cleanup_fd int fd = -1;

	if (!is_inside() || unshare(CLONE_NEWNS) < 0) {
		print_message("runs in a user namespace\n");
		skip();
	}
	make_directories(base[1], "etc");
	make_directories(base[1], "tree");
	make_directories(base[1], "empty");
	make_file(base[1], "etc/old", "x");
	make_file(base[1], "etc/mode", "x");
	make_file(base[1], "tree/f", "x");
	make_file(base[0], "file", "x");
	(void)snprintf(options, sizeof(options),
		       "userxattr,lowerdir=%s/base0:%s/base1,upperdir=%s/upper0,workdir=%s/to",
		       p->path, p->path, p->path, p->path);
	(void)snprintf(target, sizeof(target), "%s/from", p->path);
	if (mount("overlay", target, "overlay", 0, options) < 0) {
		print_message("needs overlay mounts in user namespaces\n");
		skip();
	}
	fd = open(target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	change(fd);
	cleanup_closep(&fd);
	assert_int_equal(umount(target), 0);
	expect_diff("C /empty\nC /etc\nC /etc/mode\nA /etc/new\nD /etc/old\nC /file\nA /file/sub\n"
		    "C /tree\nD /tree/f\n");
}

static void all_of_this_holds_in_a_user_namespace(void **state)
{
	int status;

	(void)state;
	if (is_inside())
		return;
	status = run_inside(program);
	if (status == 77) {
		print_message("needs user namespaces\n");
		skip();
	}
	assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, layers_setup, layers_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_written_is_no_change),
		TEST(files_are_added_changed_and_deleted),
		TEST(a_new_directory_is_added_with_all_in_it),
		TEST(a_directory_is_changed_by_its_mode_and_owner),
		TEST(modes_are_those_of_the_highest_layers),
		TEST(kinds_can_change),
		TEST(an_opaque_directory_deletes_what_was_in_it),
		TEST(a_higher_layer_hides_a_lower_one),
		TEST(a_directory_above_a_whiteout_hides_without_being_opaque),
		TEST(the_image_may_hide_its_own),
		TEST(without_layers_known_paths_were_there),
		TEST(the_list_is_cut_and_says_so),
		TEST(what_lies_too_deep_is_cut),
		TEST(links_are_not_followed),
		TEST(what_overlay_makes_is_understood),
		cmocka_unit_test(all_of_this_holds_in_a_user_namespace),
	};

	(void)argc;
	program = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
