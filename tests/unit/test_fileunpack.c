/*
 * test_fileunpack - unpacks archives into directories in use, and checks what they must not reach.
 *
 * Each test has the directory "to" and a canary outside of it.
 */
#include "tarwriter.h"
#include "treeplace.h"

#include "image/fileunpack.h"
#include "image/layerpack.h"

#include <sys/mman.h>

static struct buf archive = { .max = 64u << 20 };
static struct buf *const b = &archive;

static int unpack_within(struct place *p, unsigned flags, const struct layer_limits *limits)
{
	cleanup_fd int fd = memfd_create("archive", MFD_CLOEXEC);
	struct fileunpack_result result;

	add_end(b);
	assert_int_equal(file_write_all(fd, b->bytes, b->len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	b->len = 0;
	return fileunpack_run(fd, p->to_fd, flags, limits, &result, &p->e);
}

static void expect_unpacked(struct place *p, unsigned flags)
{
	if (unpack_within(p, flags, NULL) < 0)
		fail_msg("%s", p->e.msg);
}

static void expect_refused(struct place *p, enum err_code code, const char *words)
{
	assert_int_equal(unpack_within(p, 0, NULL), -1);
	assert_string_equal(p->e.msg, words);
	assert_int_equal(p->e.code, code);
}

static void a_tar_becomes_files(void **state)
{
	struct place *p = *state;

	ADD("./", '5', .mode = 0700);
	ADD("d/", '5', .mode = 0500);
	ADD("d/f", .content = "text", .mode = 0640);
	ADD("d/g", '1', .link = "d/f");
	ADD("l", '2', .link = "../canary");
	ADD("p", '6', .mode = 0600);
	ADD("implied/too/f", .content = "x");
	expect_unpacked(p, 0);
	expect_text(p->to_fd, "d/f", "text");
	assert_int_equal(look(p->to_fd, "d/f").st_mode, S_IFREG | 0640);
	assert_int_equal(look(p->to_fd, "d/f").st_mtime, MTIME);
	assert_int_equal(look(p->to_fd, "d/g").st_ino, look(p->to_fd, "d/f").st_ino);
	assert_int_equal(look(p->to_fd, "d").st_mode, S_IFDIR | 0500);
	assert_int_equal(look(p->to_fd, "d").st_mtime, MTIME);
	assert_int_equal(look(p->to_fd, "p").st_mode, S_IFIFO | 0600);
	assert_true(S_ISLNK(look(p->to_fd, "l").st_mode));
	assert_int_equal(look(p->to_fd, "implied/too").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p->to_fd, ".").st_mode, S_IFDIR | 0755); /* not the archive's mode */
}

static void names_that_climb_or_are_absolute_are_refused(void **state)
{
	struct place *p = *state;

	ADD("../canary", .content = "bad");
	expect_refused(p, ERR_INVALID, "'../canary': the name climbs with '..'");
	ADD("a/../../canary", .content = "bad");
	expect_refused(p, ERR_INVALID, "'a/../../canary': the name climbs with '..'");
	ADD("/etc/canary", .content = "bad");
	expect_refused(p, ERR_INVALID, "'/etc/canary': the name is absolute");
	ADD("..", '5');
	expect_refused(p, ERR_INVALID, "'..': the name climbs with '..'");
}

static void nothing_goes_through_a_link_of_the_archive(void **state)
{
	static const char *const targets[] = { "..", "/tmp", ".", "d" };
	struct place *p = *state;

	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		ADD("d/", '5');
		ADD("a", '2', .link = targets[i]);
		ADD("a/canary", .content = "bad");
		expect_refused(p, ERR_INVALID,
			       "'a/canary': the name leads through a symbolic link");
		assert_false(is_there(p->to_fd, "d/canary") || is_there(p->to_fd, "canary"));
		ADD("a", '2', .link = targets[i]);
		ADD("a/b/c/", '5');
		expect_refused(p, ERR_INVALID, "'a/b/c/': the name leads through a symbolic link");
	}
}

static void nothing_goes_through_a_link_that_was_there(void **state)
{
	struct place *p = *state;

	assert_int_equal(symlinkat("..", p->to_fd, "up"), 0);
	assert_int_equal(mkdirat(p->to_fd, "d", 0755), 0);
	assert_int_equal(symlinkat("../..", p->to_fd, "d/up"), 0);
	ADD("up/canary", .content = "bad");
	expect_refused(p, ERR_INVALID, "'up/canary': the name leads through a symbolic link");
	ADD("d/up/canary", .content = "bad");
	expect_refused(p, ERR_INVALID, "'d/up/canary': the name leads through a symbolic link");
	ADD("up/", '5', .mode = 0700);
	expect_refused(p, ERR_EXISTS, "'up/': a symbolic link of that name is there");
	ADD("up/new/d/", '5');
	expect_refused(p, ERR_INVALID, "'up/new/d/': the name leads through a symbolic link");
	assert_false(is_there(p->fd, "new"));
	make_file(p->to_fd, "file", "x");
	ADD("file/x", .content = "bad");
	expect_refused(p, ERR_INVALID, "'file/x': the name leads through what is not a directory");
}

static void files_and_links_are_replaced_not_written_through(void **state)
{
	struct place *p = *state;

	assert_int_equal(symlinkat("../canary", p->to_fd, "link"), 0);
	make_file(p->to_fd, "file", "old");
	assert_int_equal(linkat(p->to_fd, "file", p->to_fd, "other name", 0), 0);
	assert_int_equal(mkfifoat(p->to_fd, "fifo", 0600), 0);
	ADD("link", .content = "new");
	ADD("file", .content = "new");
	ADD("fifo", .content = "new"); /* without a reader: opening it would block */
	ADD("s", '2', .link = "a");
	ADD("s", '2', .link = "b");
	expect_unpacked(p, 0);
	expect_text(p->to_fd, "link", "new");
	expect_text(p->to_fd, "file", "new");
	expect_text(p->to_fd, "fifo", "new");
	expect_text(p->to_fd, "other name", "old");
}

static void directories_stay_as_they_are(void **state)
{
	struct place *p = *state;

	assert_int_equal(mkdirat(p->to_fd, "d", 0750), 0);
	make_file(p->to_fd, "d/kept", "old");
	ADD("d/", '5', .mode = 0777);
	ADD("d/new", .content = "new");
	expect_unpacked(p, 0);
	assert_int_equal(look(p->to_fd, "d").st_mode, S_IFDIR | 0750);
	expect_text(p->to_fd, "d/kept", "old");
	ADD("d", .content = "a file");
	expect_refused(p, ERR_EXISTS, "'d': a directory of that name is there");
	ADD("d", '2', .link = "x");
	expect_refused(p, ERR_EXISTS, "'d': a directory of that name is there");
	ADD("d/kept/", '5');
	expect_refused(p, ERR_EXISTS, "'d/kept/': a file of that name is there");
	expect_text(p->to_fd, "d/kept", "old");
}

static void hard_links_lead_to_the_same_archive_only(void **state)
{
	struct place *p = *state;

	make_file(p->to_fd, "there", "secret");
	assert_int_equal(symlinkat("..", p->to_fd, "up"), 0);
	ADD("h", '1', .link = "there");
	expect_refused(p, ERR_INVALID,
		       "'h': it is a hard link to 'there', which is not a file of this archive");
	ADD("h", '1', .link = "/etc/passwd");
	expect_refused(p, ERR_INVALID,
		       "'h': it is a hard link to '/etc/passwd': the name is "
		       "absolute");
	ADD("h", '1', .link = "../canary");
	expect_refused(p, ERR_INVALID,
		       "'h': it is a hard link to '../canary': the name climbs with '..'");
	ADD("h", '1', .link = "up/canary");
	expect_refused(
		p, ERR_INVALID,
		"'h': it is a hard link to 'up/canary', which is not a file of this archive");
	ADD("h", '1', .link = "up");
	expect_refused(p, ERR_INVALID,
		       "'h': it is a hard link to 'up', which is not a file of this archive");
	ADD("x", .content = "1");
	ADD("x", '1', .link = "x");
	expect_refused(p, ERR_INVALID, "'x': it is a hard link to 'x', which cannot be linked");
	/* a hard link to a symbolic link does not follow it */
	ADD("s", '2', .link = "../canary");
	ADD("h", '1', .link = "s");
	expect_unpacked(p, 0);
	assert_true(S_ISLNK(look(p->to_fd, "h").st_mode));
	ADD("h", .content = "mine");
	expect_unpacked(p, 0);
	expect_text(p->to_fd, "h", "mine");
	assert_int_equal(look(p->fd, "canary").st_nlink, 1);
	assert_int_equal(look(p->to_fd, "there").st_nlink, 1);
}

static void devices_are_refused(void **state)
{
	struct place *p = *state;

	ADD("dev/null", '3', .major = 1, .minor = 3);
	expect_refused(p, ERR_INVALID, "'dev/null': it is a device");
	ADD("white", '3', .major = 0, .minor = 0);
	expect_refused(p, ERR_INVALID, "'white': it is a device");
	ADD("disk", '4', .major = 8, .minor = 0);
	expect_refused(p, ERR_INVALID, "'disk': it is a device");
	assert_false(is_there(p->to_fd, "white") || is_there(p->to_fd, "disk"));
}

static void whiteouts_are_names_like_others(void **state)
{
	struct place *p = *state;

	make_file(p->to_fd, "x", "old");
	ADD(".wh.x", .content = "1");
	ADD("d/.wh..wh..opq", .content = "2");
	expect_unpacked(p, 0);
	expect_text(p->to_fd, "x", "old");
	expect_text(p->to_fd, ".wh.x", "1");
	expect_text(p->to_fd, "d/.wh..wh..opq", "2");
}

static void owners_and_set_id_bits_are_kept_on_demand_only(void **state)
{
	struct place *p = *state;

	ADD("f", .content = "1", .mode = 06755, .uid = 12, .gid = 34);
	ADD("d/", '5', .mode = 02755, .uid = 12, .gid = 34);
	expect_unpacked(p, 0);
	assert_int_equal(look(p->to_fd, "f").st_mode, S_IFREG | 0755);
	assert_int_equal(look(p->to_fd, "d").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p->to_fd, "f").st_uid, geteuid());
	if (!can_give_away(p)) {
		print_message("needs root, to give files away\n");
		skip();
	}
	ADD("k", .content = "1", .mode = 06755, .uid = 12, .gid = 34);
	ADD("e/", '5', .mode = 02755, .uid = 12, .gid = 34);
	ADD("s", '2', .link = "../canary", .uid = 12, .gid = 34);
	ADD("-1", .content = "1", .pax = "uid=4294967295\n");
	assert_int_equal(unpack_within(p, FILEUNPACK_OWNERS, NULL), -1);
	assert_string_equal(p->e.msg, "'-1': invalid owner 4294967295:0");
	assert_int_equal(look(p->to_fd, "k").st_mode, S_IFREG | 06755);
	assert_int_equal(look(p->to_fd, "k").st_uid, 12);
	assert_int_equal(look(p->to_fd, "s").st_gid, 34);
	ADD("e/", '5', .mode = 02755, .uid = 12, .gid = 34);
	ADD("g/", '5', .mode = 02755, .uid = 12, .gid = 34);
	expect_unpacked(p, FILEUNPACK_OWNERS);
	assert_int_equal(look(p->to_fd, "g").st_mode, S_IFDIR | 02755);
	assert_int_equal(look(p->to_fd, "g").st_gid, 34);
}

static void attributes_are_not_taken_over(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = -1;

	ADD("f", .content = "1", .pax = "SCHILY.xattr.user.k=v\n");
	expect_unpacked(p, 0);
	fd = openat(p->to_fd, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(flistxattr(fd, NULL, 0), 0);
}

static void add_long(size_t len, const char *what)
{
	cleanup_free char *record = calloc(1, len + 16);
	size_t at = (size_t)sprintf(record, "path=");

	while (at < len + 5) {
		record[at] = what[(at - 5) % strlen(what)];
		at++;
	}
	record[at] = '\n';
	ADD("short", .content = "1", .pax = record);
}

static void long_and_deep_names_are_refused(void **state)
{
	struct place *p = *state;

	add_long(256, "a");
	assert_int_equal(unpack_within(p, 0, NULL), -1);
	assert_non_null(strstr(p->e.msg, "a part of the name is longer than 255 bytes"));
	add_long(5000, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/");
	assert_int_equal(unpack_within(p, 0, NULL), -1);
	assert_non_null(strstr(p->e.msg, "the name is longer than 4095 bytes"));
	add_long(2 * 513 + 1, "a/");
	assert_int_equal(unpack_within(p, 0, NULL), -1);
	assert_non_null(strstr(p->e.msg, "it lies beneath more than 512 directories"));
	assert_int_equal(count_entries(p->to_fd), 0);
}

static void each_limit_is_an_error(void **state)
{
	struct place *p = *state;
	struct layer_limits l = layer_default_limits();

	l.entries = 1;
	ADD("a", .content = "1");
	ADD("b", .content = "1");
	assert_int_equal(unpack_within(p, 0, &l), -1);
	assert_string_equal(p->e.msg, "the archive has more than 1 entries");
	l = layer_default_limits();
	l.file_bytes = 5;
	ADD("a", .content = "12345");
	ADD("b", .content = "1");
	assert_int_equal(unpack_within(p, 0, &l), -1);
	assert_string_equal(p->e.msg, "'b': the files are larger than 5 bytes");
	l = layer_default_limits();
	l.directories = 2;
	ADD("x/y/z/f", .content = "1");
	assert_int_equal(unpack_within(p, 0, &l), -1);
	assert_string_equal(p->e.msg, "'x/y/z/f': the archive has more than 2 directories");
	assert_int_equal(p->e.code, ERR_LIMIT);
}

static void what_is_cut_off_is_refused(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = memfd_create("archive", MFD_CLOEXEC);
	struct fileunpack_result result;

	ADD("a", .content = "1", .len = 1);
	assert_int_equal(file_write_all(fd, b->bytes, b->len - 512), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	b->len = 0;
	assert_int_equal(fileunpack_run(fd, p->to_fd, 0, NULL, &result, &p->e), -1);
	assert_non_null(strstr(p->e.msg, "the archive is damaged"));
}

/* ---- with the packing end ---- */

static int write_fd(void *context, const void *bytes, size_t len)
{
	return file_write_all(*(const int *)context, bytes, len);
}

static void what_was_packed_unpacks_to_the_same(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = memfd_create("archive", MFD_CLOEXEC);
	const struct layerpack_sink sink = { write_fd, &fd };
	struct fileunpack_result result;
	cleanup_fd int sub = -1;

	make_file(p->from_fd, "d/.wh.f", "text");
	make_file(p->from_fd, "d/e/g", "more");
	assert_int_equal(linkat(p->from_fd, "d/e/g", p->from_fd, "d/h", 0), 0);
	assert_int_equal(symlinkat("../../canary", p->from_fd, "d/l"), 0);
	assert_int_equal(mkfifoat(p->from_fd, "d/p", 0644), 0);
	assert_int_equal(fchmodat(p->from_fd, "d/e", 0711, 0), 0);
	if (layerpack_write_entry(p->from_fd, "d", "new", LAYERPACK_ANY_NAME, &sink, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	if (fileunpack_run(fd, p->to_fd, 0, NULL, &result, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	assert_int_equal(result.entry_count, 7);
	cleanup_closep(&fd);
	fd = openat(p->from_fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sub = openat(p->to_fd, "new", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(compare_trees(fd, sub), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(a_tar_becomes_files),
		TREE_TEST(names_that_climb_or_are_absolute_are_refused),
		TREE_TEST(nothing_goes_through_a_link_of_the_archive),
		TREE_TEST(nothing_goes_through_a_link_that_was_there),
		TREE_TEST(files_and_links_are_replaced_not_written_through),
		TREE_TEST(directories_stay_as_they_are),
		TREE_TEST(hard_links_lead_to_the_same_archive_only),
		TREE_TEST(devices_are_refused),
		TREE_TEST(whiteouts_are_names_like_others),
		TREE_TEST(owners_and_set_id_bits_are_kept_on_demand_only),
		TREE_TEST(attributes_are_not_taken_over),
		TREE_TEST(long_and_deep_names_are_refused),
		TREE_TEST(each_limit_is_an_error),
		TREE_TEST(what_is_cut_off_is_refused),
		TREE_TEST(what_was_packed_unpacks_to_the_same),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	buf_done(&archive);
	return r;
}
