/*
 * limitfiles - files that show a sandbox its limits; see limitfiles.h.
 *
 * Theory of operation. The files are created in a directory and bind-mounted from there. They are
 * the same for all sandboxes with the same limits, and creating them takes a fifth of a
 * millisecond, so state/limitcache keeps the directory. It contains
 *
 *   sys       bound to /sys: the CPUs, and an empty directory for /sys/fs/cgroup
 *   cgroup    the content of /sys/fs/cgroup on cgroup v1, or if the caller may create no groups
 *   meminfo, cpuinfo, cgroups   bound over those of /proc
 *
 * On v2 a cgroup2 file system is mounted at /sys/fs/cgroup. Because the sandbox has a cgroup
 * namespace, its root is the sandbox's own group, and the kernel's files are always correct.
 * Otherwise the files in `cgroup` imitate the layout of v2. Java checks the type of the file system
 * mounted there, not just the files: so a cgroup2 is mounted and the files are bound over it.
 * /proc/cgroups, which would say that the controllers belong to v1, is covered for the same reason.
 *
 * CPUs keep their host numbers: programs index tables by the number of the CPU they run on, and
 * size these tables by `possible`.
 *
 * /proc/stat and /proc/loadavg remain the host's: programs read them for changing values, and
 * static files would freeze every meter.
 */
#include "host/limitfiles.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/wall.h"
#include "host/mount.h"
#include "host/rlimits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define CPU_DIR "sys/devices/system/cpu"
#define CGROUP_DIR "sys/fs/cgroup"
#define LIST_MAX_BYTES 4096u /* a CPU list such as "0-3,8" */
#define CPUINFO_MAX_BYTES (4u << 20)
#define CPUINFO_READ_BYTES 4096u /* enough of the host's file for its first CPU with all flags */

/* ---- texts ---- */

static void format_limit(struct buf *out, uint64_t value)
{
	if (value)
		buf_addf(out, "%" PRIu64 "\n", value);
	else
		buf_add_text(out, "max\n");
}

static void format_cpu_max(struct buf *out, uint64_t cpus_milli)
{
	if (cpus_milli)
		buf_addf(out, "%" PRIu64 " %u\n", cpus_milli * CGROUP_CPU_PERIOD_US / 1000,
			 CGROUP_CPU_PERIOD_US);
	else
		buf_addf(out, "max %u\n", CGROUP_CPU_PERIOD_US);
}

/* Writes a CPU list such as "0-3,8". */
static void format_cpus(struct buf *out, const cpu_set_t *set)
{
	const char *comma = "";

	for (int first = 0; first < CPU_SETSIZE; first++) {
		int last = first;

		if (!CPU_ISSET(first, set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
			last++;
		buf_addf(out, "%s%d", comma, first);
		if (last > first)
			buf_addf(out, "-%d", last);
		comma = ",";
		first = last;
	}
	buf_add_text(out, "\n");
}

static void parse_cpus(const char *list, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10);
		unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, ret);
		list = end + (*end == ',');
	}
}

/* Shows the memory of an idle machine: a file that is written once cannot hold changing values. */
static void format_meminfo(struct buf *out, uint64_t memory_bytes)
{
	struct sysinfo machine = { 0 };
	char sums[128];
	uint64_t kib;

	/* a limit above the host's memory is not a limit */
	if (sysinfo(&machine) == 0 && (uint64_t)machine.totalram * machine.mem_unit < memory_bytes)
		memory_bytes = (uint64_t)machine.totalram * machine.mem_unit;
	kib = memory_bytes / 1024;
	(void)snprintf(sums, sizeof(sums),
		       "MemTotal:       %8" PRIu64 " kB\nMemFree:        %8" PRIu64 " kB\n"
		       "MemAvailable:   %8" PRIu64 " kB\n",
		       kib, kib, kib);
	buf_add_text(out, sums);
	buf_add_text(out, "Buffers:               0 kB\nCached:                0 kB\n"
			  "SwapCached:            0 kB\nActive:                0 kB\n"
			  "Inactive:              0 kB\nSwapTotal:             0 kB\n"
			  "SwapFree:              0 kB\nDirty:                 0 kB\n"
			  "Writeback:             0 kB\nAnonPages:             0 kB\n"
			  "Mapped:                0 kB\nShmem:                 0 kB\n"
			  "Slab:                  0 kB\nSReclaimable:          0 kB\n");
}

/* Repeats the first block of `text` for each CPU with its number. False: no such block. */
static bool format_cpuinfo(struct buf *out, const char *text, const cpu_set_t *set)
{
	const char *number = strchr(text, ':'), *end = strstr(text, "\n\n");
	const char *rest = number ? strchr(number, '\n') : NULL;

	if (strncmp(text, "processor", 9) != 0 || !rest || !end || rest > end)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, set))
			continue;
		buf_addf(out, "%.*s: %d", (int)(number - text), text, cpu);
		buf_add(out, rest, (size_t)(end + 2 - rest));
	}
	return !out->is_cut;
}

/* False: the file is not needed. */
static bool format_file(enum limitfiles_file file, const struct limitfiles_figures *f,
			const char *cpuinfo, struct buf *out)
{
	switch (file) {
	case LIMITFILES_ONLINE:
		format_cpus(out, &f->usable);
		return CPU_COUNT(&f->usable) > 0;
	case LIMITFILES_MEMORY_MAX:
		format_limit(out, f->memory_bytes);
		return true;
	case LIMITFILES_CPU_MAX:
		format_cpu_max(out, f->cpus_milli);
		return true;
	case LIMITFILES_PIDS_MAX:
		format_limit(out, f->pids_count ? f->pids_count + RLIMITS_INIT_COUNT : 0);
		return true;
	case LIMITFILES_MEMINFO:
		format_meminfo(out, f->memory_bytes);
		return f->memory_bytes > 0;
	case LIMITFILES_CPUINFO:
		return cpuinfo[0] && format_cpuinfo(out, cpuinfo, &f->usable);
	case LIMITFILES_COUNT:
		break;
	}
	return false;
}

/* ---- creating them ---- */

static const char *const path_of[LIMITFILES_COUNT] = {
	[LIMITFILES_ONLINE] = CPU_DIR "/online", [LIMITFILES_MEMORY_MAX] = "cgroup/memory.max",
	[LIMITFILES_CPU_MAX] = "cgroup/cpu.max", [LIMITFILES_PIDS_MAX] = "cgroup/pids.max",
	[LIMITFILES_MEMINFO] = "meminfo",        [LIMITFILES_CPUINFO] = "cpuinfo",
};

void limitfiles_init(struct limitfiles *l)
{
	for (unsigned i = 0; i < LIMITFILES_COUNT; i++)
		l->fd[i] = -1;
}

void limitfiles_done(struct limitfiles *l)
{
	for (unsigned i = 0; i < LIMITFILES_COUNT; i++)
		cleanup_closep(&l->fd[i]);
}

/*
 * Reads up to the empty line after the first block; the kernel generates no more than is read.
 * Empty if there is no such block: other machines have other forms.
 */
static int read_cpuinfo(char out[CPUINFO_READ_BYTES], struct err *e)
{
	cleanup_fd int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	for (out[0] = '\0'; n > 0 && !strstr(out, "\n\n"); out[len] = '\0') {
		size_t left = CPUINFO_READ_BYTES - 1 - len;

		n = left > 0 ? read(fd, out + len, left < 512 ? left : 512) : 0;
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		return err_sys(e, errno, "read /proc/cpuinfo");
	if (!strstr(out, "\n\n"))
		out[0] = '\0';
	return 0;
}

static int make_text(int dir_fd, const char *path, const char *text, struct err *e)
{
	int r = file_create_at(dir_fd, path, 0444, text);

	return r < 0 ? err_sys(e, -r, "write '%s' for the sandbox", path) : 0;
}

static int make_dir(int dir_fd, const char *path, struct err *e)
{
	return mkdirat(dir_fd, path, 0755) < 0
		       ? err_sys(e, errno, "create '%s' for the sandbox", path)
		       : 0;
}

/* Copies a CPU list of the host and parses it into *ret; an empty set if the host has none. */
static int copy_list(int dir_fd, const char *path, cpu_set_t *ret, struct err *e)
{
	char source[64], text[LIST_MAX_BYTES + 1] = "";

	(void)snprintf(source, sizeof(source), "/%s", path);
	if (file_read_line(AT_FDCWD, source, text, LIST_MAX_BYTES) < 0)
		text[0] = '\0';
	parse_cpus(text, ret);
	if (CPU_COUNT(ret) == 0)
		return 0;
	(void)strcat(text, "\n");
	return make_text(dir_fd, path, text, e);
}

/* Creates a directory for each CPU, because glibc before 2.35 counts these. */
static int make_cpus(int dir_fd, cpu_set_t *ret_present, struct err *e)
{
	cpu_set_t ignored;
	char path[48];

	if (copy_list(dir_fd, CPU_DIR "/possible", &ignored, e) < 0 ||
	    copy_list(dir_fd, CPU_DIR "/present", ret_present, e) < 0)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		(void)snprintf(path, sizeof(path), CPU_DIR "/cpu%d", cpu);
		if (CPU_ISSET(cpu, ret_present) && make_dir(dir_fd, path, e) < 0)
			return -1;
	}
	return 0;
}

/* Hard links under v1's file names, which node reads on a host with v1. */
static int link_v1_names(int dir_fd, struct err *e)
{
	if (make_dir(dir_fd, "cgroup/memory", e) < 0)
		return -1;
	if (linkat(dir_fd, "cgroup/memory.max", dir_fd, "cgroup/memory/memory.limit_in_bytes", 0) <
		    0 ||
	    linkat(dir_fd, "cgroup/memory.max", dir_fd, "cgroup/memory/memory.soft_limit_in_bytes",
		   0) < 0)
		return err_sys(e, errno, "create 'cgroup/memory' for the sandbox");
	return 0;
}

static int make_limits(struct limitfiles *l, int dir_fd, const struct limitfiles_figures *f,
		       const char *cpuinfo, struct err *e)
{
	for (unsigned i = 0; i < LIMITFILES_COUNT; i++) {
		cleanup_buf struct buf text;
		int r;

		buf_init(&text, CPUINFO_MAX_BYTES);
		if (!format_file(i, f, cpuinfo, &text))
			continue;
		l->fd[i] = openat(dir_fd, path_of[i], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
		r = l->fd[i] < 0 ? -errno : file_write_all(l->fd[i], text.bytes, text.len);
		if (r < 0)
			return err_sys(e, -r, "write '%s' for the sandbox", path_of[i]);
	}
	return 0;
}

int limitfiles_make(struct limitfiles *l, int dir_fd, const struct limitfiles_figures *f,
		    struct err *e)
{
	static const char *const dirs[] = {
		"sys", "sys/devices", "sys/devices/system", CPU_DIR, "sys/fs", CGROUP_DIR, "cgroup",
	};
	char cpuinfo[CPUINFO_READ_BYTES] = "";
	cpu_set_t present;
	bool has_fewer;

	for (size_t i = 0; i < COUNT_OF(dirs); i++)
		if (make_dir(dir_fd, dirs[i], e) < 0)
			return -1;
	if (make_cpus(dir_fd, &present, e) < 0)
		return -1;
	has_fewer = CPU_COUNT(&f->usable) > 0 && CPU_COUNT(&f->usable) < CPU_COUNT(&present);
	if ((has_fewer && read_cpuinfo(cpuinfo, e) < 0) ||
	    make_limits(l, dir_fd, f, cpuinfo, e) < 0)
		return -1;
	if (!f->has_v1)
		return 0;
	if (f->memory_bytes && link_v1_names(dir_fd, e) < 0)
		return -1;
	return make_text(dir_fd, "cgroups",
			 "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
			 "cpuset\t0\t1\t1\ncpu\t0\t1\t1\ncpuacct\t0\t1\t1\n"
			 "memory\t0\t1\t1\npids\t0\t1\t1\n",
			 e);
}

/* ---- mounting them ---- */

/* Bind-mounts dir_fd/name at `target`; a name that was not created is skipped. */
static int show(int dir_fd, const char *name, int root_fd, const char *target, unsigned flags,
		struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(dir_fd, name, 0, &tree_fd, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	if (mount_restrict(tree_fd, flags, e) < 0)
		return -1;
	return mount_attach_own(tree_fd, root_fd, target, e);
}

/* Mounts a cgroup2; *ret_is_shown is false if the namespace may not, or the kernel has none. */
static int show_cgroup2(int root_fd, unsigned flags, bool *ret_is_shown, struct err *e)
{
	cleanup_fd int fd = -1;

	*ret_is_shown = false;
	if (!wall_stands(WALL_CGROUP_NAMESPACE)) /* it would show the host's groups */
		return 0;
	if (mount_new("cgroup2", NULL, flags, &fd, e) < 0)
		return e->sys == EPERM || e->sys == ENODEV ? 0 : -1;
	*ret_is_shown = true;
	return mount_attach_own(fd, root_fd, CGROUP_DIR, e);
}

int limitfiles_show(int dir_fd, int root_fd, enum cgroup_kind kind, struct err *e)
{
	unsigned flags = MOUNT_NO_EXEC;
	bool is_shown = false;

	if (wall_stands(WALL_LIMIT_FILES_READ_ONLY))
		flags |= MOUNT_READ_ONLY;
	if (show(dir_fd, "sys", root_fd, "sys", flags, e) < 0 ||
	    show_cgroup2(root_fd, flags, &is_shown, e) < 0 ||
	    show(dir_fd, "meminfo", root_fd, "proc/meminfo", flags, e) < 0 ||
	    show(dir_fd, "cpuinfo", root_fd, "proc/cpuinfo", flags, e) < 0)
		return -1;
	if (is_shown && kind == CGROUP_V2)
		return 0;
	if (show(dir_fd, "cgroup", root_fd, CGROUP_DIR, flags, e) < 0)
		return -1;
	return show(dir_fd, "cgroups", root_fd, "proc/cgroups", flags, e);
}

/* ---- changing them ---- */

static void rewrite(int fd, const struct buf *text)
{
	if (pwrite(fd, text->bytes, text->len, 0) == (ssize_t)text->len)
		(void)!ftruncate(fd, (off_t)text->len);
}

/* Reads the file written before, to reuse its first block. */
static bool read_back(int fd, char out[CPUINFO_READ_BYTES])
{
	ssize_t n = fd < 0 ? -1 : pread(fd, out, CPUINFO_READ_BYTES - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

void limitfiles_rewrite(const struct limitfiles *l, struct limitfiles_figures *f)
{
	char cpuinfo[CPUINFO_READ_BYTES];
	bool has_cpuinfo = read_back(l->fd[LIMITFILES_CPUINFO], cpuinfo);

	if (sched_getaffinity(0, sizeof(f->usable), &f->usable) < 0)
		CPU_ZERO(&f->usable);
	for (unsigned i = 0; i < LIMITFILES_COUNT; i++) {
		cleanup_buf struct buf text;

		buf_init(&text, CPUINFO_MAX_BYTES);
		if (l->fd[i] >= 0 && format_file(i, f, has_cpuinfo ? cpuinfo : NULL, &text))
			rewrite(l->fd[i], &text);
	}
}
