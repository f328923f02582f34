/* test_pluginfile - files that are changed together: what happens between the steps. */
#include "unit.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/sweep.h"
#include "agents/pluginfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char place[] = "/tmp/test_pluginfile.XXXXXX";
static int place_fd = -1;

static int make_place(void **state)
{
	(void)state;
	(void)strcpy(place + strlen(place) - 6, "XXXXXX");
	if (!mkdtemp(place))
		return -1;
	place_fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return place_fd < 0 ? -1 : 0;
}

static int remove_place(void **state)
{
	struct err e = { 0 };

	(void)state;
	(void)close(place_fd);
	return sweep_tree(AT_FDCWD, place, &e);
}

static void put(const char *path, const char *text)
{
	(void)unlinkat(place_fd, path, 0);
	assert_int_equal(file_create_at(place_fd, path, 0644, text), 0);
}

static void expect_text(const char *path, const char *expected)
{
	cleanup_free char *text = NULL;
	size_t len = 0;

	assert_int_equal(file_read_at(place_fd, path, 1000, &text, &len), 0);
	assert_string_equal(text, expected);
}

/* How many entries a directory has. */
static unsigned count_entries(const char *path)
{
	DIR *dir = fdopendir(openat(place_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	unsigned count = 0;

	assert_non_null(dir);
	for (const struct dirent *d; (d = readdir(dir));)
		count += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	(void)closedir(dir);
	return count;
}

static void read_project(const char *path, struct pluginfile *ret)
{
	struct err e = { 0 };

	if (pluginfile_read(place_fd, path, 0, ret, &e) < 0)
		fail_msg("%s", e.msg);
}

static void stage(struct pluginfile *f, const char *text)
{
	struct err e = { 0 };

	if (pluginfile_stage(f, text, strlen(text), 0644, &e) < 0)
		fail_msg("%s", e.msg);
}

static void old_file_is_there_until_the_commit(void **state)
{
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
	struct err e = { 0 };

	(void)state;
	put("a", "old");
	read_project("a", &f);
	assert_true(f.is_there);
	assert_string_equal(f.text, "old");
	stage(&f, "new");
	expect_text("a", "old");
	assert_int_equal(count_entries("."), 2);
	assert_int_equal(pluginfile_check(&f, &e), 0);
	assert_int_equal(pluginfile_commit(&f, &e), 0);
	expect_text("a", "new");
	pluginfile_undo(&f);
	expect_text("a", "new");
	assert_int_equal(count_entries("."), 1);
}

static void undo_takes_back_files_and_directories(void **state)
{
	CLEANUP(pluginfile_done) struct pluginfile first = { .dir_fd = -1 };
	CLEANUP(pluginfile_done) struct pluginfile second = { .dir_fd = -1 };

	(void)state;
	read_project("d/e/f/a", &first);
	read_project("d/e/b", &second);
	assert_false(first.is_there);
	assert_string_equal(first.text, "");
	stage(&first, "1");
	stage(&second, "2");
	assert_int_equal(count_entries("d/e"), 2);
	pluginfile_undo(&second);
	pluginfile_undo(&first);
	pluginfile_undo(&first);
	assert_int_equal(count_entries("."), 0);
}

static void undo_leaves_directories_that_were_there(void **state)
{
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };

	(void)state;
	assert_int_equal(mkdirat(place_fd, "d", 0755), 0);
	read_project("d/e/a", &f);
	stage(&f, "1");
	pluginfile_undo(&f);
	assert_int_equal(count_entries("d"), 0);
}

static void half_made_directories_are_taken_back_too(void **state)
{
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
	cleanup_free char *path = NULL;
	char name[300];
	struct err e = { 0 };

	(void)state;
	/* the second name is too long to be created */
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	path = mem_format("d/%s/a", name);
	f = (struct pluginfile){ .project_fd = place_fd, .path = take_ptr(path), .dir_fd = -1 };
	assert_int_equal(pluginfile_stage(&f, "1", 1, 0644, &e), -1);
	pluginfile_undo(&f);
	assert_int_equal(count_entries("."), 0);
}

static void expect_busy(struct pluginfile *f)
{
	struct err e = { 0 };

	assert_int_equal(pluginfile_check(f, &e), -1);
	assert_int_equal(e.code, ERR_BUSY);
	assert_string_equal(e.msg, "'a' was changed by somebody else meanwhile: try again");
	pluginfile_undo(f);
	pluginfile_done(f);
	assert_int_equal(count_entries("."), 1);
}

static void what_somebody_else_changed_meanwhile_is_not_overwritten(void **state)
{
	struct pluginfile f = { .dir_fd = -1 };
	cleanup_fd int fd = -1;

	(void)state;
	put("a", "old");
	read_project("a", &f);
	stage(&f, "new");
	put("a", "new"); /* another file of that name */
	expect_busy(&f);

	read_project("a", &f);
	stage(&f, "newer");
	fd = openat(place_fd, "a", O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_int_equal(write(fd, "!", 1), 1); /* the same file, longer */
	expect_busy(&f);
	expect_text("a", "new!");

	assert_int_equal(unlinkat(place_fd, "a", 0), 0);
	read_project("a", &f);
	stage(&f, "new");
	put("a", "theirs"); /* where no file was */
	expect_busy(&f);
	expect_text("a", "theirs");
}

static void links_that_come_after_the_reading_are_not_followed(void **state)
{
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(mkdirat(place_fd, "outside", 0755), 0);
	read_project("d/a", &f);
	assert_int_equal(symlinkat("outside", place_fd, "d"), 0);
	assert_int_equal(pluginfile_stage(&f, "1", 1, 0644, &e), -1);
	assert_int_equal(e.code, ERR_DENIED);
	assert_string_equal(e.msg,
			    "'d' is a symbolic link, and links in a project are not followed");
	assert_int_equal(count_entries("outside"), 0);
}

static void removal_stops_at_the_root_and_at_what_is_not_empty(void **state)
{
	CLEANUP(pluginfile_done) struct pluginfile f = { .dir_fd = -1 };
	CLEANUP(pluginfile_done) struct pluginfile g = { .dir_fd = -1 };
	cleanup_free char *path = mem_format("%s/home/x/y/a", place);
	struct err e = { 0 };

	(void)state;
	read_project("home/x/y/a", &g);
	stage(&g, "1");
	assert_int_equal(pluginfile_commit(&g, &e), 0);
	assert_int_equal(pluginfile_read(-1, path, strlen(place) + strlen("/home"), &f, &e), 0);
	assert_int_equal(pluginfile_stage_removal(&f, &e), 0);
	expect_text("home/x/y/a", "1");
	assert_int_equal(pluginfile_check(&f, &e), 0);
	put("home/x/b", "stays");
	assert_int_equal(pluginfile_commit(&f, &e), 0);
	assert_int_equal(count_entries("home/x"), 1);
	pluginfile_done(&f);

	path[strlen(path) - strlen("y/a")] = 'b';
	path[strlen(path) - strlen("/a")] = '\0';
	assert_int_equal(pluginfile_read(-1, path, strlen(place) + strlen("/home"), &f, &e), 0);
	assert_int_equal(pluginfile_stage_removal(&f, &e), 0);
	assert_int_equal(pluginfile_commit(&f, &e), 0);
	assert_int_equal(count_entries("home"), 0);
}

static void done_accepts_nothing(void **state)
{
	struct pluginfile f = { 0 };

	(void)state;
	pluginfile_done(&f);
	pluginfile_done(&f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(old_file_is_there_until_the_commit),
		TEST(undo_takes_back_files_and_directories),
		TEST(undo_leaves_directories_that_were_there),
		TEST(half_made_directories_are_taken_back_too),
		TEST(what_somebody_else_changed_meanwhile_is_not_overwritten),
		TEST(links_that_come_after_the_reading_are_not_followed),
		TEST(removal_stops_at_the_root_and_at_what_is_not_empty),
		TEST(done_accepts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
