/* test_sweep - unusual trees, and their removal. */
#include "unit.h"

#include "base/file.h"
#include "base/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define DEPTH 20000
#define OTHER_ID 12345
#define CANARY "nobody has touched this"

struct place {
	char path[64];
	int fd;
	struct err e;
};

static int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->path, "/tmp/test-sweep-XXXXXX");
	assert_non_null(mkdtemp(p->path));
	assert_int_equal(chmod(p->path, 0777), 0);
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->fd >= 0);
	assert_int_equal(mkdirat(p->fd, "outside", 0755), 0);
	assert_int_equal(file_create_at(p->fd, "outside/canary", 0644, CANARY), 0);
	*state = p;
	return 0;
}

static int place_teardown(void **state)
{
	struct place *p = *state;
	char text[64];

	assert_int_equal(file_read_line(p->fd, "outside/canary", text, sizeof(text)), 0);
	assert_string_equal(text, CANARY);
	assert_int_equal(unlinkat(p->fd, "outside/canary", 0), 0);
	assert_int_equal(unlinkat(p->fd, "outside", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(p->path), 0); /* so nothing else is left */
	(void)close(p->fd);
	free(p);
	return 0;
}

static int make_directory(int dir_fd, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dir_fd, name, 0755), 0);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* "d/d/d/..."; every `step`th level has the mode and a file beside it. */
static void make_chain(int dir_fd, unsigned depth, unsigned step, mode_t mode)
{
	cleanup_fd int fd = make_directory(dir_fd, "d");

	for (unsigned i = 1; i < depth; i++) {
		int next = make_directory(fd, "d");

		if (i % step == 0) {
			assert_int_equal(file_create_at(fd, "f", 0644, "x"), 0);
			assert_int_equal(fchmod(fd, mode), 0);
		}
		(void)close(fd);
		fd = next;
	}
}

static void expect_swept(struct place *p, const char *name)
{
	struct stat st;

	if (sweep_tree(p->fd, name, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	assert_int_equal(fstatat(p->fd, name, &st, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(errno, ENOENT);
}

static void files_and_what_is_not_there_are_fine(void **state)
{
	struct place *p = *state;

	expect_swept(p, "absent");
	assert_int_equal(file_create_at(p->fd, "tree", 0000, "x"), 0);
	expect_swept(p, "tree");
	assert_int_equal(mkdirat(p->fd, "tree", 0755), 0);
	expect_swept(p, "tree");
}

static void links_are_removed_not_followed(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = make_directory(p->fd, "tree");

	assert_int_equal(symlinkat("../outside", fd, "up"), 0);
	assert_int_equal(symlinkat("../outside/canary", fd, "file"), 0);
	assert_int_equal(symlinkat("nowhere", fd, "broken"), 0);
	assert_int_equal(linkat(p->fd, "outside/canary", fd, "hard", 0), 0);
	expect_swept(p, "tree");
	assert_int_equal(symlinkat("outside", p->fd, "link"), 0);
	expect_swept(p, "link");
}

static void every_kind_and_name_goes(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = make_directory(p->fd, "tree");
	cleanup_fd int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char longest[256];

	memset(longest, '\xff', 255);
	longest[255] = '\0';
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/tree/socket", p->path);
	assert_int_equal(bind(socket_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0), 0);
	assert_int_equal(file_create_at(fd, longest, 0, ""), 0);
	assert_int_equal(mkdirat(fd, "\n\x1b[31m", 0), 0);
	assert_int_equal(mkdirat(fd, "-rf", 0), 0);
	assert_int_equal(mkdirat(fd, "...", 0), 0);
	expect_swept(p, "tree");
}

static void depth_does_not_matter(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = make_directory(p->fd, "tree");
	struct rlimit before, few = { 64, 64 };

	make_chain(fd, DEPTH, 10, 0755);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	expect_swept(p, "tree");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Many directories that must be moved, to names that are already taken. */
static void names_at_the_top_may_be_taken(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = make_directory(p->fd, "tree");
	char name[32];

	make_chain(fd, 200, 1000, 0);
	for (unsigned i = 0; i < 4; i++) {
		cleanup_fd int sub = -1;

		(void)snprintf(name, sizeof(name), "swept-%u", i * 4);
		sub = make_directory(fd, name); /* not empty */
		make_chain(sub, 100, 1000, 0);
		(void)snprintf(name, sizeof(name), "swept-%u", i * 4 + 1);
		assert_int_equal(mkdirat(fd, name, 0755), 0);
		(void)snprintf(name, sizeof(name), "swept-%u", i * 4 + 2);
		assert_int_equal(symlinkat("../outside", fd, name), 0);
	}
	expect_swept(p, "tree");
}

static void many_entries_go(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = make_directory(p->fd, "tree");
	char name[32];

	for (unsigned i = 0; i < 8000; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(
			i % 4 ? file_create_at(fd, name, 0644, "") : mkdirat(fd, name, 0700), 0);
	}
	expect_swept(p, "tree");
}

/* Runs in a child, as a user without privileges. */
static void as_nobody(struct place *p, void (*act)(struct place *p))
{
	int status = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && (setresgid(OTHER_ID, OTHER_ID, OTHER_ID) < 0 ||
				       setresuid(OTHER_ID, OTHER_ID, OTHER_ID) < 0))
			_exit(2);
		act(p);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void make_and_sweep_forbidden(struct place *p)
{
	static const mode_t modes[] = { 0000, 0100, 0200, 0400, 0500, 0300, 0600 };
	int fd = make_directory(p->fd, "tree");
	char name[16];

	for (size_t i = 0; i < COUNT_OF(modes); i++) {
		int sub;

		(void)snprintf(name, sizeof(name), "mode-%o", modes[i]);
		sub = make_directory(fd, name);
		if (mkdirat(sub, "empty", modes[i]) < 0 ||
		    file_create_at(sub, "file", 0, "x") < 0 || fchmod(sub, modes[i]) < 0)
			_exit(3);
		(void)close(sub);
	}
	make_chain(fd, 300, 1, 0000); /* some of these are moved */
	if (fchmod(fd, 0) < 0)
		_exit(4);
	(void)close(fd);
	if (sweep_tree(p->fd, "tree", &p->e) < 0) {
		(void)fprintf(stderr, "%s\n", p->e.msg);
		_exit(5);
	}
}

static void modes_do_not_keep_the_owner_out(void **state)
{
	struct place *p = *state;

	as_nobody(p, make_and_sweep_forbidden);
	assert_int_equal(faccessat(p->fd, "tree", F_OK, 0), -1);
}

static void sweep_of_another(struct place *p)
{
	if (sweep_tree(p->fd, "tree", &p->e) == 0)
		_exit(6);
	if (!strstr(p->e.msg, "'in?side': Permission denied"))
		_exit(7);
}

static void what_is_not_ours_is_an_error_with_a_name(void **state)
{
	struct place *p = *state;
	cleanup_fd int fd = -1;

	if (geteuid() != 0) {
		print_message("needs root, to make a stranger's directory\n");
		skip();
	}
	fd = make_directory(p->fd, "tree");
	assert_int_equal(file_create_at(fd, "in\nside", 0644, ""), 0);
	as_nobody(p, sweep_of_another);
	expect_swept(p, "tree");
}

/* A disk without a free block or inode: directories are moved once there is space. */
static void a_full_disk_can_be_emptied(void **state)
{
	struct place *p = *state;
	char dir[128];
	cleanup_fd int fd = -1, big = -1;
	char block[4096] = { 1 };

	(void)snprintf(dir, sizeof(dir), "%s/disk", p->path);
	assert_int_equal(mkdir(dir, 0755), 0);
	if (mount("none", dir, "tmpfs", 0, "size=8m,nr_inodes=2000") < 0) {
		assert_int_equal(rmdir(dir), 0);
		print_message("needs root, to mount a small file system\n");
		skip();
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(fd, "tree", 0755), 0);
	{
		cleanup_fd int tree = openat(fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		make_chain(tree, 1500, 7, 0);
		big = openat(tree, "big", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		while (write(big, block, sizeof(block)) > 0)
			continue;
	}
	assert_int_equal(sweep_tree(fd, "tree", &p->e), 0);
	cleanup_closep(&fd);
	cleanup_closep(&big);
	assert_int_equal(umount(dir), 0);
	assert_int_equal(rmdir(dir), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_and_what_is_not_there_are_fine),
		TEST(links_are_removed_not_followed),
		TEST(every_kind_and_name_goes),
		TEST(depth_does_not_matter),
		TEST(names_at_the_top_may_be_taken),
		TEST(many_entries_go),
		TEST(modes_do_not_keep_the_owner_out),
		TEST(what_is_not_ours_is_an_error_with_a_name),
		TEST(a_full_disk_can_be_emptied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
