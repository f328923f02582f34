/*
 * surroundings - describes what a process passes on to its children; see surroundings.h.
 *
 * A claim makes about thirty system calls for this. An unreadable file is marked in the text, so
 * that it must be unreadable for the other side too.
 */
#include "pool/surroundings.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_SHOWN 256
#define CPU_MASK_BYTES 1024
#define VALUE_MAX_BYTES 256
#define CGROUPS_MAX_BYTES 16384u
#define CGROUP_LEVELS_MAX 32u
#define IOPRIO_WHO_PROCESS 1

static void add_limits(struct buf *out)
{
	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		struct rlimit limit = { 0 };

		(void)getrlimit(resource, &limit);
		buf_addf(out, "%llu/%llu ", (unsigned long long)limit.rlim_cur,
			 (unsigned long long)limit.rlim_max);
	}
}

static void add_identity(struct buf *out)
{
	static const char *const spaces[] = { "net", "mnt", "user", "pid", "cgroup" };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };
	gid_t groups[GROUPS_SHOWN];
	int group_count = getgroups(GROUPS_SHOWN, groups);

	buf_addf(out, "%d:", group_count);
	for (int i = 0; i < group_count; i++)
		buf_addf(out, "%u,", (unsigned)groups[i]);
	for (size_t i = 0; i < COUNT_OF(spaces); i++) {
		char path[32];
		struct stat st = { 0 };

		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", spaces[i]);
		(void)stat(path, &st);
		buf_addf(out, " %llu", (unsigned long long)st.st_ino);
	}
	(void)syscall(SYS_capget, &header, caps);
	for (size_t i = 0; i < COUNT_OF(caps); i++)
		buf_addf(out, " %x,%x,%x", caps[i].effective, caps[i].permitted,
			 caps[i].inheritable);
	buf_addf(out, " %d", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

/* ---- scheduling ---- */

static void add_file(struct buf *out, const char *path)
{
	char value[VALUE_MAX_BYTES];
	int r = file_read_line(AT_FDCWD, path, value, sizeof(value));

	buf_addf(out, " %s", r < 0 ? "-" : value);
}

static void add_priorities(struct buf *out)
{
	unsigned long mask[CPU_MASK_BYTES / sizeof(unsigned long)] = { 0 };
	struct sched_param param = { 0 };
	long mask_bytes = syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);

	for (long i = 0; i < mask_bytes / (long)sizeof(mask[0]); i++)
		buf_addf(out, " %lx", mask[i]);
	/* by number: musl's wrappers return ENOSYS, because Linux's calls differ from POSIX */
	(void)syscall(SYS_sched_getparam, 0, &param);
	buf_addf(out, " nice %d", getpriority(PRIO_PROCESS, 0));
	buf_addf(out, " scheduler %ld/%d", syscall(SYS_sched_getscheduler, 0),
		 param.sched_priority);
	buf_addf(out, " io %ld", syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0));
	add_file(out, "/proc/self/oom_score_adj");
	add_file(out, "/proc/self/attr/current");
}

/* ---- cgroups ---- */

/* Files with a limit, and their content when there is no limit. */
struct limiter {
	const char *file;
	const char *unlimited; /* a number: equal or larger values are unlimited */
};

static const struct limiter limiters[] = {
	{ "memory.max", "max" },
	{ "memory.high", "max" },
	{ "memory.swap.max", "max" },
	{ "memory.limit_in_bytes", "4611686018427387904" },
	{ "memory.memsw.limit_in_bytes", "4611686018427387904" },
	{ "pids.max", "max" },
	{ "cpu.max", "max 100000" },
	{ "cpu.weight", "100" },
	{ "cpu.cfs_quota_us", "-1" },
	{ "cpu.shares", "1024" },
	{ "io.max", "" },
	{ "blkio.throttle.read_bps_device", "" },
	{ "blkio.throttle.write_bps_device", "" },
};

static bool is_unlimited(const struct limiter *l, const char *value)
{
	if (strcmp(value, l->unlimited) == 0)
		return true;
	/* cgroup v1 rounds "no limit" down to whole pages */
	return strlen(l->unlimited) > 10 && l->unlimited[0] != 'm' &&
	       strtoull(value, NULL, 10) >= strtoull(l->unlimited, NULL, 10);
}

static void add_group(struct buf *out, const char *path)
{
	cleanup_fd int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < COUNT_OF(limiters); i++) {
		char value[VALUE_MAX_BYTES];

		if (file_read_line(fd, limiters[i].file, value, sizeof(value)) == 0 &&
		    !is_unlimited(&limiters[i], value))
			buf_addf(out, " %s/%s=%s", path, limiters[i].file, value);
	}
}

/* "5:memory:/a/b" or "0::/a/b": from the innermost group up; the root has no limits. */
static void add_hierarchy(struct buf *out, char *line)
{
	char *controllers = strchr(line, ':');
	char *group = controllers ? strchr(controllers + 1, ':') : NULL;
	struct stat st;

	if (!group || strncmp(controllers + 1, "name=", 5) == 0)
		return;
	*group++ = '\0';
	controllers++;
	for (unsigned i = 0; i < CGROUP_LEVELS_MAX && group[0] && strcmp(group, "/") != 0; i++) {
		cleanup_free char *path =
			controllers[0] ? mem_format("/sys/fs/cgroup/%s%s", controllers, group)
			: stat("/sys/fs/cgroup/cgroup.controllers", &st) == 0
				? mem_format("/sys/fs/cgroup%s", group)
				: mem_format("/sys/fs/cgroup/unified%s", group);

		add_group(out, path);
		*strrchr(group, '/') = '\0';
	}
}

void surroundings_format_cgroups(struct buf *out)
{
	cleanup_free char *text = NULL;
	size_t len = 0;

	if (file_read_at(AT_FDCWD, "/proc/self/cgroup", CGROUPS_MAX_BYTES, &text, &len) == 0)
		buf_add_text(out, text);
}

void surroundings_format_limits(const char *cgroups, struct buf *out)
{
	cleanup_free char *text = mem_dup(cgroups);
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (line[0])
			add_hierarchy(out, line);
}

bool surroundings_format(struct buf *out)
{
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0)
		return false;
	add_limits(out);
	add_identity(out);
	add_priorities(out);
	return !out->is_cut;
}
