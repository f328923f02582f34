/*
 * test_layer - valid and hostile archives, and their result on disk.
 *
 * The archives are written here byte by byte, as most tools would not. Each test has its own
 * directory with the layer and, outside of the layer, a canary.
 */
#include "tarwriter.h"
#include "unit.h"

#include "base/buf.h"
#include "base/file.h"
#include "image/digest.h"
#include "image/layer.h"
#include "image/layerconfine.h"
#include "image/layerpack.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <zlib.h>
#include <zstd.h>

#define ARCHIVE_MAX_BYTES (64u << 20)
#define CANARY "nobody has touched this"

/* ---- compressing archives ---- */

static void gzip_into(struct buf *out, const void *bytes, size_t len)
{
	z_stream z = { 0 };
	size_t room = compressBound(len) + 64;
	cleanup_free char *packed = malloc(room);

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)bytes;
	z.avail_in = (uInt)len;
	z.next_out = (Bytef *)packed;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	buf_add(out, packed, room - z.avail_out);
	deflateEnd(&z);
}

static void zstd_into(struct buf *out, const void *bytes, size_t len)
{
	size_t room = ZSTD_compressBound(len);
	cleanup_free char *packed = malloc(room);
	size_t n = ZSTD_compress(packed, room, bytes, len, 3);

	assert_false(ZSTD_isError(n));
	buf_add(out, packed, n);
}

/* ---- a place for each test ---- */

struct place {
	char path[64];
	int fd;
	char layer[32]; /* the directory of the last archive */
	int layer_fd;
	unsigned layer_count;
	struct buf archive;
	struct layer_limits limits;
	struct layer_result result;
	struct err e;
};

/* Root, and not of a namespace with only one id. */
static bool can_give_away(const struct place *p)
{
	return fchownat(p->fd, "probe", 12, 34, 0) == 0;
}

static unsigned flags(const struct place *p)
{
	return can_give_away(p) ? 0 : LAYER_ONE_OWNER;
}

/* Every archive gets its own directory. */
static void open_layer(struct place *p)
{
	(void)snprintf(p->layer, sizeof(p->layer), "layer-%u", p->layer_count++);
	assert_int_equal(mkdirat(p->fd, p->layer, 0700), 0);
	if (p->layer_fd >= 0)
		(void)close(p->layer_fd);
	p->layer_fd = openat(p->fd, p->layer, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->layer_fd >= 0);
	layer_result_done(&p->result);
}

static int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->path, "/tmp/test-layer-XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->fd >= 0);
	assert_int_equal(file_create_at(p->fd, "canary", 0644, CANARY), 0);
	assert_int_equal(file_create_at(p->fd, "probe", 0644, ""), 0);
	p->layer_fd = -1;
	open_layer(p);
	buf_init(&p->archive, ARCHIVE_MAX_BYTES);
	p->limits = layer_default_limits();
	*state = p;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	return kind == FTW_DP ? rmdir(path) : unlink(path);
}

static int open_up(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	return kind == FTW_D || kind == FTW_DNR ? chmod(path, 0700) : 0;
}

static void remove_everything(const char *path)
{
	(void)nftw(path, open_up, 32, FTW_PHYS);
	(void)nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}

static void check_canary(const struct place *p)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	struct stat st;

	assert_int_equal(file_read_at(p->fd, "canary", 100, &text, &len), 0);
	assert_string_equal(text, CANARY);
	assert_int_equal(fstatat(p->fd, "canary", &st, 0), 0);
	assert_int_equal(st.st_nlink, 1);
}

static int place_teardown(void **state)
{
	struct place *p = *state;

	check_canary(p);
	layer_result_done(&p->result);
	buf_done(&p->archive);
	(void)close(p->layer_fd);
	(void)close(p->fd);
	remove_everything(p->path);
	free(p);
	return 0;
}

/* ---- unpacking and looking ---- */

static int memory_with(const void *bytes, size_t len)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, bytes, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int unpack_bytes(struct place *p, const void *bytes, size_t len)
{
	cleanup_fd int fd = memory_with(bytes, len);

	open_layer(p);
	return layer_unpack_within(fd, p->layer_fd, flags(p), &p->limits, &p->result, &p->e);
}

static void expect_unpacked_bytes(struct place *p, const struct buf *b)
{
	assert_false(b->is_cut);
	if (unpack_bytes(p, b->bytes, b->len) < 0)
		fail_msg("%s", p->e.msg);
}

static void expect_refused_bytes(struct place *p, const struct buf *b, enum err_code code,
				 const char *words)
{
	assert_false(b->is_cut);
	assert_int_equal(unpack_bytes(p, b->bytes, b->len), -1);
	if (!strstr(p->e.msg, words))
		fail_msg("it says: %s", p->e.msg);
	assert_int_equal(p->e.code, code);
}

/* Unpacks the entries added so far as a complete archive. */
static void expect_unpacked(struct place *p)
{
	add_end(&p->archive);
	expect_unpacked_bytes(p, &p->archive);
	p->archive.len = 0;
}

static void expect_refused(struct place *p, const char *words)
{
	add_end(&p->archive);
	expect_refused_bytes(p, &p->archive, ERR_INVALID, words);
	p->archive.len = 0;
}

static struct stat look(const struct place *p, const char *path)
{
	struct stat st;

	if (fstatat(p->layer_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	return st;
}

static bool is_there(const struct place *p, const char *path)
{
	struct stat st;

	return fstatat(p->layer_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void expect_text(const struct place *p, const char *path, const char *expected)
{
	cleanup_free char *text = NULL;
	size_t len = 0;

	assert_int_equal(file_read_at(p->layer_fd, path, 1u << 20, &text, &len), 0);
	assert_string_equal(text, expected);
}

static void expect_link(const struct place *p, const char *path, const char *expected)
{
	char text[PATH_MAX];
	ssize_t len = readlinkat(p->layer_fd, path, text, sizeof(text) - 1);

	assert_true(len >= 0);
	text[len] = '\0';
	assert_string_equal(text, expected);
}

static ssize_t read_xattr(const struct place *p, const char *path, const char *name, char out[64])
{
	cleanup_fd int fd = openat(p->layer_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fgetxattr(fd, name, out, 63);

	out[n > 0 ? n : 0] = '\0';
	return n;
}

static bool is_opaque(const struct place *p, const char *path)
{
	char value[64];

	return read_xattr(p, path, "user.overlay.opaque", value) == 1 && value[0] == 'y';
}

static bool is_whiteout(const struct place *p, const char *path)
{
	struct stat st = look(p, path);

	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0);
}

static void need_xattrs(const struct place *p)
{
	if (fsetxattr(p->fd, "user.test", "y", 1, 0) == 0)
		return;
	print_message("/tmp has no user.* attributes here\n");
	skip();
}

static void need_owners(const struct place *p)
{
	if (can_give_away(p))
		return;
	print_message("this user cannot give files away\n");
	skip();
}

/* ---- names ---- */

static void a_tar_becomes_files(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a/", '5', .mode = 0750);
	ADD("a/b", .content = "hello", .mode = 0640);
	ADD("a/c", '2', .link = "b");
	ADD("a/pipe", '6', .mode = 0600);
	expect_unpacked(p);
	expect_text(p, "a/b", "hello");
	expect_link(p, "a/c", "b");
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 0750);
	assert_int_equal(look(p, "a/b").st_mode, S_IFREG | 0640);
	assert_int_equal(look(p, "a/pipe").st_mode, S_IFIFO | 0600);
	assert_int_equal(look(p, "a").st_mtime, MTIME);
	assert_int_equal(look(p, "a/b").st_mtime, MTIME);
	assert_int_equal(look(p, "a/c").st_mtime, MTIME);
	assert_int_equal(look(p, "a/pipe").st_mtime, MTIME);
	assert_int_equal(p->result.entry_count, 4);
	assert_int_equal(p->result.file_bytes, 5);
}

static void dots_and_slashes_do_not_make_another_name(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("./a/", '5');
	ADD("a//./b", .content = "1");
	ADD("./a/b", .content = "2");
	expect_unpacked(p);
	expect_text(p, "a/b", "2");
}

static void an_absolute_name_is_relative_to_the_root(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("/", '5', .mode = 0711);
	ADD("/etc/x", .content = "1");
	ADD("//etc//y", .content = "2");
	ADD("/etc/.wh.gone", .content = "");
	ADD("/dev/null", '3', .major = 1, .minor = 3);
	expect_unpacked(p);
	assert_int_equal(look(p, ".").st_mode, S_IFDIR | 0711);
	expect_text(p, "etc/x", "1");
	expect_text(p, "etc/y", "2");
	assert_true(is_whiteout(p, "etc/gone"));
	assert_false(is_there(p, "dev"));
	ADD("/../canary", .content = "bad");
	expect_refused(p, "'/../canary': the name climbs with '..'");
	ADD("/", '2', .link = "etc");
	expect_refused(p, "'/': the root of the layer is not a directory");
}

static void a_name_that_climbs_is_refused(void **state)
{
	static const char *const names[] = { "..", "../canary", "a/../../canary", "a/..",
					     "a/../b" };
	struct place *p = *state;
	struct buf *b = &p->archive;

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		ADD(names[i], .content = "bad");
		expect_refused(p, "': the name climbs with '..'");
		assert_non_null(strstr(p->e.msg, names[i]));
	}
}

static void an_empty_name_is_refused(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", .content = "1");
	ADD("", .content = "1");
	expect_refused(p, "'': the name is empty");
}

static void fill_with(char *out, size_t len, const char *what)
{
	for (size_t i = 0; i < len; i++)
		out[i] = what[i % strlen(what)];
	out[len] = '\0';
}

static void add_long(struct place *p, size_t len, const char *what)
{
	cleanup_free char *name = malloc(len + 1);
	cleanup_free char *record = malloc(len + 16);
	struct buf *b = &p->archive;

	fill_with(name, len, what);
	(void)snprintf(record, len + 16, "path=%s\n", name);
	ADD("short", .content = "1", .pax = record);
}

static void long_and_deep_names_are_refused(void **state)
{
	struct place *p = *state;

	add_long(p, 256, "a");
	expect_refused(p, "a part of the name is longer than 255 bytes");
	add_long(p, 4097, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/");
	expect_refused(p, "the name is longer than 4095 bytes");
	add_long(p, 2 * 513 + 1, "a/");
	expect_refused(p, "it lies beneath more than 512 directories");
}

static void the_longest_and_deepest_names_are_fine(void **state)
{
	struct place *p = *state;
	char name[2 * 512 + 2];

	add_long(p, 255, "a");
	add_long(p, 2 * 512 + 1, "a/");
	expect_unpacked(p);
	fill_with(name, 255, "a");
	expect_text(p, name, "1");
	fill_with(name, sizeof(name) - 1, "a/");
	expect_text(p, name, "1");
}

static void names_of_gnu_and_pax_are_read(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	char gnu[151], target[151], pax[400];

	fill_with(gnu, 150, "gnu");
	fill_with(target, 150, "target");
	(void)snprintf(pax, sizeof(pax), "path=p\xc3\xa4x\nlinkpath=%s\n", target);
	add(b, &(struct entry){ "././@LongLink", 'L', .content = gnu, .len = 151 });
	ADD("cut", .content = "1");
	ADD("short", '2', .link = "short", .pax = pax);
	expect_unpacked(p);
	expect_text(p, gnu, "1");
	expect_link(p, "p\xc3\xa4x", target);
}

static void names_that_are_not_utf8_stay_as_they_are(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a\xff\xfe", .content = "1");
	ADD("short", .content = "2", .pax = "path=b\xff\xfe\n");
	expect_unpacked(p);
	expect_text(p, "a\xff\xfe", "1");
	expect_text(p, "b\xff\xfe", "2");
}

static void messages_show_no_control_characters(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a\x1b[31m\n/../x", .content = "1");
	expect_refused(p, "'a?[31m?/../x': the name climbs with '..'");
}

static void the_root_entry_is_the_directory_itself(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("./", '5', .mode = 0711);
	ADD("a", .content = "1");
	expect_unpacked(p);
	assert_int_equal(look(p, ".").st_mode, S_IFDIR | 0711);
	assert_int_equal(look(p, ".").st_mtime, MTIME);
	assert_int_equal(p->result.implied_count, 0);
	ADD(".", .content = "1");
	expect_refused(p, "'.': the root of the layer is not a directory");
}

/* ---- links ---- */

static void a_name_leads_through_a_link_of_the_layer(void **state)
{
	static const char *const targets[] = { "usr/bin",     "/usr/bin",      "./usr//bin/",
					       "/../usr/bin", "../../usr/bin", "usr/lib/../bin" };
	struct place *p = *state;
	struct buf *b = &p->archive;

	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		ADD("usr/bin/", '5', .mode = 0711);
		ADD("bin", '2', .link = targets[i]);
		ADD("bin/file", .content = "1");
		ADD("bin/dir/", '5', .mode = 0700);
		ADD("bin/link", '2', .link = "file");
		ADD("bin/.wh.gone", .content = "");
		ADD("bin/hard", '1', .link = "bin/file");
		ADD("hard", '1', .link = "/bin/file");
		expect_unpacked(p);
		expect_link(p, "bin", targets[i]);
		expect_text(p, "usr/bin/file", "1");
		assert_int_equal(look(p, "usr/bin").st_mode, S_IFDIR | 0711);
		assert_int_equal(look(p, "usr/bin/dir").st_mode, S_IFDIR | 0700);
		expect_link(p, "usr/bin/link", "file");
		assert_true(is_whiteout(p, "usr/bin/gone"));
		assert_int_equal(look(p, "hard").st_ino, look(p, "usr/bin/hard").st_ino);
		assert_int_equal(look(p, "hard").st_nlink, 3);
	}
}

static void a_link_leads_nowhere_but_into_the_layer(void **state)
{
	char outside[100], climbs[100];
	const char *const targets[] = { "..", "../..", "/", "/..", outside, climbs };
	struct place *p = *state;
	struct buf *b = &p->archive;
	char inside[200];

	(void)snprintf(outside, sizeof(outside), "%s", p->path);
	(void)snprintf(climbs, sizeof(climbs), "../../../../../..%s", p->path);
	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		bool is_path = i >= 4;

		ADD("out", '2', .link = targets[i]);
		ADD("out/canary", .content = "mine");
		ADD("out/new/dir/", '5');
		ADD("out/.wh.probe", .content = "");
		ADD("hard", '1', .link = "out/canary");
		expect_unpacked(p);
		check_canary(p);
		assert_int_equal(faccessat(p->fd, "new", F_OK, 0), -1);
		expect_text(p, "hard", "mine");
		(void)snprintf(inside, sizeof(inside), "%s%scanary", is_path ? p->path + 1 : "",
			       is_path ? "/" : "");
		expect_text(p, inside, "mine");
	}
	/* the probe and the canary are outside, so they do not exist here */
	ADD("out", '2', .link = "..");
	ADD("hard", '1', .link = "out/probe");
	expect_refused(p, "'hard': it is a hard link to 'out/probe', which is not in this layer");
}

static void a_link_is_what_it_is_when_the_entry_comes(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", '2', .link = "one");
	ADD("a/x", .content = "1");
	ADD("a", '2', .link = "two");
	ADD("a/x", .content = "2");
	ADD("d/self", '2', .link = ".");
	ADD("d/self/x", .content = "1");
	ADD("d/self/self", '2', .link = ".."); /* itself */
	ADD("d/self/y", .content = "2");
	ADD("one", '2', .link = "../..");
	ADD("one/z", .content = "3");
	expect_unpacked(p);
	expect_link(p, "a", "two");
	expect_text(p, "two/x", "2");
	expect_text(p, "d/x", "1");
	expect_link(p, "d/self", "..");
	expect_text(p, "y", "2");
	expect_link(p, "one", "../..");
	expect_text(p, "z", "3");
	assert_false(is_there(p, "d/y"));
}

static void directories_that_a_link_needs_are_made(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("./", '5');
	ADD("bin", '2', .link = "usr/bin");
	ADD("bin/x", .content = "1");
	expect_unpacked(p);
	expect_text(p, "usr/bin/x", "1");
	assert_int_equal(p->result.implied_count, 2);
	assert_string_equal(p->result.implied[1], "usr/bin");
}

static void the_root_can_be_hidden_through_a_link(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	need_xattrs(p);
	ADD("root", '2', .link = "/");
	ADD("root/.wh..wh..opq", .content = "");
	expect_unpacked(p);
	assert_true(p->result.is_root_opaque);
}

/* l0 -> l1 -> ... -> the last, which is a directory */
static void add_chain(struct buf *b, unsigned count)
{
	char name[16], target[16];

	for (unsigned i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "l%u", i);
		(void)snprintf(target, sizeof(target), "l%u", i + 1);
		ADD(name, '2', .link = target);
	}
	ADD("l0/x", .content = "1");
}

static void links_that_lead_too_far_are_refused(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	char target[LAYER_NAME_MAX_BYTES + 20] = "linkpath=", *text = target + 9;

	add_chain(b, LAYER_LINKS_MAX);
	expect_unpacked(p);
	expect_text(p, "l40/x", "1");
	add_chain(b, LAYER_LINKS_MAX + 1);
	expect_refused(p, "'l0/x': the name leads through more than 40 symbolic links");
	ADD("loop", '2', .link = "loop");
	ADD("loop/x", .content = "1");
	expect_refused(p, "'loop/x': the name leads through more than 40 symbolic links");
	ADD("a", '2', .link = "d/.wh.x/y");
	ADD("a/x", .content = "1");
	expect_refused(p, "'a/x': the name leads through a symbolic link to a whiteout");
	ADD("f", .content = "1");
	ADD("a", '2', .link = "f");
	ADD("a/x", .content = "1");
	expect_refused(p, "'a/x': the name leads through what is not a directory");

	fill_with(text, NAME_MAX + 1, "n");
	strcat(text, "\n");
	ADD("a", '2', .link = "x", .pax = target);
	ADD("a/x", .content = "1");
	expect_refused(
		p, "'a/x': the name leads through a symbolic link with a part of more than 255");
	fill_with(text, 2 * LAYER_DEPTH_MAX, "d/");
	strcat(text, "\n");
	ADD("a", '2', .link = "x", .pax = target);
	ADD("a/e/f", .content = "1");
	expect_refused(p, "'a/e/f': it lies beneath more than 512 directories");
	fill_with(text, 4000, "abcdefghijklmnopqrst/");
	strcat(text, "\n");
	ADD("a", '2', .link = "x", .pax = target);
	ADD("a/a", '2', .link = "x", .pax = target);
	ADD("a/a/f", .content = "1");
	expect_refused(p, "'a/a/f': the name is longer than 4095 bytes");
	ADD("a", '2', .link = "x", .pax = target);
	ADD("b", '2',
	    .link = "a/aaaaaaaaaaaaaaaaaaaa/bbbbbbbbbbbbbbbbbbbbbbbbbb/"
		    "cccccccccccccccccccccccccc/dddddddddddddddddddd");
	ADD("b/f", .content = "1");
	expect_refused(p, "'b/f': the name leads through symbolic links to one of more than 4095");
}

static void a_link_in_the_place_of_a_file_is_replaced_not_followed(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", '2', .link = "../canary");
	ADD("a", .content = "mine");
	ADD("d", '2', .link = "..");
	ADD("d/", '5', .mode = 0700);
	expect_unpacked(p);
	expect_text(p, "a", "mine");
	assert_int_equal(look(p, "a").st_mode, S_IFREG | 0644);
	assert_int_equal(look(p, "d").st_mode, S_IFDIR | 0700);
}

static void nothing_is_made_through_a_file(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", .content = "1");
	ADD("a/b", .content = "2");
	expect_refused(p, "'a/b': the name leads through what is not a directory");
}

static void a_hard_link_is_the_same_file(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a/b", .content = "1");
	ADD("a/c", '1', .link = "a/b");
	ADD("d/e", '1', .link = "./a/b");
	ADD("d/f", '1', .link = "/a/b");
	expect_unpacked(p);
	assert_int_equal(look(p, "a/b").st_nlink, 4);
	assert_int_equal(look(p, "a/b").st_ino, look(p, "d/f").st_ino);
	expect_text(p, "d/e", "1");
}

static void a_hard_link_to_a_symbolic_link_is_one(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", '2', .link = "../canary");
	ADD("b", '1', .link = "a");
	expect_unpacked(p);
	expect_link(p, "b", "../canary");
	assert_int_equal(look(p, "a").st_ino, look(p, "b").st_ino);
}

static void a_hard_link_does_not_lead_out(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	char absolute[100];

	ADD("a", '1', .link = "../canary");
	expect_refused(p, "'a': it is a hard link to '../canary': the name climbs with '..'");
	(void)snprintf(absolute, sizeof(absolute), "%s/canary", p->path);
	ADD("a", '1', .link = absolute);
	expect_refused(p, "which is not in this layer");
	ADD("out", '2', .link = "..");
	ADD("a", '1', .link = "out/canary");
	expect_refused(p, "'a': it is a hard link to 'out/canary', which is not in this layer");
	assert_int_equal(mkdirat(p->fd, "sub", 0755), 0);
	assert_int_equal(file_create_at(p->fd, "sub/file", 0644, ""), 0);
	ADD("out", '2', .link = "..");
	ADD("a", '1', .link = "out/sub/file");
	expect_refused(p, "'a': it is a hard link to 'out/sub/file', which is not in this layer");
	assert_false(is_there(p, "a"));
}

static void a_hard_link_needs_something_to_link(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", '1', .link = "later");
	ADD("later", .content = "1");
	expect_refused(p, "'a': it is a hard link to 'later', which is not in this layer");
	ADD("d/", '5');
	ADD("a", '1', .link = "d");
	expect_refused(p, "which cannot be linked");
	ADD("x", .content = "1");
	ADD("x", '1', .link = "./x");
	expect_refused(p, "which cannot be linked");
	expect_text(p, "x", "1");
	ADD(".wh.gone", .content = "");
	ADD("a", '1', .link = "gone");
	expect_refused(p, "which cannot be linked");
	ADD("a", '1', .link = "./");
	expect_refused(p, "which cannot be linked");
}

/* ---- whiteouts ---- */

static void a_whiteout_of_a_lower_file_is_a_0_0_device(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a/.wh.b", .content = "");
	expect_unpacked(p);
	assert_true(is_whiteout(p, "a/b"));
	assert_false(is_there(p, "a/.wh.b"));
	assert_int_equal(p->result.implied_count, 2);
}

static void an_opaque_directory_has_the_attribute(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	need_xattrs(p);
	ADD("a/", '5');
	ADD("a/.wh..wh..opq", .content = "");
	ADD("a/b", .content = "1");
	expect_unpacked(p);
	assert_true(is_opaque(p, "a"));
	assert_false(p->result.is_root_opaque);
	assert_false(is_there(p, "a/.wh..wh..opq"));
	assert_int_equal(look(p, "a").st_mtime, MTIME);
	ADD(".wh..wh..opq", .content = "");
	expect_unpacked(p);
	assert_true(p->result.is_root_opaque);
}

static void what_aufs_left_is_skipped(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD(".wh..wh.plnk/", '5');
	ADD(".wh..wh.plnk/1.2", .content = "1");
	ADD("a/.wh..wh.aufs", .content = "1");
	ADD("x", .content = "1");
	expect_unpacked(p);
	assert_true(is_there(p, "x"));
	assert_false(is_there(p, ".wh..wh.plnk"));
	assert_false(is_there(p, "a"));
}

static void a_whiteout_must_hide_a_name(void **state)
{
	static const char *const names[] = { ".wh.", ".wh..", ".wh...", "a/.wh." };
	struct place *p = *state;
	struct buf *b = &p->archive;

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		ADD(names[i], .content = "");
		expect_refused(p, "': the whiteout hides no name");
	}
}

static void no_file_is_called_like_a_whiteout(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("f", .content = "1");
	ADD(".wh.a", '2', .link = "x");
	ADD(".wh.b", '1', .link = "f");
	ADD(".wh.c/", '5');
	expect_unpacked(p);
	assert_true(is_whiteout(p, "a") && is_whiteout(p, "b") && is_whiteout(p, "c"));
	assert_false(is_there(p, ".wh.a") || is_there(p, ".wh.b") || is_there(p, ".wh.c"));
	ADD(".wh.d/x", .content = "1");
	expect_refused(p, "'.wh.d/x': it lies beneath a whiteout");
	ADD("g", '1', .link = ".wh.f");
	expect_refused(p, "which cannot be linked");
}

static void an_entry_wins_over_a_whiteout_of_its_name(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD(".wh.a", .content = "");
	ADD("a", .content = "first");
	ADD("b", .content = "second");
	ADD(".wh.b", .content = "");
	ADD(".wh.c", .content = "");
	ADD("c", '2', .link = "x");
	expect_unpacked(p);
	expect_text(p, "a", "first");
	expect_text(p, "b", "second");
	expect_link(p, "c", "x");
}

static void a_directory_with_a_whiteout_of_its_name_is_opaque(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	need_xattrs(p);
	ADD(".wh.a", .content = "");
	ADD("a/", '5', .mode = 0700);
	ADD("b/", '5');
	ADD("b/x", .content = "1");
	ADD(".wh.b", .content = "");
	ADD(".wh.c", .content = "");
	ADD("c/d/x", .content = "1");
	ADD("e/", '5');
	expect_unpacked(p);
	assert_true(is_opaque(p, "a") && is_opaque(p, "b") && is_opaque(p, "c"));
	assert_false(is_opaque(p, "c/d") || is_opaque(p, "e"));
	expect_text(p, "b/x", "1");
	expect_text(p, "c/d/x", "1");
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 0700);
}

/* ---- devices, modes, owners, times ---- */

static void devices_are_left_out_in_dev_and_refused_elsewhere(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("dev/null", '3', .major = 1, .minor = 3);
	ADD("./dev/sda", '4', .major = 8);
	expect_unpacked(p);
	assert_false(is_there(p, "dev/null") || is_there(p, "dev/sda"));
	ADD("null", '3', .major = 1, .minor = 3);
	expect_refused(p, "'null': it is a device outside of dev/");
	ADD("device/x", '4', .major = 8);
	expect_refused(p, "'device/x': it is a device outside of dev/");
	ADD("dev/x", '3');
	expect_refused(p, "'dev/x': it is the device 0:0");
	ADD("x", '3');
	expect_refused(p, "'x': it is the device 0:0");
}

static void all_bits_of_a_mode_are_kept(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("suid", .content = "1", .mode = 04755);
	ADD("sgid", .content = "1", .mode = 02755);
	ADD("other", .content = "1", .mode = 06711, .uid = 7, .gid = 8);
	ADD("tmp/", '5', .mode = 01777);
	ADD("none", .content = "1", .mode = 010000 /* the mode 0 */);
	expect_unpacked(p);
	assert_int_equal(look(p, "suid").st_mode, S_IFREG | 04755);
	assert_int_equal(look(p, "sgid").st_mode, S_IFREG | 02755);
	assert_int_equal(look(p, "other").st_mode, S_IFREG | 06711);
	assert_int_equal(look(p, "tmp").st_mode, S_IFDIR | 01777);
	assert_int_equal(look(p, "none").st_mode, S_IFREG);
}

static void a_umask_changes_nothing(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	mode_t before = umask(077);

	ADD("a", .content = "1", .mode = 0666);
	ADD("b/c", '6', .mode = 0622);
	expect_unpacked(p);
	assert_int_equal(umask(before), 077);
	assert_int_equal(look(p, "a").st_mode, S_IFREG | 0666);
	assert_int_equal(look(p, "b").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "b/c").st_mode, S_IFIFO | 0622);
}

static void a_set_group_id_directory_gives_its_group_to_nobody(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	need_owners(p);
	ADD("a/", '5', .mode = 02775, .gid = 50);
	ADD("a/b", .content = "1");
	ADD("a/c/", '5');
	ADD("a/d/e", .content = "1");
	expect_unpacked(p);
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 02775);
	assert_int_equal(look(p, "a").st_gid, 50);
	assert_int_equal(look(p, "a/b").st_gid, getegid());
	assert_int_equal(look(p, "a/c").st_gid, getegid());
	assert_int_equal(look(p, "a/c").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "a/d").st_gid, getegid());
}

static void owners_are_set(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	need_owners(p);
	ADD("f", .content = "1", .uid = 1, .gid = 2);
	ADD("d/", '5', .uid = 3, .gid = 4);
	ADD("l", '2', .link = "f", .uid = 5, .gid = 6);
	ADD("p", '6', .uid = 65534, .gid = 65534);
	ADD("again/", '5', .uid = 9, .gid = 9);
	ADD("again/", '5');
	expect_unpacked(p);
	assert_int_equal(look(p, "f").st_uid, 1);
	assert_int_equal(look(p, "f").st_gid, 2);
	assert_int_equal(look(p, "d").st_uid, 3);
	assert_int_equal(look(p, "d").st_gid, 4);
	assert_int_equal(look(p, "l").st_uid, 5);
	assert_int_equal(look(p, "l").st_gid, 6);
	assert_int_equal(look(p, "p").st_uid, 65534);
	assert_int_equal(look(p, "again").st_uid, 0);
}

static void one_owner_means_that_nobody_gets_anything(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_fd int fd = -1;

	ADD("./", '5', .uid = 3);
	ADD("f", .content = "1", .uid = 1, .gid = 2, .mode = 04755);
	ADD("d/", '5', .uid = 3, .gid = 4);
	ADD("d/", '5', .uid = 3, .gid = 4);
	ADD("l", '2', .link = "f", .uid = 5, .gid = 6);
	add_end(b);
	fd = memory_with(b->bytes, b->len);
	assert_int_equal(layer_unpack(fd, p->layer_fd, LAYER_ONE_OWNER, &p->result, &p->e), 0);
	assert_int_equal(look(p, ".").st_uid, geteuid());
	assert_int_equal(look(p, "f").st_uid, geteuid());
	assert_int_equal(look(p, "f").st_mode, S_IFREG | 04755);
	assert_int_equal(look(p, "d").st_uid, geteuid());
	assert_int_equal(look(p, "l").st_gid, getegid());
}

static void owners_beyond_the_map_are_refused(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", .content = "1", .uid = 65535);
	expect_refused(p, "'a': its owner 65535:0 is not within 0..65534");
	ADD("a", '2', .link = "x", .gid = 100000);
	expect_refused(p, "'a': its owner 0:100000 is not within 0..65534");
	ADD("a/", '5', .pax = "uid=4294967296\n");
	expect_refused(p, "'a/': its owner 4294967296:0 is not within 0..65534");
	ADD("a/", '5', .pax = "gid=-1\n");
	expect_refused(p, "'a/': its owner 0:-1 is not within 0..65534");
}

static void times_have_nanoseconds_also_of_directories(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a/", '5', .pax = "mtime=1500000000.123456789\n");
	ADD("a/b", .content = "1", .pax = "mtime=1500000001.5\n");
	ADD("a/c/", '5');
	ADD("l", '2', .link = "x", .pax = "mtime=1500000002.000000001\n");
	expect_unpacked(p);
	assert_int_equal(look(p, "a").st_mtim.tv_sec, 1500000000);
	assert_int_equal(look(p, "a").st_mtim.tv_nsec, 123456789);
	assert_int_equal(look(p, "a/b").st_mtim.tv_nsec, 500000000);
	assert_int_equal(look(p, "l").st_mtim.tv_nsec, 1);
	assert_int_equal(look(p, "a/c").st_mtime, MTIME);
}

/* ---- attributes and holes ---- */

static void attributes_of_users_are_restored_and_no_others(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	static const char records[] = "SCHILY.xattr.user.color=blue\n"
				      "SCHILY.xattr.user.overlay.opaque=y\n"
				      "SCHILY.xattr.user.overlay.redirect=/etc\n"
				      "SCHILY.xattr.trusted.overlay.opaque=y\n"
				      "SCHILY.xattr.trusted.x=y\n"
				      "SCHILY.xattr.security.selinux=y\n";
	char value[64];

	need_xattrs(p);
	ADD("f", .content = "1", .pax = records);
	ADD("d/", '5', .pax = records);
	ADD("./", '5', .pax = records);
	expect_unpacked(p);
	for (const char *const *name = (const char *const[]){ "f", "d", ".", NULL }; *name;
	     name++) {
		assert_int_equal(read_xattr(p, *name, "user.color", value), 4);
		assert_string_equal(value, "blue");
		assert_int_equal(read_xattr(p, *name, "user.overlay.opaque", value), -1);
		assert_int_equal(read_xattr(p, *name, "user.overlay.redirect", value), -1);
		assert_int_equal(read_xattr(p, *name, "trusted.overlay.opaque", value), -1);
		assert_int_equal(read_xattr(p, *name, "trusted.x", value), -1);
	}
}

static void capabilities_are_restored_where_that_is_allowed(void **state)
{
	static const char value[] = "SCHILY.xattr.security.capability="
				    "\1\0\0\2\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\n";
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_buf struct buf records = { .max = 4096 };
	char found[64];

	add_record(&records, value, sizeof(value) - 1);
	add_raw(b, &(struct entry){ "x", 'x', .content = records.bytes, .len = records.len });
	ADD("f", .content = "1", .mode = 0755, .uid = 1);
	expect_unpacked(p);
	if (can_give_away(p)) {
		assert_int_equal(read_xattr(p, "f", "security.capability", found), 20);
		assert_int_equal(found[5], 4);
	}
}

/* The old GNU format: a map in the header. */
static void add_sparse(struct buf *b, const char *name, unsigned long size,
		       const unsigned long map[][2], unsigned pieces, const char *bytes, size_t len)
{
	char header[BLOCK];

	fill_header(header, &(struct entry){ name, 'S' }, len);
	memcpy(header + 257, "ustar  ", 8);
	memset(header + 345, 0, BLOCK - 345);
	for (unsigned i = 0; i < pieces; i++) {
		put_octal(header + 386 + 24 * i, 12, map[i][0]);
		put_octal(header + 386 + 24 * i + 12, 12, map[i][1]);
	}
	put_octal(header + 483, 12, size);
	put_checksum(header);
	buf_add(b, header, BLOCK);
	add_padded(b, bytes, len);
}

static void a_sparse_file_keeps_its_holes(void **state)
{
	static const unsigned long map[][2] = { { 1u << 20, 5 }, { 8u << 20, 0 } };
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_fd int fd = -1;
	char bytes[5];

	add_sparse(b, "s", 8u << 20, map, 2, "hello", 5);
	expect_unpacked(p);
	assert_int_equal(look(p, "s").st_size, 8u << 20);
	assert_true(look(p, "s").st_blocks < 256);
	assert_int_equal(p->result.file_bytes, 8u << 20);
	fd = openat(p->layer_fd, "s", O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, bytes, 5, 1u << 20), 5);
	assert_memory_equal(bytes, "hello", 5);
}

static void a_sparse_file_does_not_outgrow_its_size(void **state)
{
	static const unsigned long far[][2] = { { 1u << 20, 5 } }, near[][2] = { { 98, 5 } };
	struct place *p = *state;

	add_sparse(&p->archive, "s", 100, far, 1, "hello", 5);
	expect_refused(p, "'s': it holds more than its size");
	add_sparse(&p->archive, "s", 100, near, 1, "hello", 5);
	expect_refused(p, "'s': it holds more than its size");
}

/* ---- the same name twice ---- */

static void a_later_entry_replaces_an_earlier_one(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("f", .content = "long content", .mode = 0600);
	ADD("f", .content = "new", .mode = 0640);
	ADD("l", '2', .link = "old");
	ADD("l", '2', .link = "new");
	ADD("h", .content = "old");
	ADD("h", '1', .link = "f");
	ADD("p", .content = "old");
	ADD("p", '6');
	expect_unpacked(p);
	expect_text(p, "f", "new");
	assert_int_equal(look(p, "f").st_mode, S_IFREG | 0640);
	assert_int_equal(look(p, "f").st_ino, look(p, "h").st_ino);
	expect_link(p, "l", "new");
	assert_int_equal(look(p, "p").st_mode, S_IFIFO | 0644);
}

static void replacing_one_name_of_a_file_leaves_the_other(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("a", .content = "old");
	ADD("b", '1', .link = "a");
	ADD("a", .content = "new");
	expect_unpacked(p);
	expect_text(p, "a", "new");
	expect_text(p, "b", "old");
}

static void a_directory_over_a_directory_joins_it(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("d/", '5', .mode = 0700);
	ADD("d/x", .content = "1");
	ADD("d/", '5', .mode = 0711, .mtime = 5);
	expect_unpacked(p);
	expect_text(p, "d/x", "1");
	assert_int_equal(look(p, "d").st_mode, S_IFDIR | 0711);
	assert_int_equal(look(p, "d").st_mtime, 5);
}

static void a_file_over_a_directory_removes_all_of_it(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("d/e/f/", '5');
	ADD("d/e/x", .content = "1");
	ADD("d/l", '2', .link = "../../canary");
	ADD("d", .content = "file");
	ADD("e/f/", '5');
	ADD("e/f/x", .content = "1");
	ADD("e", '2', .link = "..");
	expect_unpacked(p);
	expect_text(p, "d", "file");
	expect_link(p, "e", "..");
	assert_int_equal(p->result.implied_count, 1); /* only the root is left */
	ADD("g/h", .content = "1");
	ADD("g", '2', .link = "..");
	ADD("g/canary", .content = "bad");
	expect_unpacked(p);
	expect_text(p, "canary", "bad");
}

static void a_directory_over_a_file_hides_what_the_file_hid(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	need_xattrs(p);
	ADD("d", .content = "file");
	ADD("d/", '5', .mode = 0700);
	ADD("d/x", .content = "1");
	ADD("e/x", .content = "1");
	ADD("e", .content = "1");
	ADD("e/", '5');
	expect_unpacked(p);
	expect_text(p, "d/x", "1");
	assert_int_equal(look(p, "d").st_mode, S_IFDIR | 0700);
	assert_true(is_opaque(p, "d") && is_opaque(p, "e"));
	assert_false(is_there(p, "e/x"));
}

/* ---- limits ---- */

static void too_many_entries_are_refused(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	assert_int_equal(p->limits.entries, 4194304);
	p->limits.entries = 2;
	ADD("a", .content = "1");
	ADD("dev/b", '3', .major = 1);
	add_end(b);
	expect_unpacked_bytes(p, b);
	b->len -= 2 * BLOCK;
	ADD("c", .content = "1");
	add_end(b);
	expect_refused_bytes(p, b, ERR_LIMIT, "the layer has more than 2 entries");
}

static void too_many_bytes_are_refused_before_they_are_written(void **state)
{
	static const unsigned long map[][2] = { { 0, 5 } };
	struct place *p = *state;
	struct buf *b = &p->archive;

	p->limits.file_bytes = 10;
	ADD("a", .content = "12345");
	ADD("b", .content = "123456");
	add_end(b);
	expect_refused_bytes(p, b, ERR_LIMIT, "'b': the layer's files are larger than 10 bytes");
	assert_false(is_there(p, "b"));
	b->len = 0;
	add_sparse(b, "s", 1ul << 32, map, 1, "hello", 5);
	add_end(b);
	expect_refused_bytes(p, b, ERR_LIMIT, "'s': the layer's files are larger than 10 bytes");
}

static void too_many_directories_are_refused(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	p->limits.directories = 3; /* one is the root */
	ADD("a/b/x", .content = "1");
	ADD("c/", '5');
	add_end(b);
	expect_refused_bytes(p, b, ERR_LIMIT, "'c/': the layer has more than 3 directories");
	p->limits = layer_default_limits();
	p->limits.implied = 2;
	b->len = 0;
	ADD("x/y/z", .content = "1");
	add_end(b);
	expect_refused_bytes(p, b, ERR_LIMIT, "more than 2 directories");
}

static void a_bomb_is_refused_early(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_free char *zeros = calloc(1, 32u << 20);
	cleanup_buf struct buf bomb = { .max = 1u << 20 }, gzip_bomb = { .max = 1u << 20 };

	ADD("zeros", .content = zeros, .len = 32u << 20);
	add_end(b);
	zstd_into(&bomb, b->bytes, b->len);
	p->limits.ratio_free_bytes = 1u << 20;
	expect_refused_bytes(p, &bomb, ERR_LIMIT,
			     "grows more than 100-fold when it is decompressed");
	assert_true(look(p, "zeros").st_size < 8 << 20);
	gzip_into(&gzip_bomb, b->bytes, b->len); /* its maximum is 1032-fold */
	expect_refused_bytes(p, &gzip_bomb, ERR_LIMIT,
			     "grows more than 100-fold when it is decompressed");
	p->limits = layer_default_limits();
	p->limits.archive_bytes = 16u << 20;
	expect_refused_bytes(p, &bomb, ERR_LIMIT, "the archive is larger than 16777216 bytes");
	p->limits = layer_default_limits();
	expect_unpacked_bytes(p, &bomb); /* 32 MiB are harmless */
}

/* ---- streams ---- */

static void add_some(struct buf *b)
{
	char noise[3000];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * i / 7);
	ADD("a/", '5');
	ADD("a/b", .content = noise, .len = sizeof(noise));
	ADD("c", .content = "hello");
	add_end(b);
}

static void expect_diff_id(const struct place *p, const struct buf *plain)
{
	char expected[REFERENCE_DIGEST_MAX_BYTES];

	digest_of(plain->bytes, plain->len, expected);
	assert_string_equal(p->result.diff_id, expected);
	assert_int_equal(p->result.archive_bytes, plain->len);
}

static void expect_digest(struct place *p, const struct buf *plain)
{
	expect_diff_id(p, plain);
	expect_text(p, "c", "hello");
}

static void the_diff_id_is_the_digest_of_all_bytes(void **state)
{
	static const char zeros[20 * BLOCK + 7];
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 };

	add_some(&plain);
	buf_add(&plain, zeros, sizeof(zeros));
	expect_unpacked_bytes(p, &plain);
	expect_digest(p, &plain);
}

static void an_archive_without_entries_is_a_layer(void **state)
{
	struct place *p = *state;

	expect_unpacked(p);
	assert_int_equal(p->result.entry_count, 0);
	assert_string_equal(p->result.diff_id, "sha256:5f70bf18a086007016e948b04aed3b82103a36bea417"
					       "55b6cddfaf10ace3c6ef");
}

static void gzip_members_follow_each_other(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 };

	add_some(&plain);
	for (size_t cut = 0; cut < plain.len; cut += 97) {
		cleanup_buf struct buf packed = { .max = 1u << 20 };

		gzip_into(&packed, plain.bytes, cut);
		gzip_into(&packed, "", 0);
		gzip_into(&packed, plain.bytes + cut, plain.len - cut);
		expect_unpacked_bytes(p, &packed);
		expect_digest(p, &plain);
	}
}

/* Passes the archive through a pipe, in small pieces. */
static int unpack_piecewise(struct place *p, const struct buf *b, size_t piece)
{
	int ends[2], r, status;
	pid_t writer;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	writer = fork();
	assert_true(writer >= 0);
	if (writer == 0) {
		for (size_t at = 0; at < b->len; at += piece) {
			size_t len = b->len - at < piece ? b->len - at : piece;

			if (write(ends[1], b->bytes + at, len) < 0)
				_exit(1);
			(void)sched_yield();
		}
		_exit(0);
	}
	(void)close(ends[1]);
	open_layer(p);
	r = layer_unpack(ends[0], p->layer_fd, flags(p), &p->result, &p->e);
	(void)close(ends[0]);
	assert_int_equal(waitpid(writer, &status, 0), writer);
	return r;
}

static void it_does_not_matter_how_the_bytes_arrive(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, gzip = { .max = 1u << 20 },
			       zstd = { .max = 1u << 20 };

	add_some(&plain);
	gzip_into(&gzip, plain.bytes, 1000);
	gzip_into(&gzip, plain.bytes + 1000, plain.len - 1000);
	zstd_into(&zstd, plain.bytes, 1000);
	zstd_into(&zstd, plain.bytes + 1000, plain.len - 1000);
	for (size_t piece = 1; piece < 1000; piece = piece * 3 + 1) {
		assert_int_equal(unpack_piecewise(p, &plain, piece), 0);
		expect_digest(p, &plain);
		assert_int_equal(unpack_piecewise(p, &gzip, piece), 0);
		expect_digest(p, &plain);
		assert_int_equal(unpack_piecewise(p, &zstd, piece), 0);
		expect_digest(p, &plain);
	}
}

static void a_gzip_header_may_have_names_and_more(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, gzip = { .max = 1u << 20 },
			       full = { .max = 1u << 20 };

	add_some(&plain);
	gzip_into(&gzip, plain.bytes, plain.len);
	buf_add(&full, "\x1f\x8b\x08\x1c\0\0\0\0\0\3", 10); /* extra, name, comment */
	buf_add(&full,
		"\5\0extra"
		"name\0"
		"comment",
		7 + 5 + 8);
	buf_add(&full, gzip.bytes + 10, gzip.len - 10);
	expect_unpacked_bytes(p, &full);
	expect_digest(p, &plain);
}

static void zstd_frames_follow_each_other(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, packed = { .max = 1u << 20 };

	add_some(&plain);
	zstd_into(&packed, plain.bytes, 1234);
	buf_add(&packed, "\x50\x2a\x4d\x18\3\0\0\0abc", 11); /* a frame to skip */
	zstd_into(&packed, plain.bytes + 1234, plain.len - 1234);
	expect_unpacked_bytes(p, &packed);
	expect_digest(p, &plain);
}

static void what_is_cut_off_is_refused(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, gzip = { .max = 1u << 20 },
			       zstd = { .max = 1u << 20 };

	add_some(&plain);
	gzip_into(&gzip, plain.bytes, plain.len);
	zstd_into(&zstd, plain.bytes, plain.len);
	for (size_t len = 2; len < gzip.len; len += 1 + (len > 20 && len < gzip.len - 20) * 13) {
		gzip.len = len;
		expect_refused_bytes(p, &gzip, ERR_INVALID, "the gzip data is cut off");
		gzip.len = 0;
		gzip_into(&gzip, plain.bytes, plain.len);
	}
	zstd.len -= 1;
	expect_refused_bytes(p, &zstd, ERR_INVALID, "the zstd data is cut off");
	plain.len = 2 * BLOCK + 1000;
	expect_refused_bytes(p, &plain, ERR_INVALID,
			     "'a/b': the archive is cut off in its content");
	plain.len = 4 * BLOCK;
	expect_refused_bytes(p, &plain, ERR_INVALID, "'a/b': the archive is damaged: ");
	plain.len = BLOCK + 100;
	expect_refused_bytes(p, &plain, ERR_INVALID, "the archive is damaged: ");
	plain.len = 0;
	expect_refused_bytes(p, &plain, ERR_INVALID, "the archive is damaged: ");
}

static void a_last_entry_without_its_padding_is_complete(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf b = { .max = 1u << 20 }, gzip = { .max = 1u << 20 };

	add(&b, &(struct entry){ "a", .content = "first" });
	add(&b, &(struct entry){ "b", .content = "second" });
	b.len = 3 * BLOCK + 6; /* also without the end of the archive */
	expect_unpacked_bytes(p, &b);
	expect_text(p, "a", "first");
	expect_text(p, "b", "second");
	expect_diff_id(p, &b);
	gzip_into(&gzip, b.bytes, b.len);
	expect_unpacked_bytes(p, &gzip);
	expect_text(p, "b", "second");
	expect_diff_id(p, &b);
	b.len -= 1;
	expect_refused_bytes(p, &b, ERR_INVALID, "'b': the archive is cut off in its content");
	b.len = 2 * BLOCK; /* the padding is complete, and the next header is missing */
	expect_unpacked_bytes(p, &b);
	assert_false(is_there(p, "b"));
}

static void damaged_data_is_refused(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, gzip = { .max = 1u << 20 };

	add_some(&plain);
	gzip_into(&gzip, plain.bytes, plain.len);
	gzip.bytes[gzip.len - 8] ^= 1;
	expect_refused_bytes(p, &gzip, ERR_INVALID, "the gzip data has a wrong checksum");
	gzip.bytes[gzip.len - 8] ^= 1;
	gzip.bytes[gzip.len - 1] ^= 1; /* the length */
	expect_refused_bytes(p, &gzip, ERR_INVALID, "the gzip data has a wrong checksum");
	gzip.bytes[gzip.len - 1] ^= 1;
	gzip.bytes[10] = 6; /* an invalid type of block */
	expect_refused_bytes(p, &gzip, ERR_INVALID, "the gzip data is damaged");
	plain.bytes[9 * BLOCK - BLOCK] ^= 1; /* c's name */
	expect_refused_bytes(p, &plain, ERR_INVALID, "the archive is damaged: ");
}

static void garbage_behind_the_end_is_refused(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, gzip = { .max = 1u << 20 },
			       zstd = { .max = 1u << 20 };

	add_some(&plain);
	gzip_into(&gzip, plain.bytes, plain.len);
	buf_add(&gzip, "garbage", 7);
	expect_refused_bytes(p, &gzip, ERR_INVALID, "something follows the gzip data");
	gzip.bytes[gzip.len - 7] = '\0';
	expect_refused_bytes(p, &gzip, ERR_INVALID, "something follows the gzip data");
	zstd_into(&zstd, plain.bytes, plain.len);
	buf_add(&zstd, "garbage", 7);
	expect_refused_bytes(p, &zstd, ERR_INVALID, "the zstd data is damaged");
	add_some(&plain); /* a second archive */
	expect_refused_bytes(p, &plain, ERR_INVALID, "something follows the end of the archive");
}

static void a_disk_that_takes_no_more_is_an_error_with_the_name(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	struct rlimit before;
	char content[8192];

	memset(content, 'x', sizeof(content));
	ADD("a/large", .content = content, .len = sizeof(content));
	add_end(b);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	{
		cleanup_fd int fd = memory_with(b->bytes, b->len);
		int r;

		assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 4096, before.rlim_max }),
				 0);
		r = layer_unpack(fd, p->layer_fd, flags(p), &p->result, &p->e);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(r, -1);
	}
	assert_int_equal(p->e.code, ERR_SYSTEM);
	assert_int_equal(p->e.sys, EFBIG);
	assert_string_equal(p->e.msg, "'a/large': write: File too large");
}

/* ---- implied directories ---- */

static void implied_directories_are_listed_parents_first(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;

	ADD("usr/", '5', .mode = 0700);
	ADD("usr/share/doc/x", .content = "1");
	ADD("etc/y", .content = "1");
	ADD("etc/", '5'); /* an explicit entry */
	expect_unpacked(p);
	assert_int_equal(p->result.implied_count, 3);
	assert_string_equal(p->result.implied[0], ".");
	assert_string_equal(p->result.implied[1], "usr/share");
	assert_string_equal(p->result.implied[2], "usr/share/doc");
	assert_int_equal(look(p, ".").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "usr/share").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "etc").st_mtime, MTIME);
}

/* Unpacks the entries added so far; the next archive is a layer above. */
static int unpack_lower(struct place *p)
{
	int lower_fd;

	expect_unpacked(p);
	lower_fd = p->layer_fd;
	p->layer_fd = -1;
	return lower_fd;
}

static void expect_settled(struct place *p, const int *lower_fds, unsigned count)
{
	if (layer_settle(p->layer_fd, lower_fds, count, p->result.implied, p->result.implied_count,
			 &p->e) < 0)
		fail_msg("%s", p->e.msg);
}

static void implied_directories_become_like_those_below(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_fd int lowest = -1, middle = -1;
	char value[64];

	need_xattrs(p);
	ADD("./", '5', .mode = 0711);
	ADD("a/", '5', .mode = 01777, .uid = 1, .gid = 2, .pax = "SCHILY.xattr.user.k=v\n");
	ADD("a/b/", '5', .mode = 0700);
	ADD("d/", '5', .mode = 0500);
	ADD("d/e/", '5', .mode = 0500);
	lowest = unpack_lower(p);
	ADD("a/b/", '5', .mode = 0750, .mtime = 77);
	middle = unpack_lower(p);
	ADD("a/b/c/x", .content = "1");
	ADD("d/e/x", .content = "1");
	expect_unpacked(p);
	expect_settled(p, (const int[]){ middle, lowest }, 2);
	/* middle's own "." and "a" were not settled and are unchanged */
	assert_int_equal(look(p, "a/b").st_mode, S_IFDIR | 0750);
	assert_int_equal(look(p, "a/b").st_mtime, 77);
	assert_int_equal(look(p, "a/b/c").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 0755);
	expect_settled(p, (const int[]){ lowest }, 1);
	assert_int_equal(look(p, ".").st_mode, S_IFDIR | 0711);
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 01777);
	assert_int_equal(look(p, "a").st_mtime, MTIME);
	assert_int_equal(look(p, "d").st_mode, S_IFDIR | 0500);
	assert_int_equal(look(p, "d/e").st_mode, S_IFDIR | 0500);
	assert_int_equal(read_xattr(p, "a", "user.k", value), 1);
	if (can_give_away(p))
		assert_int_equal(look(p, "a").st_gid, 2);
}

static void settling_stops_where_a_layer_hides(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_fd int lowest = -1, middle = -1;

	need_xattrs(p);
	for (const char *const *name =
		     (const char *const[]){ "a", "b", "c", "d", "a/x", "b/x", "c/x", "d/x", NULL };
	     *name; name++)
		ADD(*name, '5', .mode = 0700);
	lowest = unpack_lower(p);
	ADD(".wh.a", .content = "");
	ADD("b/.wh..wh..opq", .content = "");
	ADD("c", '2', .link = "d");
	middle = unpack_lower(p);
	ADD("a/x/y", .content = "1");
	ADD("b/x/y", .content = "1");
	ADD("c/x/y", .content = "1");
	ADD("d/x/y", .content = "1");
	ADD("d/x/.wh..wh..opq", .content = "");
	expect_unpacked(p);
	expect_settled(p, (const int[]){ middle, lowest }, 2);
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "a/x").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "b/x").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "c/x").st_mode, S_IFDIR | 0755);
	assert_int_equal(look(p, "d").st_mode, S_IFDIR | 0700);
	assert_int_equal(look(p, "d/x").st_mode, S_IFDIR | 0755);
}

static void settling_stops_at_a_root_that_hides(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_fd int lowest = -1, middle = -1;

	need_xattrs(p);
	ADD("a/", '5', .mode = 0700);
	lowest = unpack_lower(p);
	ADD(".wh..wh..opq", .content = "");
	middle = unpack_lower(p);
	ADD("a/x", .content = "1");
	expect_unpacked(p);
	expect_settled(p, (const int[]){ middle, lowest }, 2);
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 0755);
	expect_settled(p, (const int[]){ lowest }, 1);
	assert_int_equal(look(p, "a").st_mode, S_IFDIR | 0700);
}

/* ---- packing ---- */

static void packed(int dir_fd, struct buf *out, const char *const *excluded)
{
	cleanup_fd int fd = memfd_create("packed", MFD_CLOEXEC);
	cleanup_free char *bytes = malloc(1u << 20);
	struct err e = { 0 };
	ssize_t n;

	if (layerpack_write(dir_fd, fd, excluded, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	while ((n = read(fd, bytes, 1u << 20)) > 0)
		buf_add(out, bytes, (size_t)n);
}

static void add_tree(struct buf *b)
{
	static const unsigned long map[][2] = { { 1u << 20, 5 }, { 8u << 20, 0 } };
	char name[151];

	fill_with(name, 150, "long");
	ADD("./", '5', .mode = 0751);
	ADD("d/", '5', .mode = 01770, .pax = "mtime=1500000000.123456789\n");
	ADD("d/f", .content = "text", .mode = 04711, .uid = 12, .gid = 34,
	    .pax = "mtime=1500000001.000000001\nSCHILY.xattr.user.k=v\n");
	ADD("d/g", '1', .link = "d/f");
	ADD("l", '2', .link = "d/f");
	ADD("p", '6', .mode = 0600);
	ADD("n\xc3\xa4me\xff", .content = "");
	ADD("x/", '5');
	ADD("x/y/", '5');
	add(b, &(struct entry){ "././@LongLink", 'L', .content = name, .len = 151 });
	ADD("cut", .content = "1");
	add_sparse(b, "s", 8u << 20, map, 2, "hello", 5);
}

static void expect_tree(struct place *p)
{
	char value[64];

	assert_int_equal(look(p, ".").st_mode, S_IFDIR | 0751);
	assert_int_equal(look(p, "d").st_mode, S_IFDIR | 01770);
	assert_int_equal(look(p, "d").st_mtim.tv_nsec, 123456789);
	assert_int_equal(look(p, "d/f").st_mode, S_IFREG | 04711);
	assert_int_equal(look(p, "d/f").st_mtim.tv_nsec, 1);
	assert_int_equal(look(p, "d/f").st_uid, can_give_away(p) ? 12 : geteuid());
	assert_int_equal(look(p, "d/f").st_ino, look(p, "d/g").st_ino);
	assert_int_equal(read_xattr(p, "d/f", "user.k", value), 1);
	expect_text(p, "d/g", "text");
	expect_link(p, "l", "d/f");
	assert_int_equal(look(p, "p").st_mode, S_IFIFO | 0600);
	expect_text(p, "n\xc3\xa4me\xff", "");
	assert_int_equal(look(p, "s").st_size, 8u << 20);
	assert_true(look(p, "s").st_blocks < 256);
	assert_int_equal(p->result.implied_count, 0);
	assert_int_equal(p->result.entry_count, 11);
}

static void what_was_packed_unpacks_to_the_same(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf first = { .max = 32u << 20 }, second = { .max = 32u << 20 };

	need_xattrs(p);
	add_tree(&p->archive);
	expect_unpacked(p);
	packed(p->layer_fd, &first, NULL);
	assert_true(first.len < 64u << 10); /* holes are not written */
	if (unpack_bytes(p, first.bytes, first.len) < 0)
		fail_msg("%s", p->e.msg);
	expect_tree(p);
	packed(p->layer_fd, &second, NULL);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.bytes, second.bytes, first.len);
}

static void packing_leaves_out_what_it_is_told_and_sockets(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_buf struct buf out = { .max = 1u << 20 };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	ADD("proc/x", .content = "1");
	ADD("sub/proc", .content = "1");
	expect_unpacked(p);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s/socket", p->path,
		       p->layer);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	packed(p->layer_fd, &out, (const char *const[]){ "proc", "absent", NULL });
	expect_unpacked_bytes(p, &out);
	assert_true(is_there(p, "sub/proc"));
	assert_false(is_there(p, "proc") || is_there(p, "socket"));
}

static void packing_sorts_names(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf out = { .max = 1u << 20 };
	const char *before = NULL;
	char name[16];

	for (int i = 0; i < 40; i++) { /* not sorted */
		(void)snprintf(name, sizeof(name), "name-%02d", i * 23 % 40);
		assert_int_equal(file_create_at(p->layer_fd, name, 0644, ""), 0);
	}
	packed(p->layer_fd, &out, NULL);
	for (int i = 0; i < 40; i++) {
		const char *at;

		(void)snprintf(name, sizeof(name), "name-%02d", i);
		at = memmem(out.bytes, out.len, name, strlen(name) + 1);
		assert_non_null(at);
		assert_true(at > before);
		before = at;
	}
}

static void packing_refuses_names_that_would_hide(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = memfd_create("packed", MFD_CLOEXEC);

	assert_int_equal(mkdirat(p->layer_fd, "d", 0755), 0);
	assert_int_equal(file_create_at(p->layer_fd, "d/.wh.x", 0644, ""), 0);
	assert_int_equal(layerpack_write(p->layer_fd, fd, NULL, &p->e), -1);
	assert_string_equal(p->e.msg, "pack 'd/.wh.x': in a layer such a name hides another file");
}

static int add_to_buf(void *context, const void *bytes, size_t len)
{
	buf_add(context, bytes, len);
	return 0;
}

static int pack_flags(struct place *p, unsigned pack_flags, struct buf *out)
{
	const struct layerpack_sink sink = { add_to_buf, out };

	return layerpack_write_tree(p->layer_fd, pack_flags, &sink, &p->e);
}

static void make_socket(const struct place *p, const char *name)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s/%s", p->path, p->layer,
		       name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void whiteouts_are_packed_and_come_back(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_buf struct buf first = { .max = 1u << 20 }, second = { .max = 1u << 20 };

	need_xattrs(p);
	ADD("d/e/f", .content = "1");
	ADD(".wh.gone", .content = "");
	ADD("d/.wh.gone", .content = "");
	ADD("d/e/.wh..wh..opq", .content = "");
	expect_unpacked(p);
	assert_int_equal(fsetxattr(p->layer_fd, "user.overlay.opaque", "y", 1, 0), 0);
	make_socket(p, "d/socket"); /* it hides lower files, too */
	assert_int_equal(pack_flags(p, LAYERPACK_WHITEOUTS, &first), 0);
	expect_unpacked_bytes(p, &first);
	assert_true(is_whiteout(p, "gone") && is_whiteout(p, "d/gone") &&
		    is_whiteout(p, "d/socket"));
	assert_true(is_opaque(p, "d/e"));
	assert_false(is_opaque(p, "d") || is_opaque(p, "."));
	expect_text(p, "d/e/f", "1");
	assert_int_equal(pack_flags(p, LAYERPACK_WHITEOUTS, &second), 0);
	assert_int_equal(first.len, second.len);
	assert_memory_equal(first.bytes, second.bytes, first.len);
}

static void names_and_removals_that_a_layer_cannot_tell_are_refused(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf out = { .max = 1u << 20 };
	char name[256];

	fill_with(name, 252, "n");
	assert_int_equal(file_create_at(p->layer_fd, ".wh.x", 0644, ""), 0);
	assert_int_equal(pack_flags(p, LAYERPACK_WHITEOUTS, &out), -1);
	assert_string_equal(p->e.msg, "pack '.wh.x': in a layer such a name hides another file");
	assert_int_equal(pack_flags(p, LAYERPACK_ANY_NAME, &out), 0);
	assert_int_equal(pack_flags(p, LAYERPACK_AS_IS, &out), 0);
	assert_int_equal(unlinkat(p->layer_fd, ".wh.x", 0), 0);
	if (mknodat(p->layer_fd, name, S_IFCHR, 0) < 0)
		skip();
	assert_int_equal(pack_flags(p, LAYERPACK_WHITEOUTS, &out), -1);
	assert_non_null(strstr(p->e.msg, "a layer has no word for the removal of so long a name"));
	assert_int_equal(renameat(p->layer_fd, name, p->layer_fd, name + 1), 0);
	assert_int_equal(pack_flags(p, LAYERPACK_WHITEOUTS, &out), 0);
}

static void what_is_packed_as_it_is_tells_whiteouts_apart(void **state)
{
	struct place *p = *state;
	cleanup_buf struct buf plain = { .max = 1u << 20 }, opaque = { .max = 1u << 20 };
	cleanup_buf struct buf gone = { .max = 1u << 20 };
	cleanup_fd int fd = -1;

	need_xattrs(p);
	assert_int_equal(mkdirat(p->layer_fd, "d", 0755), 0);
	fd = openat(p->layer_fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(pack_flags(p, LAYERPACK_AS_IS, &plain), 0);
	assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
	assert_int_equal(pack_flags(p, LAYERPACK_AS_IS, &opaque), 0);
	assert_null(memmem(plain.bytes, plain.len, "opaque", 6));
	assert_non_null(memmem(opaque.bytes, opaque.len, "opaque", 6));
	assert_int_equal(mknodat(p->layer_fd, "gone", S_IFCHR, 0), 0);
	assert_int_equal(pack_flags(p, LAYERPACK_AS_IS, &gone), 0);
	assert_non_null(memmem(gone.bytes, gone.len, "gone", 5));
}

/* ---- confined ---- */

static int try_forbidden(const struct place *p)
{
	char *const argv[] = { "true", NULL };
	int fd;

	if (openat(p->fd, "canary", O_RDONLY) >= 0 || openat(p->fd, "canary", O_WRONLY) >= 0)
		return 1;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0)
		return 2;
	if (execve("/bin/true", argv, argv + 1) == 0 || fork() >= 0)
		return 3;
	if (mknodat(p->layer_fd, "null", S_IFCHR | 0666, makedev(1, 3)) == 0)
		return 4;
	if (linkat(p->fd, "canary", p->layer_fd, "linked", 0) == 0)
		return 5;
	fd = openat(p->layer_fd, "../canary", O_RDONLY);
	return fd >= 0 ? 6 : 0;
}

/* Runs in a child and reports by its exit status. */
static int unpack_confined(struct place *p, int archive_fd)
{
	if (layerconfine_self(p->layer_fd, &p->e) < 0)
		return 10;
	if (layer_unpack(archive_fd, p->layer_fd, flags(p), &p->result, &p->e) < 0) {
		(void)!write(STDERR_FILENO, p->e.msg, strlen(p->e.msg));
		return 11;
	}
	return try_forbidden(p);
}

static void a_confined_process_can_unpack_and_nothing_else(void **state)
{
	struct place *p = *state;
	struct buf *b = &p->archive;
	cleanup_fd int fd = -1;
	cleanup_buf struct buf gzip = { .max = 1u << 20 };
	int status = 0;
	pid_t child;

	need_xattrs(p);
	add_tree(b);
	ADD("e/h", '1', .link = "d/f");
	ADD("short", .content = "1", .pax = "path=e/\xc3\xa4\xff\n");
	ADD("e/.wh.x", .content = "");
	ADD("e/.wh..wh..opq", .content = "");
	ADD("x", .content = "replaces a tree");
	add_end(b);
	gzip_into(&gzip, b->bytes, b->len);
	fd = memory_with(gzip.bytes, gzip.len);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(unpack_confined(p, fd));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	expect_text(p, "e/h", "text");
	expect_text(p, "e/\xc3\xa4\xff", "1");
	expect_text(p, "x", "replaces a tree");
	assert_true(is_whiteout(p, "e/x") && is_opaque(p, "e"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_tar_becomes_files),
		TEST(dots_and_slashes_do_not_make_another_name),
		TEST(an_absolute_name_is_relative_to_the_root),
		TEST(a_name_that_climbs_is_refused),
		TEST(an_empty_name_is_refused),
		TEST(long_and_deep_names_are_refused),
		TEST(the_longest_and_deepest_names_are_fine),
		TEST(names_of_gnu_and_pax_are_read),
		TEST(names_that_are_not_utf8_stay_as_they_are),
		TEST(messages_show_no_control_characters),
		TEST(the_root_entry_is_the_directory_itself),
		TEST(a_name_leads_through_a_link_of_the_layer),
		TEST(a_link_leads_nowhere_but_into_the_layer),
		TEST(a_link_is_what_it_is_when_the_entry_comes),
		TEST(directories_that_a_link_needs_are_made),
		TEST(the_root_can_be_hidden_through_a_link),
		TEST(links_that_lead_too_far_are_refused),
		TEST(a_link_in_the_place_of_a_file_is_replaced_not_followed),
		TEST(nothing_is_made_through_a_file),
		TEST(a_hard_link_is_the_same_file),
		TEST(a_hard_link_to_a_symbolic_link_is_one),
		TEST(a_hard_link_does_not_lead_out),
		TEST(a_hard_link_needs_something_to_link),
		TEST(a_whiteout_of_a_lower_file_is_a_0_0_device),
		TEST(an_opaque_directory_has_the_attribute),
		TEST(what_aufs_left_is_skipped),
		TEST(a_whiteout_must_hide_a_name),
		TEST(no_file_is_called_like_a_whiteout),
		TEST(an_entry_wins_over_a_whiteout_of_its_name),
		TEST(a_directory_with_a_whiteout_of_its_name_is_opaque),
		TEST(devices_are_left_out_in_dev_and_refused_elsewhere),
		TEST(all_bits_of_a_mode_are_kept),
		TEST(a_umask_changes_nothing),
		TEST(a_set_group_id_directory_gives_its_group_to_nobody),
		TEST(owners_are_set),
		TEST(one_owner_means_that_nobody_gets_anything),
		TEST(owners_beyond_the_map_are_refused),
		TEST(times_have_nanoseconds_also_of_directories),
		TEST(attributes_of_users_are_restored_and_no_others),
		TEST(capabilities_are_restored_where_that_is_allowed),
		TEST(a_sparse_file_keeps_its_holes),
		TEST(a_sparse_file_does_not_outgrow_its_size),
		TEST(a_later_entry_replaces_an_earlier_one),
		TEST(replacing_one_name_of_a_file_leaves_the_other),
		TEST(a_directory_over_a_directory_joins_it),
		TEST(a_file_over_a_directory_removes_all_of_it),
		TEST(a_directory_over_a_file_hides_what_the_file_hid),
		TEST(too_many_entries_are_refused),
		TEST(too_many_bytes_are_refused_before_they_are_written),
		TEST(too_many_directories_are_refused),
		TEST(a_bomb_is_refused_early),
		TEST(the_diff_id_is_the_digest_of_all_bytes),
		TEST(an_archive_without_entries_is_a_layer),
		TEST(gzip_members_follow_each_other),
		TEST(it_does_not_matter_how_the_bytes_arrive),
		TEST(a_gzip_header_may_have_names_and_more),
		TEST(zstd_frames_follow_each_other),
		TEST(what_is_cut_off_is_refused),
		TEST(a_last_entry_without_its_padding_is_complete),
		TEST(damaged_data_is_refused),
		TEST(garbage_behind_the_end_is_refused),
		TEST(a_disk_that_takes_no_more_is_an_error_with_the_name),
		TEST(implied_directories_are_listed_parents_first),
		TEST(implied_directories_become_like_those_below),
		TEST(settling_stops_where_a_layer_hides),
		TEST(settling_stops_at_a_root_that_hides),
		TEST(what_was_packed_unpacks_to_the_same),
		TEST(packing_leaves_out_what_it_is_told_and_sockets),
		TEST(packing_sorts_names),
		TEST(packing_refuses_names_that_would_hide),
		TEST(whiteouts_are_packed_and_come_back),
		TEST(names_and_removals_that_a_layer_cannot_tell_are_refused),
		TEST(what_is_packed_as_it_is_tells_whiteouts_apart),
		TEST(a_confined_process_can_unpack_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
