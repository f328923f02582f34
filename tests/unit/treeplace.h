#pragma once
/*
 * treeplace - for tests of trees: a directory for each test, a comparison of two trees, and running
 * the whole program again as root of a user namespace.
 */
#include "unit.h"

#include "base/file.h"
#include "base/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define CANARY "nobody has touched this"

struct place {
	char path[64];
	int fd;
	int from_fd; /* the directory "from" */
	int to_fd;   /* and "to" */
	struct err e;
};

static inline int make_directory(int dir_fd, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(dir_fd, name, 0755), 0);
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline void make_directories(int dir_fd, const char *path)
{
	char partial[512];

	for (const char *p = path; *p; p++) {
		size_t len = (size_t)(p - path) + 1;

		if (p[1] != '/' && p[1] != '\0')
			continue;
		memcpy(partial, path, len);
		partial[len] = '\0';
		if (mkdirat(dir_fd, partial, 0755) < 0)
			assert_int_equal(errno, EEXIST);
	}
}

/* Creates parent directories too. */
static inline void make_file(int dir_fd, const char *path, const char *text)
{
	const char *slash = strrchr(path, '/');
	char parent[512] = "";
	int r;

	if (slash) {
		memcpy(parent, path, (size_t)(slash - path));
		make_directories(dir_fd, parent);
	}
	r = file_create_at(dir_fd, path, 0644, text);
	if (r < 0)
		fail_msg("make %s: %s", path, strerror(-r));
}

static inline void make_whiteout(int dir_fd, const char *path)
{
	assert_int_equal(mknodat(dir_fd, path, S_IFCHR, makedev(0, 0)), 0);
}

static inline void make_opaque(int dir_fd, const char *path)
{
	cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
}

static inline bool is_there(int dir_fd, const char *path)
{
	struct stat st;

	return fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline struct stat look(int dir_fd, const char *path)
{
	struct stat st;

	if (fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fail_msg("%s is not there", path);
	return st;
}

static inline bool is_whiteout(int dir_fd, const char *path)
{
	struct stat st = look(dir_fd, path);

	return S_ISCHR(st.st_mode) && st.st_rdev == 0;
}

static inline bool is_opaque(int dir_fd, const char *path)
{
	cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char value = 0;

	assert_true(fd >= 0);
	return fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

static inline void expect_text(int dir_fd, const char *path, const char *expected)
{
	cleanup_free char *text = NULL;
	size_t len = 0;

	assert_int_equal(file_read_at(dir_fd, path, 1u << 20, &text, &len), 0);
	assert_string_equal(text, expected);
}

static inline int place_setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	(void)umask(022);
	strcpy(p->path, "/tmp/test-tree-XXXXXX");
	assert_non_null(mkdtemp(p->path));
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->fd >= 0);
	make_file(p->fd, "canary", CANARY);
	p->from_fd = make_directory(p->fd, "from");
	p->to_fd = make_directory(p->fd, "to");
	*state = p;
	return 0;
}

static inline int place_teardown(void **state)
{
	struct place *p = *state;

	expect_text(p->fd, "canary", CANARY);
	if (sweep_tree(AT_FDCWD, p->path, &p->e) < 0)
		fail_msg("%s", p->e.msg);
	(void)close(p->fd);
	(void)close(p->from_fd);
	(void)close(p->to_fd);
	free(p);
	return 0;
}

/* ---- comparing ---- */

static inline void compare_attributes(int a, int b, const char *name)
{
	char names[4096], names_b[4096], value_a[1024], value_b[1024];
	ssize_t len = flistxattr(a, names, sizeof(names));

	assert_true(len >= 0);
	/* with size 0 overlay returns a length that includes its own attributes */
	assert_int_equal(flistxattr(b, names_b, sizeof(names_b)), len);
	for (const char *n = names; n < names + len; n += strlen(n) + 1) {
		ssize_t size = fgetxattr(a, n, value_a, sizeof(value_a));

		assert_true(size >= 0);
		if (fgetxattr(b, n, value_b, sizeof(value_b)) != size)
			fail_msg("%s: attribute %s", name, n);
		assert_memory_equal(value_a, value_b, size);
	}
}

static inline void compare_content(int a, int b, off_t size)
{
	char bytes_a[65536], bytes_b[65536];

	for (off_t at = 0; at < size;) {
		ssize_t n = pread(a, bytes_a, sizeof(bytes_a), at);

		assert_true(n > 0);
		assert_int_equal(pread(b, bytes_b, sizeof(bytes_b), at), n);
		assert_memory_equal(bytes_a, bytes_b, n);
		at += n;
	}
}

static inline void compare_stat(const struct stat *a, const struct stat *b, const char *name)
{
	if (a->st_mode != b->st_mode || a->st_uid != b->st_uid || a->st_gid != b->st_gid)
		fail_msg("%s: mode %o %o, owner %u:%u %u:%u", name, a->st_mode, b->st_mode,
			 a->st_uid, a->st_gid, b->st_uid, b->st_gid);
	if (a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
		fail_msg("%s: another time", name);
	assert_int_equal(a->st_rdev, b->st_rdev);
	if (S_ISDIR(a->st_mode))
		return;
	assert_int_equal(a->st_size, b->st_size);
	assert_int_equal(a->st_nlink, b->st_nlink);
}

static inline unsigned compare_trees(int a, int b);

static inline void compare_entry(int a, int b, const char *name)
{
	struct stat st_a = look(a, name), st_b = look(b, name);
	char link_a[4096] = "", link_b[4096] = "";
	cleanup_fd int fd_a = -1, fd_b = -1;

	if (S_ISCHR(st_a.st_mode)) { /* whiteouts have no other properties */
		assert_true(is_whiteout(b, name));
		return;
	}
	compare_stat(&st_a, &st_b, name);
	if (S_ISLNK(st_a.st_mode)) {
		assert_int_equal(readlinkat(a, name, link_a, sizeof(link_a) - 1),
				 readlinkat(b, name, link_b, sizeof(link_b) - 1));
		assert_string_equal(link_a, link_b);
	}
	if (!S_ISREG(st_a.st_mode) && !S_ISDIR(st_a.st_mode))
		return;
	fd_a = openat(a, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	fd_b = openat(b, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd_a >= 0 && fd_b >= 0);
	compare_attributes(fd_a, fd_b, name);
	if (S_ISDIR(st_a.st_mode))
		(void)compare_trees(fd_a, fd_b);
	else
		compare_content(fd_a, fd_b, st_a.st_size);
}

static inline unsigned count_entries(int fd)
{
	DIR *dir = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count - 2;
}

/* Compares everything below the two; returns the number of their direct entries. */
static inline unsigned compare_trees(int a, int b)
{
	DIR *dir = fdopendir(openat(a, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	const struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		compare_entry(a, b, entry->d_name);
		count++;
	}
	(void)closedir(dir);
	assert_int_equal(count_entries(b), count);
	return count;
}

/* ---- in a user namespace ---- */

static inline bool is_inside(void)
{
	return getenv("TREEPLACE_INSIDE") != NULL;
}

static inline void write_map(pid_t pid, const char *file, const char *map)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	(void)file_write_at(AT_FDCWD, path, map);
}

/* Runs the program again, as root of a namespace with 65536 ids if we are root, else with one. */
static inline int run_inside(char *program)
{
	char uid_map[32] = "0 100000 65536", gid_map[32] = "0 100000 65536";
	int ready[2], go[2], status = 0;
	char byte = 0;
	pid_t child;

	if (pipe(ready) < 0 || pipe(go) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		(void)!write(ready[1], &byte, 1);
		(void)!read(go[0], &byte, 1);
		if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
			_exit(77);
		(void)setenv("TREEPLACE_INSIDE", "1", 1);
		(void)execl(program, program, (char *)NULL);
		_exit(76);
	}
	(void)close(ready[1]);
	if (read(ready[0], &byte, 1) == 1) {
		if (geteuid() != 0) {
			(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1", geteuid());
			(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1", getegid());
			write_map(child, "setgroups", "deny");
		}
		write_map(child, "gid_map", gid_map);
		write_map(child, "uid_map", uid_map);
		(void)!write(go[1], &byte, 1);
	}
	(void)close(ready[0]);
	(void)close(go[0]);
	(void)close(go[1]);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static inline bool can_give_away(const struct place *p)
{
	return fchownat(p->fd, "canary", 12, 34, 0) == 0;
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
