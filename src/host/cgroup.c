/*
 * cgroup - resource limits on a whole sandbox; see cgroup.h.
 *
 * Theory of operation. cgroup_plan() finds one parent directory and creates all groups relative to
 * it: on v1 the caller's own group in each hierarchy; on v2 the parent of the caller's own group,
 * because v2 (except in its root group) does not allow processes in a group whose children have
 * controllers.
 *
 * The child joins its groups itself. On v1 it writes "0" to `tasks` through a descriptor that the
 * parent opened: the kernel checks the permissions of the opener, and unlike `cgroup.procs` or a
 * write by the parent this write takes no global lock (20 microseconds against 6 to 15 milliseconds
 * after idle). On v2 clone3() creates the child in its group.
 */
#include "host/cgroup.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "host/blockdev.h"
#include "host/rlimits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define CGROUP_FS "/sys/fs/cgroup"
#define CGROUP2_MAGIC 0x63677270
#define TCP_SHARE 4 /* TCP buffers may use this fraction of the memory limit, in addition to it */
#define SELF_MAX_BYTES 16384u
#define VALUE_MAX_BYTES 128u
#define REMOVE_TRIES 200u
#define REMOVE_PAUSE_NS 5000000l
#define PROCS_MAX_BYTES (1u << 20)
#define NAME_PREFIX "agentkernel-"
#define FREEZE_TRIES 4000u
#define FREEZE_PAUSE_NS 500000l
#define THAW_TRIES 100u
#define SWEEP_AGE_S 2
#define SWEEP_AT_START_MAX 256u

static const struct {
	const char *v1, *v2;
} controller_name[] = {
	[CGROUP_MEMORY] = { "memory", "memory" }, [CGROUP_PIDS] = { "pids", "pids" },
	[CGROUP_CPU] = { "cpu", "cpu" },          [CGROUP_CPUACCT] = { "cpuacct", NULL },
	[CGROUP_IO] = { "blkio", "io" },          [CGROUP_FREEZER] = { "freezer", NULL },
};

unsigned cgroup_needs(const struct policy *p)
{
	unsigned needs = 0;

	if (p->memory_bytes)
		needs |= 1u << CGROUP_MEMORY;
	if (p->pids_count)
		needs |= 1u << CGROUP_PIDS;
	if (p->cpus_milli)
		needs |= 1u << CGROUP_CPU;
	if (p->cpu_time_ms)
		needs |= 1u << CGROUP_CPUACCT;
	if (p->io_read_bytes_per_s || p->io_write_bytes_per_s)
		needs |= 1u << CGROUP_IO;
	return needs;
}

void cgroup_init(struct cgroup *c)
{
	c->kind = CGROUP_NONE;
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		c->parent_fd[i] = c->dir_fd[i] = c->join_fd[i] = -1;
}

static int choose_name(struct cgroup *c, struct err *e)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_sys(e, errno, "get random bytes");
	(void)snprintf(c->name, sizeof(c->name), NAME_PREFIX "%d-%016" PRIx64, (int)getpid(),
		       number);
	return 0;
}

/*
 * Finds the caller's group in the hierarchy of `controller` ("" for v2) in the text of
 * /proc/self/cgroup, whose lines are "4:memory:/path" or "0::/path".
 */
static bool find_own_path(const char *self, const char *controller, char *out, size_t out_size)
{
	size_t name_len = strlen(controller);

	for (const char *line = self; *line;) {
		const char *names = strchr(line, ':');
		const char *path = names ? strchr(names + 1, ':') : NULL;
		size_t path_len;

		if (!path)
			return false;
		path_len = strcspn(path + 1, "\n");
		for (const char *n = names + 1; n <= path; n += strcspn(n, ",:") + 1) {
			if (strcspn(n, ",:") != name_len || strncmp(n, controller, name_len) != 0)
				continue;
			if (path_len >= out_size)
				return false;
			memcpy(out, path + 1, path_len);
			out[path_len] = '\0';
			return true;
		}
		line = path + 1 + path_len;
		line += *line == '\n';
	}
	return false;
}

static int find_v2_mount(const char *path, bool *ret)
{
	struct statfs fs;

	*ret = false;
	if (statfs(path, &fs) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret = fs.f_type == CGROUP2_MAGIC;
	return 0;
}

/* ---- limits ---- */

/* On v2 a single group carries all controllers. */
static int limit_fd(const struct cgroup *c, enum cgroup_controller controller)
{
	return c->dir_fd[c->kind == CGROUP_V2 ? 0 : controller];
}

static int write_limit(const struct cgroup *c, enum cgroup_controller controller, const char *file,
		       const char *value, struct err *e)
{
	int r = file_write_at(limit_fd(c, controller), file, value);

	if (r < 0)
		return err_sys(e, -r, "set cgroup limit %s to %s", file, value);
	return 0;
}

static int set_memory(const struct cgroup *c, const struct policy *p, struct err *e)
{
	bool is_v2 = c->kind == CGROUP_V2;
	char value[VALUE_MAX_BYTES];
	const char *limit;
	int r;

	if (!p->memory_bytes)
		return 0;
	(void)snprintf(value, sizeof(value), "%" PRIu64, p->memory_bytes);
	limit = is_v2 ? "memory.max" : "memory.limit_in_bytes";
	r = file_write_at(limit_fd(c, CGROUP_MEMORY), limit, value);
	/* raised above memory plus swap, which may never be below memory */
	if (r == -EINVAL && !is_v2 &&
	    file_write_at(limit_fd(c, CGROUP_MEMORY), "memory.memsw.limit_in_bytes", value) == 0)
		r = file_write_at(limit_fd(c, CGROUP_MEMORY), limit, value);
	if (r < 0)
		return err_sys(e, -r, "set cgroup limit %s to %s", limit, value);
	/* No swap. The file is missing where the kernel does not account swap. */
	r = file_write_at(limit_fd(c, CGROUP_MEMORY),
			  is_v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes",
			  is_v2 ? "0" : value);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "limit swap to none");
	if (is_v2)
		return 0;
	/* v1 accounts TCP buffers separately */
	(void)snprintf(value, sizeof(value), "%" PRIu64, p->memory_bytes / TCP_SHARE);
	r = file_write_at(limit_fd(c, CGROUP_MEMORY), "memory.kmem.tcp.limit_in_bytes", value);
	if (r < 0 && r != -ENOENT)
		return err_sys(e, -r, "limit the memory of TCP buffers");
	return 0;
}

static int set_pids(const struct cgroup *c, const struct policy *p, struct err *e)
{
	char value[VALUE_MAX_BYTES];

	if (!p->pids_count)
		return 0;
	(void)snprintf(value, sizeof(value), "%" PRIu64, p->pids_count + RLIMITS_INIT_COUNT);
	return write_limit(c, CGROUP_PIDS, "pids.max", value, e);
}

static int set_cpu(const struct cgroup *c, const struct policy *p, struct err *e)
{
	uint64_t quota = p->cpus_milli * CGROUP_CPU_PERIOD_US / 1000;
	char value[VALUE_MAX_BYTES];

	if (!p->cpus_milli)
		return 0;
	if (c->kind == CGROUP_V2) {
		(void)snprintf(value, sizeof(value), "%" PRIu64 " %u", quota, CGROUP_CPU_PERIOD_US);
		return write_limit(c, CGROUP_CPU, "cpu.max", value, e);
	}
	(void)snprintf(value, sizeof(value), "%" PRIu64, quota);
	return write_limit(c, CGROUP_CPU, "cpu.cfs_quota_us", value, e);
}

static int set_io_of(const struct cgroup *c, const struct policy *p, const char *device,
		     struct err *e)
{
	const struct {
		uint64_t rate;
		const char *v1_file, *v2_key;
	} ways[] = {
		{ p->io_read_bytes_per_s, "blkio.throttle.read_bps_device", "rbps" },
		{ p->io_write_bytes_per_s, "blkio.throttle.write_bps_device", "wbps" },
	};
	char value[VALUE_MAX_BYTES];

	for (size_t i = 0; i < COUNT_OF(ways); i++) {
		if (!ways[i].rate)
			continue;
		if (c->kind == CGROUP_V2)
			(void)snprintf(value, sizeof(value), "%s %s=%" PRIu64, device,
				       ways[i].v2_key, ways[i].rate);
		else
			(void)snprintf(value, sizeof(value), "%s %" PRIu64, device, ways[i].rate);
		if (write_limit(c, CGROUP_IO, c->kind == CGROUP_V2 ? "io.max" : ways[i].v1_file,
				value, e) < 0)
			return -1;
	}
	return 0;
}

/* Finds every disk that holds files visible in the sandbox. */
static int find_disks(const struct cgroup *c, const struct policy *p, struct blockdev_list *disks,
		      struct err *e)
{
	const char *const paths[] = { "/usr",       "/opt",  "/nix",      "/etc",
				      p->workspace, p->home, c->disk_path };

	for (size_t i = 0; i < COUNT_OF(paths); i++)
		if (paths[i] && blockdev_add(disks, paths[i], e) < 0)
			return -1;
	for (unsigned i = 0; i < p->mount_count; i++)
		if (blockdev_add(disks, p->mounts[i].source, e) < 0)
			return -1;
	return 0;
}

static int set_io(const struct cgroup *c, const struct policy *p, struct err *e)
{
	struct blockdev_list disks = { 0 };

	if (!p->io_read_bytes_per_s && !p->io_write_bytes_per_s)
		return 0;
	if (find_disks(c, p, &disks, e) < 0)
		return -1;
	for (unsigned i = 0; i < disks.count; i++)
		if (set_io_of(c, p, disks.device[i], e) < 0)
			return -1;
	return 0;
}

int cgroup_set_limits(const struct cgroup *c, const struct policy *p, struct err *e)
{
	if (set_memory(c, p, e) < 0 || set_pids(c, p, e) < 0)
		return -1;
	return set_cpu(c, p, e) < 0 ? -1 : set_io(c, p, e);
}

/* ---- finding the parent directory ---- */

/* The caller's own group, or the top of the hierarchy if that path is not visible (container). */
static int open_v1_parent(const char *self, const char *controller)
{
	char own[PATH_MAX], path[PATH_MAX + sizeof(CGROUP_FS) + 32];
	int fd;

	if (find_own_path(self, controller, own, sizeof(own))) {
		(void)snprintf(path, sizeof(path), CGROUP_FS "/%s%s", controller, own);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 || errno != ENOENT)
			return fd;
	}
	(void)snprintf(path, sizeof(path), CGROUP_FS "/%s", controller);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A controller that is only in `wants` and is unavailable is skipped. */
static int plan_v1(struct cgroup *c, unsigned needs, unsigned wants, const char *self)
{
	unsigned found = 0;

	c->kind = CGROUP_V1;
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		if (!((needs | wants) & 1u << i))
			continue;
		c->parent_fd[i] = open_v1_parent(self, controller_name[i].v1);
		if (c->parent_fd[i] >= 0 &&
		    faccessat(c->parent_fd[i], ".", W_OK, AT_EACCESS) == 0) {
			found++;
			continue;
		}
		if (needs & 1u << i)
			return -errno;
		cleanup_closep(&c->parent_fd[i]);
	}
	return found ? 0 : -EACCES;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
		if ((p == text || p[-1] == ' ') && (p[len] == ' ' || p[len] == '\0'))
			return true;
	return false;
}

/* Sets *ret to the controllers of `needs` that `file` in the group dir_fd does not list. */
static int find_missing_v2(int dir_fd, const char *file, unsigned needs, unsigned *ret)
{
	char list[VALUE_MAX_BYTES];
	unsigned missing = 0;
	int r = file_read_line(dir_fd, file, list, sizeof(list));

	if (r < 0)
		return r;
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (needs & 1u << i && controller_name[i].v2 &&
		    !has_word(list, controller_name[i].v2))
			missing |= 1u << i;
	*ret = missing;
	return 0;
}

/* Only the real root has no cgroup.type; only it may have processes beside child groups. */
static bool is_v2_root(int dir_fd)
{
	return faccessat(dir_fd, "cgroup.type", F_OK, 0) < 0;
}

/* Plans a sibling of the caller's group, or a child of the root if the caller is in the root. */
static int plan_v2(struct cgroup *c, unsigned needs, const char *self)
{
	char own[PATH_MAX], path[PATH_MAX + sizeof(CGROUP_FS)];
	cleanup_fd int parent_fd = -1;
	unsigned missing = 0;
	bool is_own;
	int r;

	if (!find_own_path(self, "", own, sizeof(own)))
		return -ENOENT;
	is_own = strcmp(own, "/") == 0;
	(void)snprintf(path, sizeof(path), CGROUP_FS "%s", own);
	if (!is_own)
		*strrchr(path, '/') = '\0';
	parent_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0)
		return -errno;
	/* CLONE_INTO_CGROUP also needs write access to the common ancestor's cgroup.procs */
	if (faccessat(parent_fd, ".", W_OK, AT_EACCESS) < 0 ||
	    faccessat(parent_fd, "cgroup.procs", W_OK, AT_EACCESS) < 0)
		return -errno;
	r = find_missing_v2(parent_fd, "cgroup.controllers", needs, &missing);
	if (r < 0 || missing)
		return r < 0 ? r : -EOPNOTSUPP;
	r = find_missing_v2(parent_fd, "cgroup.subtree_control", needs, &missing);
	if (r < 0 || (missing && is_own && !is_v2_root(parent_fd)))
		return r < 0 ? r : -EOPNOTSUPP;
	c->kind = CGROUP_V2;
	c->parent_fd[0] = take_fd(&parent_fd);
	return 0;
}

/* Enables the controllers for the children of parent_fd unless they are enabled already. */
static int enable_v2_controllers(int parent_fd, unsigned needs, struct err *e)
{
	char value[VALUE_MAX_BYTES];
	unsigned missing = needs;

	/* if reading fails, all of `needs` are enabled again, which changes nothing */
	(void)!find_missing_v2(parent_fd, "cgroup.subtree_control", needs, &missing);
	if (!missing)
		return 0;
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		int r;

		if (!(needs & 1u << i) || !controller_name[i].v2)
			continue;
		(void)snprintf(value, sizeof(value), "+%s", controller_name[i].v2);
		r = file_write_at(parent_fd, "cgroup.subtree_control", value);
		if (r < 0)
			return err_sys(e, -r, "hand the %s cgroup controller down",
				       controller_name[i].v2);
	}
	return 0;
}

static const char *why_not(int error)
{
	if (error == -EACCES || error == -EPERM || error == -EROFS)
		return "this user may not create cgroups";
	if (error == -EOPNOTSUPP)
		return "the cgroup controllers are not delegated to this user";
	return "this host has no usable cgroup hierarchy";
}

/*
 * Errors that mean "no cgroups on this host" or "no permission"; any other error may be temporary.
 */
static bool is_absence(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -EACCES || error == -EPERM ||
	       error == -EROFS || error == -EOPNOTSUPP;
}

int cgroup_plan(const struct policy *p, unsigned flags, struct cgroup *ret, const char **ret_why,
		struct err *e)
{
	unsigned wants = flags & CGROUP_WANTS_ALL ? (1u << CGROUP_CONTROLLER_COUNT) - 1 : 0;
	struct cgroup c = { .kind = CGROUP_NONE };
	unsigned needs = cgroup_needs(p);
	cleanup_free char *self = NULL;
	size_t self_len = 0;
	bool is_v2 = false;
	int r;

	cgroup_init(&c);
	cgroup_init(ret);
	*ret_why = NULL;
	if ((needs | wants) == 0)
		return 0;
	if (choose_name(&c, e) < 0)
		return -1;
	r = file_read_at(AT_FDCWD, "/proc/self/cgroup", SELF_MAX_BYTES, &self, &self_len);
	if (r == 0)
		r = find_v2_mount(CGROUP_FS, &is_v2);
	if (r == 0)
		r = is_v2 ? plan_v2(&c, needs, self) : plan_v1(&c, needs, wants, self);
	c.wants = wants;
	c.has_v1 = ret->has_v1 = !is_v2;
	if (r < 0 && !is_absence(r)) {
		cgroup_release(&c);
		return err_sys(e, -r, "find the caller's cgroups");
	}
	if (r < 0) {
		cgroup_release(&c);
		*ret_why = why_not(r);
		return 0;
	}
	*ret = c;
	return 0;
}

/* ---- creating groups ---- */

static int make_group(struct cgroup *c, unsigned i, struct err *e)
{
	mode_t mask = umask(022); /* the sandbox, which has other ids, must see its group */
	int r = mkdirat(c->parent_fd[i], c->name, 0755);
	int error = errno;

	(void)umask(mask);
	if (r < 0)
		return err_sys(e, error, "create a cgroup");
	c->dir_fd[i] = openat(c->parent_fd[i], c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir_fd[i] < 0)
		return err_sys(e, errno, "open the cgroup");
	if (c->kind == CGROUP_V2)
		return 0;
	c->join_fd[i] = openat(c->dir_fd[i], "tasks", O_WRONLY | O_CLOEXEC);
	if (c->join_fd[i] < 0)
		return err_sys(e, errno, "open the cgroup's list of tasks");
	return 0;
}

/* Enables optional controllers one at a time and ignores failures. */
static void try_v2_controllers(int parent_fd, unsigned wants)
{
	struct err ignored;

	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (wants & 1u << i)
			(void)!enable_v2_controllers(parent_fd, 1u << i, &ignored);
}

/*
 * Removes a leftover group if its creator, whose pid is in the name, is dead. A creator in another
 * pid namespace looks dead from here, so a young group is kept: its process may not have joined
 * yet. The kernel refuses to remove a group that has processes.
 */
static void sweep_group(int parent_fd, const char *name)
{
	struct stat st;
	pid_t pid;

	if (strncmp(name, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) != 0)
		return;
	pid = (pid_t)strtol(name + sizeof(NAME_PREFIX) - 1, NULL, 10);
	if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
		return;
	if (fstatat(parent_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_ctime + SWEEP_AGE_S < time(NULL))
		(void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

/* Checks at most `most` entries per directory, so a start stays fast beside thousands of groups. */
static void sweep_parents(const struct cgroup *c, unsigned most)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		int fd = c->parent_fd[i] < 0
				 ? -1
				 : openat(c->parent_fd[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fd < 0 ? NULL : fdopendir(fd);
		const struct dirent *entry;
		unsigned count = 0;

		while (dir && count++ < most && (entry = readdir(dir)))
			sweep_group(c->parent_fd[i], entry->d_name);
		if (dir)
			(void)closedir(dir);
		else
			cleanup_closep(&fd);
	}
}

void cgroup_sweep_beside(const struct cgroup *c)
{
	sweep_parents(c, SWEEP_AT_START_MAX);
}

void cgroup_sweep(void)
{
	const struct policy none = { 0 };
	const char *why;
	struct cgroup c;
	struct err ignored;

	if (cgroup_plan(&none, CGROUP_WANTS_ALL, &c, &why, &ignored) < 0)
		return;
	sweep_parents(&c, UINT_MAX);
	cgroup_release(&c);
}

int cgroup_make(struct cgroup *c, const struct policy *p, struct err *e)
{
	if (c->kind == CGROUP_V2 &&
	    enable_v2_controllers(c->parent_fd[0], cgroup_needs(p), e) < 0) {
		cgroup_release(c);
		return -1;
	}
	if (c->kind == CGROUP_V2)
		try_v2_controllers(c->parent_fd[0], c->wants);
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		if (c->parent_fd[i] < 0 || make_group(c, i, e) == 0)
			continue;
		cgroup_remove(c);
		return -1;
	}
	if (cgroup_set_limits(c, p, e) < 0) {
		cgroup_remove(c);
		return -1;
	}
	return 0;
}

int cgroup_join(const struct cgroup *c, struct err *e)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (c->join_fd[i] >= 0 && write(c->join_fd[i], "0", 1) < 0)
			return err_sys(e, errno, "join the %s cgroup", controller_name[i].v1);
	return 0;
}

int cgroup_clone_fd(const struct cgroup *c)
{
	return c->kind == CGROUP_V2 ? c->dir_fd[0] : -1;
}

void cgroup_release(struct cgroup *c)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		cleanup_closep(&c->parent_fd[i]);
		cleanup_closep(&c->dir_fd[i]);
		cleanup_closep(&c->join_fd[i]);
	}
	c->kind = CGROUP_NONE;
}

void cgroup_format_paths(const struct cgroup *c, struct buf *out)
{
	char link[32], path[PATH_MAX];

	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		ssize_t n;

		if (c->parent_fd[i] < 0)
			continue;
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", c->parent_fd[i]);
		n = readlink(link, path, sizeof(path) - 1);
		if (n <= 0)
			continue;
		path[n] = '\0';
		buf_addf(out, "%s/%s\n", path, c->name);
	}
}

/* Retries: a dead process leaves its group a moment after it was reaped. */
static bool remove_group(int parent_fd, const char *name)
{
	const struct timespec pause = { .tv_nsec = REMOVE_PAUSE_NS };

	for (unsigned i = 0; i < REMOVE_TRIES; i++) {
		if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

/* Returns the group's name, or NULL if this path, read from a file, is not one of our groups. */
static const char *find_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (strncmp(path, CGROUP_FS "/", sizeof(CGROUP_FS)) != 0 || strstr(path, "/../") ||
	    !slash || strncmp(slash + 1, NAME_PREFIX, sizeof(NAME_PREFIX) - 1) != 0)
		return NULL;
	return slash + 1;
}

void cgroup_end_path(const char *path)
{
	cleanup_free char *pids = NULL;
	cleanup_fd int dir_fd = -1;
	char *rest, *line;
	size_t len = 0;

	if (!find_name(path))
		return;
	dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || file_read_at(dir_fd, "cgroup.procs", PROCS_MAX_BYTES, &pids, &len) < 0)
		return;
	rest = pids;
	while ((line = strsep(&rest, "\n"))) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);

		if (pid > 0)
			(void)kill(pid, SIGKILL);
	}
	/* write both files, v1's and v2's: frozen processes die of SIGKILL only once thawed */
	(void)!file_write_at(dir_fd, "freezer.state", "THAWED");
	(void)!file_write_at(dir_fd, "cgroup.freeze", "0");
}

bool cgroup_remove_path(const char *path)
{
	const char *name = find_name(path);
	cleanup_free char *parent = NULL;
	cleanup_fd int parent_fd = -1;

	if (!name)
		return true;
	parent = mem_dup_bytes(path, (size_t)(name - 1 - path));
	parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return parent_fd < 0 || remove_group(parent_fd, name);
}

void cgroup_remove(struct cgroup *c)
{
	for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (c->parent_fd[i] >= 0)
			(void)remove_group(c->parent_fd[i], c->name);
	cgroup_release(c);
}

/* ---- usage ---- */

/* Reads the number after `key` in a file of "key number" lines; "" for a file with one number. */
static bool read_value(int dir_fd, const char *file, const char *key, uint64_t *ret)
{
	cleanup_free char *text = NULL;
	size_t len = 0, key_len = strlen(key);

	if (dir_fd < 0 || file_read_at(dir_fd, file, SELF_MAX_BYTES, &text, &len) < 0)
		return false;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0 || (key_len && line[key_len] != ' '))
			continue;
		*ret = strtoull(line + key_len, NULL, 10);
		return true;
	}
	return false;
}

/* v1: lines of "8:0 Read 4096"; v2: "8:0 rbytes=4096 wbytes=0 ...". */
static void add_io(const char *line, bool is_v2, struct cgroup_usage *u)
{
	uint64_t number = 0;
	char word[16];

	if (is_v2) {
		const char *read_at = strstr(line, "rbytes="), *write_at = strstr(line, "wbytes=");

		u->read_bytes += read_at ? strtoull(read_at + 7, NULL, 10) : 0;
		u->written_bytes += write_at ? strtoull(write_at + 7, NULL, 10) : 0;
		return;
	}
	if (sscanf(line, "%*s %15s %" SCNu64, word, &number) != 2)
		return;
	if (strcmp(word, "Read") == 0)
		u->read_bytes += number;
	else if (strcmp(word, "Write") == 0)
		u->written_bytes += number;
}

static void get_io(const struct cgroup *c, struct cgroup_usage *u)
{
	bool is_v2 = c->kind == CGROUP_V2;
	cleanup_free char *text = NULL;
	char *rest, *line;
	size_t len = 0;

	if (limit_fd(c, CGROUP_IO) < 0 ||
	    file_read_at(limit_fd(c, CGROUP_IO),
			 is_v2 ? "io.stat" : "blkio.throttle.io_service_bytes", SELF_MAX_BYTES,
			 &text, &len) < 0)
		return;
	u->has_io = true;
	rest = text;
	while ((line = strsep(&rest, "\n")))
		add_io(line, is_v2, u);
}

uint64_t cgroup_get_pids_refused(const struct cgroup *c)
{
	uint64_t count = 0;

	(void)read_value(limit_fd(c, CGROUP_PIDS), "pids.events", "max", &count);
	return count;
}

void cgroup_get_usage(const struct cgroup *c, struct cgroup_usage *ret)
{
	bool is_v2 = c->kind == CGROUP_V2;
	int memory_fd = limit_fd(c, CGROUP_MEMORY);

	*ret = (struct cgroup_usage){ 0 };
	if (c->kind == CGROUP_NONE)
		return;
	ret->has_memory = read_value(memory_fd, is_v2 ? "memory.peak" : "memory.max_usage_in_bytes",
				     "", &ret->peak_memory_bytes);
	(void)read_value(memory_fd, is_v2 ? "memory.current" : "memory.usage_in_bytes", "",
			 &ret->memory_bytes);
	(void)read_value(memory_fd, is_v2 ? "memory.events" : "memory.oom_control", "oom_kill",
			 &ret->oom_kill_count);
	ret->has_pids = read_value(limit_fd(c, CGROUP_PIDS), "pids.current", "", &ret->pids_count);
	ret->pids_refused_count = cgroup_get_pids_refused(c);
	ret->has_cpu = cgroup_get_cpu_us(c, &ret->cpu_us);
	get_io(c, ret);
}

void cgroup_set_affinity(const struct cgroup *c, const cpu_set_t *set)
{
	const char *file = c->kind == CGROUP_V2 ? "cgroup.threads" : "tasks";
	int dir_fd = -1;

	for (unsigned i = 0; dir_fd < 0 && i < CGROUP_CONTROLLER_COUNT; i++)
		dir_fd = c->dir_fd[i];
	/* twice: a thread created during the first pass may have inherited the old affinity */
	for (unsigned round = 0; dir_fd >= 0 && round < 2; round++) {
		cleanup_free char *tids = NULL;
		char *rest, *line;
		size_t len = 0;

		if (file_read_at(dir_fd, file, PROCS_MAX_BYTES, &tids, &len) < 0)
			return;
		rest = tids;
		while ((line = strsep(&rest, "\n")))
			if (*line)
				(void)sched_setaffinity((pid_t)strtol(line, NULL, 10), sizeof(*set),
							set);
	}
}

/* ---- freezing ---- */

bool cgroup_can_freeze(const struct cgroup *c)
{
	if (c->kind == CGROUP_V2)
		return faccessat(c->dir_fd[0], "cgroup.freeze", W_OK, AT_EACCESS) == 0;
	return c->kind == CGROUP_V1 && c->dir_fd[CGROUP_FREEZER] >= 0;
}

static bool is_frozen(const struct cgroup *c)
{
	char state[VALUE_MAX_BYTES];
	uint64_t frozen = 0;

	if (c->kind == CGROUP_V2)
		return read_value(c->dir_fd[0], "cgroup.events", "frozen", &frozen) && frozen == 1;
	return file_read_line(c->dir_fd[CGROUP_FREEZER], "freezer.state", state, sizeof(state)) ==
		       0 &&
	       strcmp(state, "FROZEN") == 0;
}

static int set_frozen(const struct cgroup *c, bool is_to_freeze)
{
	if (c->kind == CGROUP_V2)
		return file_write_at(c->dir_fd[0], "cgroup.freeze", is_to_freeze ? "1" : "0");
	return file_write_at(c->dir_fd[CGROUP_FREEZER], "freezer.state",
			     is_to_freeze ? "FROZEN" : "THAWED");
}

int cgroup_thaw(const struct cgroup *c, struct err *e)
{
	const struct timespec pause = { .tv_nsec = FREEZE_PAUSE_NS };
	int r = set_frozen(c, false);

	/* retry: a process that stays frozen cannot even be killed */
	for (unsigned i = 0; r < 0 && i < THAW_TRIES; i++) {
		(void)nanosleep(&pause, NULL);
		r = set_frozen(c, false);
	}
	if (r < 0)
		return err_sys(e, -r, "let the sandbox go on");
	return 0;
}

/* Only groups made with CGROUP_WANTS_ALL are ever frozen; a one-off run saves the write. */
void cgroup_thaw_for_end(const struct cgroup *c)
{
	if (c->wants && c->dir_fd[c->kind == CGROUP_V2 ? 0 : CGROUP_FREEZER] >= 0)
		(void)!set_frozen(c, false);
}

int cgroup_freeze(const struct cgroup *c, struct err *e)
{
	const struct timespec pause = { .tv_nsec = FREEZE_PAUSE_NS };
	int r = 0;

	for (unsigned i = 0; r == 0 && i < FREEZE_TRIES; i++) {
		/* write again each time: v1 misses tasks that enter a wait such as vfork()'s */
		r = set_frozen(c, true);
		if (r == 0 && is_frozen(c))
			return 0;
		(void)nanosleep(&pause, NULL);
	}
	(void)!cgroup_thaw(c, e);
	if (r < 0)
		return err_sys(e, -r, "freeze the sandbox");
	return err_set(e, ERR_TIMEOUT,
		       "the sandbox did not freeze: a process inside does not stop");
}

bool cgroup_get_cpu_us(const struct cgroup *c, uint64_t *ret_us)
{
	uint64_t ns = 0;

	if (c->kind == CGROUP_V2)
		return read_value(c->dir_fd[0], "cpu.stat", "usage_usec", ret_us);
	if (!read_value(c->dir_fd[CGROUP_CPUACCT], "cpuacct.usage", "", &ns))
		return false;
	*ret_us = ns / 1000;
	return true;
}
