/*
 * landlock - a second wall behind the mounts; see landlock.h.
 *
 * Rights only add up along a path, so a writable root is one rule with all rights. A read-only
 * root is a rule with reading rights and one with all rights for each writable place.
 *
 * The streams: if a stream is redirected to a host file, /dev/stdout leads outside the root.
 * Landlock does not check writes through the inherited descriptor, but `> /dev/stdout` opens the
 * file again: so such a file gets its own rule, for reading only or for writing only.
 */
#include "sandbox/landlock.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "policy/policy.h"
#include "sandbox/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in some distributions' headers. */
#define ACCESS_REFER (1ull << 13)
#define ACCESS_TRUNCATE (1ull << 14)
#define ACCESS_IOCTL_DEV (1ull << 15)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ull << 0)
#define SCOPE_SIGNAL (1ull << 1)

#define ACCESS_READ                                                                                \
	((uint64_t)LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |                     \
	 LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_ABI_1 ((1ull << 13) - 1)

struct ruleset {
	uint64_t handled_fs;
	uint64_t handled_net;
	uint64_t scoped;
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

/* The rights that each ABI adds; the kernel accepts a longer struct if the rest is zero. */
static struct ruleset ruleset_for(int abi)
{
	struct ruleset r = { .handled_fs = ACCESS_ABI_1 };

	if (abi >= 2)
		r.handled_fs |= ACCESS_REFER;
	if (abi >= 3)
		r.handled_fs |= ACCESS_TRUNCATE;
	if (abi >= 5)
		r.handled_fs |= ACCESS_IOCTL_DEV;
	if (abi >= 6)
		r.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	return r;
}

static int add_rule(int ruleset_fd, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };

	return (int)syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule,
			    0);
}

static int allow_path(int ruleset_fd, const char *path, uint64_t access, struct err *e)
{
	cleanup_fd int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open '%s' for Landlock", path);
	if (!S_ISDIR(st.st_mode))
		access &= (uint64_t)LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
			  LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE | ACCESS_IOCTL_DEV;
	if (add_rule(ruleset_fd, fd, access) < 0)
		return err_sys(e, errno, "allow '%s' in Landlock", path);
	return 0;
}

static int allow_stream(int ruleset_fd, int fd, uint64_t access, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return 0; /* closed by the caller */
	/* pipes and sockets have no path and are not restricted; a directory cannot be a stream */
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return 0;
	if (add_rule(ruleset_fd, fd, access) < 0 && errno != EBADFD && errno != EBADF)
		return err_sys(e, errno, "allow stream %d in Landlock", fd);
	return 0;
}

static int allow_streams(int ruleset_fd, uint64_t handled, struct err *e)
{
	const uint64_t out = (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE) & handled;

	if (allow_stream(ruleset_fd, STDIN_FILENO, LANDLOCK_ACCESS_FS_READ_FILE, e) < 0)
		return -1;
	if (allow_stream(ruleset_fd, STDOUT_FILENO, out, e) < 0)
		return -1;
	return allow_stream(ruleset_fd, STDERR_FILENO, out, e);
}

/* An image may set the home directory to "/"; that must not make a read-only root writable. */
static bool is_root(const char *path)
{
	struct stat root, st;

	return stat("/", &root) == 0 && stat(path, &st) == 0 && root.st_dev == st.st_dev &&
	       root.st_ino == st.st_ino;
}

static int allow_writable_places(int ruleset_fd, const struct policy *p, uint64_t all,
				 struct err *e)
{
	for (const char *const *path = rootfs_always_writable; *path; path++)
		if (allow_path(ruleset_fd, *path, all, e) < 0)
			return -1;
	if (allow_path(ruleset_fd, "/dev", all, e) < 0)
		return -1;
	if (!p->home && !is_root(p->home_dir) && allow_path(ruleset_fd, p->home_dir, all, e) < 0)
		return -1;
	if (p->workspace && allow_path(ruleset_fd, p->workspace, all, e) < 0)
		return -1;
	for (unsigned i = 0; i < p->mount_count; i++)
		if (!p->mounts[i].is_read_only &&
		    allow_path(ruleset_fd, p->mounts[i].target, all, e) < 0)
			return -1;
	for (unsigned i = 0; i < p->tmpfs_count; i++)
		if (allow_path(ruleset_fd, p->tmpfs[i].target, all, e) < 0)
			return -1;
	return 0;
}

/* mq_open() reaches queues through a kernel-internal mount, which needs a rule of its own. */
static int allow_queues(int ruleset_fd, uint64_t all, struct err *e)
{
	if (allow_path(ruleset_fd, "/dev/mqueue", all, e) < 0)
		return e->sys == ENOENT ? 0 : -1;
	return 0;
}

/*
 * For each open() the kernel walks from the file up to a rule that grants what is asked for. The
 * root's rule grants everything already; one where many files lie only ends the walk earlier, so a
 * failure changes nothing.
 */
static void shorten_walks(int ruleset_fd, const struct policy *p, uint64_t all)
{
	struct err ignored;

	if (p->workspace)
		(void)!allow_path(ruleset_fd, p->workspace, all, &ignored);
	if (p->home)
		(void)!allow_path(ruleset_fd, p->home, all, &ignored);
	for (unsigned i = 0; i < p->mount_count; i++)
		(void)!allow_path(ruleset_fd, p->mounts[i].target, all, &ignored);
}

static int allow_files(int ruleset_fd, const struct policy *p, uint64_t all, struct err *e)
{
	if (allow_path(ruleset_fd, "/", p->is_read_only ? ACCESS_READ : all, e) < 0)
		return -1;
	if (!p->is_read_only)
		shorten_walks(ruleset_fd, p, all);
	if (p->is_read_only && allow_writable_places(ruleset_fd, p, all, e) < 0)
		return -1;
	if (allow_queues(ruleset_fd, all, e) < 0)
		return -1;
	return allow_streams(ruleset_fd, all, e);
}

int landlock_restrict(const struct policy *p, unsigned parts, struct err *e)
{
	int abi = landlock_abi();
	struct ruleset r = ruleset_for(abi);
	cleanup_fd int ruleset_fd = -1;

	/* the caller found Landlock before: a failing query must not drop the protection */
	if (abi == 0)
		return err_sys(e, errno, "ask for the version of Landlock");
	if (!wall_stands(WALL_LANDLOCK_FILES))
		parts &= ~(unsigned)LANDLOCK_FILES;
	/* a layer that does not handle REFER denies every rename from one directory to another */
	if (!(parts & LANDLOCK_FILES))
		r.handled_fs &= ACCESS_REFER;
	if (!(parts & LANDLOCK_SCOPES) || !wall_stands(WALL_LANDLOCK_SCOPES))
		r.scoped = 0;
	if (!(parts & LANDLOCK_FILES) && r.handled_net == 0 && r.scoped == 0)
		return 0; /* kernel without scopes */
	ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &r, sizeof(r), 0);
	if (ruleset_fd < 0)
		return err_sys(e, errno, "create a Landlock ruleset");
	if (parts & LANDLOCK_FILES
		    ? allow_files(ruleset_fd, p, r.handled_fs, e) < 0
		    : r.handled_fs && allow_path(ruleset_fd, "/", r.handled_fs, e) < 0)
		return -1;
	if (syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0)
		return err_sys(e, errno, "enter the Landlock domain");
	return 0;
}
