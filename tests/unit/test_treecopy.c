/* test_treecopy - trees, copied and merged. */
#include "treeplace.h"

#include "tree/treecopy.h"

#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#define DEPTH 2500

static char *program;

static void need_whiteouts(const struct place *p)
{
	if (mknodat(p->fd, "probe", S_IFCHR, 0) < 0) {
		print_message("needs root or a user namespace, for whiteouts\n");
		skip();
	}
}

static void expect_copied(struct place *p, unsigned flags, struct treecopy_result *ret)
{
	struct treecopy_result ignored;

	if (treecopy_run(p->from_fd, p->to_fd, flags, NULL, ret ? ret : &ignored, &p->e) < 0)
		fail_msg("%s", p->e.msg);
}

static void set_times(int fd, const char *path, time_t seconds, long nanoseconds)
{
	const struct timespec times[] = { { seconds + 1, 5 }, { seconds, nanoseconds } };

	assert_int_equal(utimensat(fd, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

static void set_xattr(int fd, const char *path, const char *name, const char *value)
{
	cleanup_fd int file_fd = openat(fd, path, O_RDONLY | O_CLOEXEC);

	assert_int_equal(fsetxattr(file_fd, name, value, strlen(value), 0), 0);
}

static void make_socket(const struct place *p, const char *name)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/from/%s", p->path, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void everything_about_files_is_copied(void **state)
{
	struct place *p = *state;
	int fd = p->from_fd;
	struct treecopy_result result;

	make_file(fd, "plain", "text");
	make_file(fd, "empty", "");
	make_file(fd, "n\xc3\xa4me\xff\n", "1");
	make_directories(fd, "d/e/f");
	make_file(fd, "d/e/f/deep", "deep");
	assert_int_equal(symlinkat("../canary", fd, "link"), 0);
	assert_int_equal(symlinkat("/nowhere", fd, "d/broken"), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0640), 0);
	make_socket(p, "socket");
	set_xattr(fd, "plain", "user.k", "value");
	set_xattr(fd, "d", "user.k", "of a directory");
	set_xattr(fd, "d/e", "user.overlay.opaque", "y");
	if (can_give_away(p)) {
		assert_int_equal(fchownat(fd, "plain", 1000, 1001, 0), 0);
		assert_int_equal(fchownat(fd, "d", 65534, 7, 0), 0);
		assert_int_equal(fchownat(fd, "link", 12, 13, AT_SYMLINK_NOFOLLOW), 0);
		assert_int_equal(fchownat(fd, "fifo", 14, 15, 0), 0);
	}
	assert_int_equal(fchmodat(fd, "plain", 06711, 0), 0);
	assert_int_equal(fchmodat(fd, "d", 03770, 0), 0);
	assert_int_equal(fchmod(fd, 01751), 0);
	assert_int_equal(fsetxattr(fd, "user.top", "1", 1, 0), 0);
	for (const char *const *name =
		     (const char *const[]){ "plain", "link", "fifo", "socket", "d/e/f/deep",
					    "d/e/f", "d/e", "d", ".", NULL };
	     *name; name++)
		set_times(fd, *name, 1500000000 + (*name)[0], 123456789);
	expect_copied(p, 0, &result);
	assert_int_equal(look(p->to_fd, "plain").st_atim.tv_nsec, 5);
	(void)compare_trees(p->from_fd, p->to_fd);
	compare_entry(p->from_fd, p->to_fd, ".");
	assert_int_equal(result.entry_count, 11);
	assert_int_equal(look(p->to_fd, "plain").st_mode, S_IFREG | 06711);
}

static void whiteouts_are_whiteouts(void **state)
{
	struct place *p = *state;

	need_whiteouts(p);
	make_whiteout(p->from_fd, "gone");
	/* like overlay creates them: many names of one */
	assert_int_equal(linkat(p->from_fd, "gone", p->from_fd, "gone too", 0), 0);
	expect_copied(p, 0, NULL);
	assert_true(is_whiteout(p->to_fd, "gone") && is_whiteout(p->to_fd, "gone too"));
	assert_int_equal(count_entries(p->to_fd), 2);
}

static void hard_links_stay_together(void **state)
{
	struct place *p = *state;
	int fd = p->from_fd;
	char name[32];

	make_directories(fd, "a/b");
	make_directories(fd, ".links-0/c");
	make_file(fd, "a/x", "several names");
	assert_int_equal(linkat(fd, "a/x", fd, "a/b/y", 0), 0);
	assert_int_equal(linkat(fd, "a/x", fd, "z", 0), 0);
	assert_int_equal(symlinkat("t", fd, "l"), 0);
	assert_int_equal(linkat(fd, "l", fd, "a/l", 0), 0);
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "a/f%u", i);
		make_file(fd, name, name);
		assert_int_equal(linkat(fd, name, fd, name + 2, 0), 0);
	}
	expect_copied(p, 0, NULL);
	(void)compare_trees(p->from_fd, p->to_fd);
	assert_int_equal(look(p->to_fd, "z").st_ino, look(p->to_fd, "a/b/y").st_ino);
	assert_int_equal(look(p->to_fd, "l").st_ino, look(p->to_fd, "a/l").st_ino);
	assert_int_equal(look(p->to_fd, "f77").st_ino, look(p->to_fd, "a/f77").st_ino);
	expect_text(p->to_fd, "f999", "a/f999");
}

static void holes_stay_holes(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = openat(p->from_fd, "s", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	struct treecopy_result result;

	assert_int_equal(pwrite(fd, "hello", 5, 64u << 20), 5);
	assert_int_equal(pwrite(fd, "there", 5, 128u << 20), 5);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	cleanup_closep(&fd);
	fd = openat(p->from_fd, "all", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	expect_copied(p, 0, &result);
	assert_int_equal(look(p->to_fd, "s").st_size, 1ll << 40);
	assert_true(look(p->to_fd, "s").st_blocks < 128);
	assert_int_equal(look(p->to_fd, "all").st_size, 1ll << 40);
	assert_true(result.bytes < 65536);
	cleanup_closep(&fd);
	fd = openat(p->to_fd, "s", O_RDONLY | O_CLOEXEC);
	{
		char text[6] = "";

		assert_int_equal(pread(fd, text, 5, 64u << 20), 5);
		assert_string_equal(text, "hello");
		assert_int_equal(pread(fd, text, 5, 128u << 20), 5);
		assert_string_equal(text, "there");
	}
}

static void large_files_are_whole(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = openat(p->from_fd, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	unsigned words[4096];
	struct treecopy_result result;

	for (unsigned i = 0; i < 300; i++) {
		for (size_t n = 0; n < COUNT_OF(words); n++)
			words[n] = i * 4096 + (unsigned)n;
		assert_int_equal(write(fd, words, sizeof(words)), sizeof(words));
	}
	assert_int_equal(write(fd, "odd", 3), 3);
	expect_copied(p, 0, &result);
	(void)compare_trees(p->from_fd, p->to_fd);
	assert_int_equal(result.bytes, 300 * sizeof(words) + 3);
}

static void capabilities_are_kept_where_they_can_be(void **state)
{
	struct place *p = *state;
	const struct vfs_cap_data caps = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << 10,
	};
	struct vfs_cap_data copied;
	cleanup_fd int fd = -1;

	make_file(p->from_fd, "f", "x");
	fd = openat(p->from_fd, "f", O_RDONLY | O_CLOEXEC);
	if (fsetxattr(fd, "security.capability", &caps, XATTR_CAPS_SZ_2, 0) < 0) {
		print_message("needs root or a user namespace, to give capabilities\n");
		skip();
	}
	if (can_give_away(p)) {
		assert_int_equal(fchown(fd, 5, 5), 0); /* which clears them again */
		assert_int_equal(fsetxattr(fd, "security.capability", &caps, XATTR_CAPS_SZ_2, 0),
				 0);
	}
	expect_copied(p, 0, NULL);
	cleanup_closep(&fd);
	fd = openat(p->to_fd, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fgetxattr(fd, "security.capability", &copied, sizeof(copied)),
			 XATTR_CAPS_SZ_2);
	assert_memory_equal(&copied, &caps, XATTR_CAPS_SZ_2);
}

/* Only one of overlay's own attributes is meaningful in another place. */
static void attributes_about_other_inodes_are_left_out(void **state)
{
	struct place *p = *state;

	make_file(p->from_fd, "f", "x");
	set_xattr(p->from_fd, "f", "user.overlay.origin", "0123");
	set_xattr(p->from_fd, "f", "user.overlay.redirect", "/etc");
	set_xattr(p->from_fd, "f", "user.overlay.metacopy", "");
	set_xattr(p->from_fd, "f", "user.overlay.overlay.opaque", "y");
	expect_copied(p, 0, NULL);
	{
		cleanup_fd int fd = openat(p->to_fd, "f", O_RDONLY | O_CLOEXEC);

		assert_int_equal(flistxattr(fd, NULL, 0), sizeof("user.overlay.overlay.opaque"));
	}
}

static void modes_without_rights_are_copied(void **state)
{
	struct place *p = *state;
	cleanup_fd int probe = -1;

	make_directories(p->from_fd, "d/e");
	make_file(p->from_fd, "d/f", "x");
	assert_int_equal(fchmodat(p->from_fd, "d/f", 0, 0), 0);
	assert_int_equal(fchmodat(p->from_fd, "d", 0, 0), 0);
	probe = openat(p->from_fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (probe < 0) {
		print_message("needs root or a user namespace, to read what nobody may\n");
		skip();
	}
	expect_copied(p, 0, NULL);
	(void)compare_trees(p->from_fd, p->to_fd);
}

/* ---- depth ---- */

/* Each level has files that sort and hash before and after the directory. */
static void make_deep(int dir_fd, unsigned depth, unsigned files)
{
	cleanup_fd int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[32];

	for (unsigned i = 0; i < depth; i++) {
		int next;

		for (unsigned n = 0; n < files; n++) {
			(void)snprintf(name, sizeof(name), "f%u", n);
			make_file(fd, name, name);
		}
		next = make_directory(fd, "d");
		(void)close(fd);
		fd = next;
	}
}

static void few_descriptors(struct rlimit *ret_before, rlim_t count)
{
	struct rlimit few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, ret_before), 0);
	few = (struct rlimit){ count, ret_before->rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void depth_does_not_matter(void **state)
{
	struct place *p = *state;
	struct treecopy_result result;
	struct rlimit before;

	make_deep(p->from_fd, DEPTH, 0);
	few_descriptors(&before, 200);
	expect_copied(p, 0, &result);
	assert_int_equal(result.entry_count, DEPTH);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void coming_back_from_the_deep_goes_on_where_it_was(void **state)
{
	struct place *p = *state;
	struct treecopy_result result;

	make_deep(p->from_fd, 200, 8);
	expect_copied(p, 0, &result);
	assert_int_equal(result.entry_count, 200 * 9);
	(void)compare_trees(p->from_fd, p->to_fd);
}

/* ---- refusals ---- */

static void expect_refused(struct place *p, const struct treecopy_limits *limits,
			   enum err_code code, const char *words)
{
	struct treecopy_result ignored;
	char name[16];
	static unsigned count;
	cleanup_fd int fd = -1;

	(void)snprintf(name, sizeof(name), "to-%u", count++);
	fd = make_directory(p->fd, name);
	assert_int_equal(treecopy_run(p->from_fd, fd, 0, limits, &ignored, &p->e), -1);
	assert_string_equal(p->e.msg, words);
	assert_int_equal(p->e.code, code);
}

static void each_limit_is_an_error_of_its_own(void **state)
{
	struct place *p = *state;
	struct treecopy_limits l = treecopy_default_limits();
	struct treecopy_result result;
	int fd = p->from_fd;

	make_directories(fd, "d/e");
	make_file(fd, "d/e/f", "12345");
	assert_int_equal(linkat(fd, "d/e/f", fd, "g", 0), 0);
	make_file(fd, "h", "123");
	assert_int_equal(linkat(fd, "h", fd, "i", 0), 0);
	l.entries = 5;
	expect_refused(p, &l, ERR_LIMIT, "there are more than 5 files");
	l.entries = 6;
	l.bytes = 7;
	expect_refused(p, &l, ERR_LIMIT, "the files are larger than 7 bytes");
	l.bytes = 8;
	l.linked = 1;
	expect_refused(p, &l, ERR_LIMIT, "more than 1 files have several names");
	l.linked = 2;
	l.depth = 2;
	expect_refused(p, &l, ERR_LIMIT, "it has directories deeper than 2");
	l.depth = 3;
	if (treecopy_run(fd, p->to_fd, 0, &l, &result, &p->e) < 0)
		fail_msg("%s", p->e.msg);
}

static void a_destination_that_is_not_empty_is_refused(void **state)
{
	struct place *p = *state;
	struct treecopy_result ignored;

	make_file(p->from_fd, "a", "new");
	make_file(p->to_fd, "a", "old");
	assert_int_equal(treecopy_run(p->from_fd, p->to_fd, 0, NULL, &ignored, &p->e), -1);
	assert_int_equal(p->e.code, ERR_EXISTS);
	assert_string_equal(p->e.msg, "copy 'a': the destination was not empty");
	expect_text(p->to_fd, "a", "old");
}

static void devices_are_refused(void **state)
{
	struct place *p = *state;

	if (mknodat(p->from_fd, "nu\nll", S_IFCHR | 0666, makedev(1, 3)) < 0) {
		print_message("needs root, to make a device\n");
		skip();
	}
	expect_refused(p, NULL, ERR_INVALID, "copy 'nu?ll': it is a device");
}

/* ---- merging ---- */

static void merging_keeps_what_is_not_mentioned(void **state)
{
	struct place *p = *state;

	make_directories(p->to_fd, "d/e");
	make_file(p->to_fd, "d/old", "old");
	make_file(p->to_fd, "d/e/old", "old");
	make_file(p->to_fd, "d/both", "old");
	set_xattr(p->to_fd, "d", "user.old", "1");
	assert_int_equal(fchmodat(p->to_fd, "d", 02700, 0), 0);
	make_directories(p->from_fd, "d");
	make_file(p->from_fd, "d/new", "new");
	make_file(p->from_fd, "d/both", "new");
	set_xattr(p->from_fd, "d", "user.new", "1");
	set_times(p->from_fd, "d", 1500000000, 3);
	expect_copied(p, TREECOPY_MERGE, NULL);
	expect_text(p->to_fd, "d/old", "old");
	expect_text(p->to_fd, "d/e/old", "old");
	expect_text(p->to_fd, "d/new", "new");
	expect_text(p->to_fd, "d/both", "new");
	{
		cleanup_fd int a = openat(p->from_fd, "d", O_RDONLY | O_CLOEXEC);
		cleanup_fd int b = openat(p->to_fd, "d", O_RDONLY | O_CLOEXEC);

		compare_attributes(a, b, "d");
		compare_stat(&(struct stat[]){ look(p->from_fd, "d") }[0],
			     &(struct stat[]){ look(p->to_fd, "d") }[0], "d");
	}
	assert_false(is_opaque(p->to_fd, "d"));
}

static void merging_replaces_what_has_another_kind(void **state)
{
	struct place *p = *state;

	make_directories(p->to_fd, "dir/with/more");
	make_file(p->to_fd, "file", "old");
	make_file(p->to_fd, "name", "several");
	assert_int_equal(linkat(p->to_fd, "name", p->to_fd, "other name", 0), 0);
	assert_int_equal(symlinkat("../canary", p->to_fd, "link"), 0);
	assert_int_equal(symlinkat("..", p->to_fd, "uplink"), 0);
	make_file(p->from_fd, "dir", "a file now");
	make_directories(p->from_fd, "file/sub");
	make_file(p->from_fd, "name", "new");
	make_file(p->from_fd, "link", "a file now");
	make_directories(p->from_fd, "uplink");
	make_file(p->from_fd, "uplink/canary", "bad");
	expect_copied(p, TREECOPY_MERGE, NULL);
	expect_text(p->to_fd, "dir", "a file now");
	assert_true(is_there(p->to_fd, "file/sub"));
	assert_true(is_opaque(p->to_fd, "file")); /* the file hid what was below */
	assert_false(is_opaque(p->to_fd, "file/sub"));
	expect_text(p->to_fd, "name", "new");
	expect_text(p->to_fd, "other name", "several");
	expect_text(p->to_fd, "link", "a file now");
	assert_true(S_ISDIR(look(p->to_fd, "uplink").st_mode));
}

static void merging_obeys_whiteouts_and_opaque_directories(void **state)
{
	struct place *p = *state;

	need_whiteouts(p);
	make_directories(p->to_fd, "tree/below/it");
	make_file(p->to_fd, "file", "old");
	make_directories(p->to_fd, "emptied/sub");
	make_file(p->to_fd, "emptied/file", "old");
	make_directories(p->to_fd, "opaque before");
	make_file(p->to_fd, "opaque before/old", "old");
	make_file(p->to_fd, "opaque before/sub/old", "old");
	make_opaque(p->to_fd, "opaque before");
	make_whiteout(p->to_fd, "gone");
	make_whiteout(p->to_fd, "gone for good");
	make_whiteout(p->to_fd, "back");

	make_whiteout(p->from_fd, "tree");
	make_whiteout(p->from_fd, "file");
	make_whiteout(p->from_fd, "never there");
	make_directories(p->from_fd, "emptied");
	make_opaque(p->from_fd, "emptied");
	make_file(p->from_fd, "emptied/new", "new");
	make_directories(p->from_fd, "opaque before");
	make_whiteout(p->from_fd, "opaque before/old");
	make_whiteout(p->from_fd, "opaque before/never there");
	make_directories(p->from_fd, "opaque before/sub");
	make_whiteout(p->from_fd, "opaque before/sub/old");
	make_directories(p->from_fd, "gone");
	make_file(p->from_fd, "back", "new");
	expect_copied(p, TREECOPY_MERGE, NULL);
	assert_true(is_whiteout(p->to_fd, "tree") && is_whiteout(p->to_fd, "file"));
	assert_true(is_whiteout(p->to_fd, "never there") && is_whiteout(p->to_fd, "gone for good"));
	assert_true(is_opaque(p->to_fd, "emptied"));
	assert_false(is_there(p->to_fd, "emptied/file") || is_there(p->to_fd, "emptied/sub"));
	expect_text(p->to_fd, "emptied/new", "new");
	assert_true(is_opaque(p->to_fd, "opaque before"));
	assert_false(is_there(p->to_fd, "opaque before/old") ||
		     is_there(p->to_fd, "opaque before/never there") ||
		     is_there(p->to_fd, "opaque before/sub/old"));
	assert_true(is_opaque(p->to_fd, "gone"));
	expect_text(p->to_fd, "back", "new");
}

static void merging_links_into_directories_that_were_there(void **state)
{
	struct place *p = *state;

	make_directories(p->to_fd, "a");
	make_file(p->to_fd, "a/x", "old");
	make_file(p->to_fd, ".links-0", "old");
	make_directories(p->from_fd, "a");
	make_file(p->from_fd, "a/x", "new");
	assert_int_equal(linkat(p->from_fd, "a/x", p->from_fd, "y", 0), 0);
	expect_copied(p, TREECOPY_MERGE, NULL);
	expect_text(p->to_fd, "a/x", "new");
	assert_int_equal(look(p->to_fd, "a/x").st_ino, look(p->to_fd, "y").st_ino);
	assert_int_equal(look(p->to_fd, "y").st_nlink, 2);
	expect_text(p->to_fd, ".links-0", "old");
	assert_int_equal(count_entries(p->to_fd), 3);
}

/* ---- overlay itself ---- */

/* Mounts layers ("a:b", highest first) at `at`, writable if there is an upper one. */
static int mount_layers(const struct place *p, const char *at, const char *lower, const char *upper)
{
	char options[256], work[64] = "";
	int fd;

	if (upper) {
		(void)snprintf(work, sizeof(work), ",upperdir=%s,workdir=work-%s", upper, upper);
		make_directories(p->fd, strstr(work, "work-"));
		make_directories(p->fd, upper);
	}
	make_directories(p->fd, at);
	/* not p->fd, which belongs to the previous mount namespace */
	assert_int_equal(chdir(p->path), 0);
	(void)snprintf(options, sizeof(options), "userxattr,lowerdir=%s%s", lower, work);
	if (mount("overlay", at, "overlay", 0, options) < 0) {
		print_message("needs overlay mounts in user namespaces (%s: %s)\n", options,
			      strerror(errno));
		skip();
	}
	fd = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void copy_layer(struct place *p, const char *from, const char *to, unsigned flags)
{
	struct treecopy_result ignored;
	cleanup_fd int from_fd = openat(p->fd, from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int to_fd = -1;

	make_directories(p->fd, to);
	to_fd = openat(p->fd, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (treecopy_run(from_fd, to_fd, flags, NULL, &ignored, &p->e) < 0)
		fail_msg("%s", p->e.msg);
}

static void make_base(int fd)
{
	make_file(fd, "etc/kept", "x");
	make_file(fd, "etc/changed", "old");
	make_file(fd, "etc/gone", "x");
	make_file(fd, "tree/a/b", "x");
	make_file(fd, "tree/c", "x");
	make_file(fd, "twice/a", "x");
	make_file(fd, "twice/b", "x");
	make_file(fd, "file", "x");
	make_file(fd, "socket", "x");
}

static void empty(int fd, const char *path, const char *name)
{
	struct err e;
	cleanup_fd int dir_fd = openat(fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(sweep_tree(dir_fd, name, &e), 0);
}

static void change_first(int fd)
{
	empty(fd, "etc", "gone");
	empty(fd, "etc", "changed");
	make_file(fd, "etc/changed", "new");
	empty(fd, ".", "tree");
	make_file(fd, "tree/a/new", "x"); /* over what was removed */
	empty(fd, ".", "file");
	make_file(fd, "file/now/a", "directory");
	make_file(fd, "twice/c", "x");
	empty(fd, ".", "socket");
	assert_int_equal(mknodat(fd, "socket", S_IFSOCK | 0600, 0), 0);
	assert_int_equal(linkat(fd, "etc/changed", fd, "etc/too", 0), 0);
}

static void change_second(int fd)
{
	empty(fd, ".", "twice");
	make_file(fd, "twice/a", "again");
	empty(fd, ".", "file");
	make_file(fd, "file", "a file again");
	make_file(fd, "etc/gone", "back");
	empty(fd, "tree", "a");
	assert_int_equal(fchmodat(fd, "etc", 0700, 0), 0);
}

/* Overlay shows the same with copies as layers, and with two copies merged into one. */
static void overlay_shows_a_copy_as_it_showed_the_layer(void **state)
{
	struct place *p = *state;
	cleanup_fd int base = -1, live = -1, copied = -1, merged = -1;

	if (!is_inside() || unshare(CLONE_NEWNS) < 0) {
		print_message("runs in a user namespace\n");
		skip();
	}
	base = make_directory(p->fd, "base");
	make_base(base);
	live = mount_layers(p, "live1", "base", "upper1");
	change_first(live);
	copy_layer(p, "upper1", "copy1", 0);
	copied = mount_layers(p, "seen1", "copy1:base", NULL);
	(void)compare_trees(live, copied);
	cleanup_closep(&live);
	cleanup_closep(&copied);

	live = mount_layers(p, "live2", "copy1:base", "upper2");
	change_second(live);
	copy_layer(p, "upper2", "copy2", 0);
	copied = mount_layers(p, "seen2", "copy2:copy1:base", NULL);
	(void)compare_trees(live, copied);
	copy_layer(p, "copy1", "merged", 0);
	copy_layer(p, "upper2", "merged", TREECOPY_MERGE);
	merged = mount_layers(p, "seen3", "merged:base", NULL);
	assert_int_equal(compare_trees(live, merged), 5);
	expect_text(merged, "twice/a", "again");
	assert_false(is_there(merged, "twice/b") || is_there(merged, "tree/a"));
	for (const char *const *at =
		     (const char *const[]){ "live1", "seen1", "live2", "seen2", "seen3", NULL };
	     *at; at++)
		(void)umount2(*at, MNT_DETACH);
	assert_int_equal(chdir("/"), 0);
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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(everything_about_files_is_copied),
		TREE_TEST(whiteouts_are_whiteouts),
		TREE_TEST(hard_links_stay_together),
		TREE_TEST(holes_stay_holes),
		TREE_TEST(large_files_are_whole),
		TREE_TEST(capabilities_are_kept_where_they_can_be),
		TREE_TEST(attributes_about_other_inodes_are_left_out),
		TREE_TEST(modes_without_rights_are_copied),
		TREE_TEST(depth_does_not_matter),
		TREE_TEST(coming_back_from_the_deep_goes_on_where_it_was),
		TREE_TEST(each_limit_is_an_error_of_its_own),
		TREE_TEST(a_destination_that_is_not_empty_is_refused),
		TREE_TEST(devices_are_refused),
		TREE_TEST(merging_keeps_what_is_not_mentioned),
		TREE_TEST(merging_replaces_what_has_another_kind),
		TREE_TEST(merging_obeys_whiteouts_and_opaque_directories),
		TREE_TEST(merging_links_into_directories_that_were_there),
		TREE_TEST(overlay_shows_a_copy_as_it_showed_the_layer),
		cmocka_unit_test(all_of_this_holds_in_a_user_namespace),
	};

	(void)argc;
	program = argv[0];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
