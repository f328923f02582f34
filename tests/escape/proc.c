/* proc - /proc, /sys, cgroups, and other processes as /proc shows them; see escape.h. */
#include "escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_back_all(const char *const *paths)
{
	struct tally t = { 0 };

	for (; *paths; paths++)
		tally_write_back(&t, *paths);
	tally_say(&t);
}

static void read_all(const char *const *paths)
{
	struct tally t = { 0 };

	for (; *paths; paths++)
		tally_read(&t, *paths);
	tally_say(&t);
}

static void write_core_pattern(void)
{
	write_back_all((const char *const[]){ "/proc/sys/kernel/core_pattern", NULL });
}

static void write_helpers(void)
{
	write_back_all((const char *const[]){
		"/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
		"/proc/sys/kernel/poweroff_cmd", "/proc/sys/kernel/usermodehelper/inheritable",
		"/sys/kernel/uevent_helper", NULL });
}

static void write_sysrq(void)
{
	struct tally t = { 0 };

	tally_write(&t, "/proc/sysrq-trigger", "h"); /* help: one line in the kernel's log */
	tally_say(&t);
}

static void write_vm(void)
{
	write_back_all((const char *const[]){ "/proc/sys/vm/overcommit_memory",
					      "/proc/sys/vm/swappiness", "/proc/sys/fs/file-max",
					      "/proc/sys/kernel/randomize_va_space",
					      "/proc/sys/kernel/kptr_restrict", NULL });
}

static void write_binfmt(void)
{
	struct tally t = { 0 };

	/* the kernel would refuse the entry after the write was allowed */
	int fd = open("/proc/sys/fs/binfmt_misc/register", O_WRONLY);

	if (fd >= 0)
		say_escaped("binfmt_misc can be written");
	tally_error(&t, errno);
	(void)mkdir(scratch("mnt"), 0755);
	tally_result(&t, mount("none", scratch("mnt"), "binfmt_misc", 0, NULL),
		     "mounting binfmt_misc");
	tally_say(&t);
}

static void write_irq(void)
{
	write_back_all((const char *const[]){ "/proc/irq/default_smp_affinity",
					      "/proc/irq/0/smp_affinity", "/proc/acpi/wakeup",
					      "/proc/mtrr", NULL });
}

static void write_own_namespaces_knobs(void)
{
	write_back_all((const char *const[]){
		"/proc/sys/net/ipv4/ip_default_ttl", "/proc/sys/net/ipv4/conf/lo/forwarding",
		"/proc/sys/net/ipv4/ip_unprivileged_port_start",
		"/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/msgmax", NULL });
}

static void lower_own_oom_score(void)
{
	struct tally t = { 0 };

	tally_write(&t, "/proc/self/oom_score_adj", "-500");
	tally_write(&t, "/proc/1/oom_score_adj", "500");
	tally_write(&t, "/proc/1/comm", "other");
	tally_say(&t);
}

static void write_pressure(void)
{
	struct tally t = { 0 };

	tally_write(&t, "/proc/pressure/memory", "some 500000 2000000");
	tally_write(&t, "/proc/pressure/cpu", "some 500000 2000000");
	tally_say(&t);
}

static void read_kcore(void)
{
	read_all((const char *const[]){ "/proc/kcore", "/dev/mem", "/proc/kpagecount",
					"/proc/kpageflags", NULL });
}

static void read_keys(void)
{
	read_all((const char *const[]){ "/proc/keys", "/proc/key-users", NULL });
}

static void read_symbols(void)
{
	read_all((const char *const[]){ "/proc/kallsyms", NULL });
}

static void read_root_only(void)
{
	read_all((const char *const[]){ "/proc/timer_list", "/proc/vmallocinfo", "/proc/slabinfo",
					"/proc/sched_debug", "/proc/1/stack", NULL });
}

static void read_log(void)
{
	read_all((const char *const[]){ "/dev/kmsg", "/proc/kmsg", NULL });
}

static void read_sys(void)
{
	static const char *const dirs[] = {
		"/sys/firmware",           "/sys/kernel/debug", "/sys/kernel/tracing",
		"/sys/kernel/security",    "/sys/class",        "/sys/kernel/mm",
		"/sys/devices/system/node"
	};
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		tally_result(&t, open(dirs[i], O_RDONLY | O_DIRECTORY), dirs[i]);
	tally_read(&t, "/sys/kernel/vmcoreinfo");
	tally_say(&t);
}

/* Physical addresses of our memory, from which rowhammer attacks start. */
static void read_frame_numbers(void)
{
	static volatile char page[4096];
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	page[0] = 1;
	if (fd < 0)
		say_denied(errno);
	if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)page / 4096 * sizeof(entry))) < 0)
		say_denied(errno);
	if (entry & ((1ull << 55) - 1))
		say_escaped("a page's frame is %llx", (unsigned long long)entry);
	say_denied_as("zeros");
}

/* ---- cgroups ---- */

/* CVE-2022-0492: a program of ours that the kernel would run outside when a cgroup gets empty. */
static void release_agent(void)
{
	static const char *const places[] = {
		"/sys/fs/cgroup/release_agent",         "/sys/fs/cgroup/memory/release_agent",
		"/sys/fs/cgroup/pids/release_agent",    "/sys/fs/cgroup/memory/notify_on_release",
		"/sys/fs/cgroup/devices/devices.allow", "/sys/fs/cgroup/cgroup.procs"
	};
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = open(places[i], O_WRONLY);

		if (fd >= 0)
			say_escaped("%s opens for writing", places[i]);
		tally_error(&t, errno);
	}
	(void)mkdir(scratch("mnt"), 0755);
	tally_result(&t, mount("cgroup", scratch("mnt"), "cgroup", 0, "memory"),
		     "mounting cgroup v1");
	tally_result(&t, mount("cgroup2", scratch("mnt"), "cgroup2", 0, NULL),
		     "mounting cgroup v2");
	tally_say(&t);
}

static void see_cgroup_paths(void)
{
	FILE *f = fopen("/proc/self/cgroup", "r");
	char line[512];

	if (!f)
		say_broken("no /proc/self/cgroup");
	while (fgets(line, sizeof(line), f)) {
		const char *path = strchr(line, '/');

		if (path && strcmp(path, "/\n") != 0)
			say_escaped("our group is called %.60s", path);
	}
	say_denied_as("/");
}

static void write_limits(void)
{
	static const char *const places[] = {
		"/sys/fs/cgroup/memory.max",     "/sys/fs/cgroup/memory/memory.limit_in_bytes",
		"/sys/fs/cgroup/cpu.max",        "/sys/fs/cgroup/pids.max",
		"/sys/fs/cgroup/cgroup.procs",   "/sys/fs/cgroup/cgroup.freeze",
		"/sys/devices/system/cpu/online"
	};
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		tally_write_back(&t, places[i]);
	tally_result(&t, mkdir("/sys/fs/cgroup/own", 0755), "making a group");
	tally_result(&t, unlink("/sys/fs/cgroup/memory.max"), "removing a limit");
	tally_say(&t);
}

/* "memory" is v1's name for the content of the parent directory. */
static void see_other_groups(void)
{
	DIR *dir = opendir("/sys/fs/cgroup");
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    strcmp(entry->d_name, "memory") != 0)
			say_escaped("there is a group '%s'", entry->d_name);
	say_denied_as("none");
}

/* ---- other processes ---- */

static void read_init(void)
{
	static const char *const names[] = { "environ", "auxv",  "maps",   "smaps",
					     "exe",     "stack", "syscall" };
	struct tally t = { 0 };
	char path[64];
	int fd;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)victim(), names[i]);
		tally_read(&t, path);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)victim());
	fd = open(path, O_RDONLY);
	tally_result(&t, fd, "opening its memory");
	tally_say(&t);
}

/* Reads its links, and what they lead to. */
static void follow_init(void)
{
	static const char *const names[] = { "ns/mnt", "ns/net", "ns/user", "root", "cwd" };
	struct tally t = { 0 };
	char path[64], text[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)victim(), names[i]);
		tally_result(&t, open(path, O_RDONLY), path);
	}
	for (int fd = 0; fd < 16; fd++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)victim(), fd);
		tally_result(&t, readlink(path, text, sizeof(text)), path);
		tally_result(&t, open(path, O_RDWR | O_NONBLOCK), path);
	}
	tally_say(&t);
}

static void write_init(void)
{
	static const char *const names[] = { "mem", "oom_score_adj",   "comm",      "uid_map",
					     "exe", "coredump_filter", "clear_refs" };
	struct tally t = { 0 };
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/proc/1/%s", names[i]);
		tally_result(&t, open(path, O_WRONLY), path);
	}
	tally_say(&t);
}

static void read_host_process(void)
{
	static const char *const names[] = { "environ", "cmdline", "maps", "fd/0",
					     "root/etc/passwd" };
	struct tally t = { 0 };
	char path[64], text[4096];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int fd;
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/%ld/%s", canary_number("pid"), names[i]);
		fd = open(path, O_RDONLY | O_NONBLOCK);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text));
		if (n > 0 && has_canary_text(text, (size_t)n))
			say_escaped("%s holds the secret", path);
		if (n < 0)
			tally_error(&t, errno);
		else
			say_escaped("%s can be opened", path);
	}
	tally_say(&t);
}

/* Expected: pid 1, this program and its case; any other process is a leak. */
static void count_processes(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[64], name[64];

	if (!proc)
		say_broken("no /proc");
	while ((entry = readdir(proc))) {
		int fd;
		ssize_t n;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
		name[n > 0 ? n - 1 : 0] = '\0';
		if (fd >= 0)
			(void)close(fd);
		if (n > 0 && strcmp(name, "escape") != 0 && strncmp(name, "ak-init", 7) != 0)
			say_escaped("process %.20s is %s", entry->d_name, name);
	}
	say_denied_as("own processes only");
}

/* ---- our program (CVE-2019-5736) ---- */

static void overwrite_program(void)
{
	struct tally t = { 0 };
	char exe[64], path[64];
	int path_fd;

	(void)snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)victim());
	tally_result(&t, open("/proc/self/exe", O_WRONLY), "writing this program");
	tally_result(&t, open(exe, O_WRONLY), "writing the program of pid 1");
	tally_result(&t, open(canary("binary"), O_WRONLY), "writing it by its path");
	/* as in the exploit: keep a name for it, and write when it no longer runs */
	path_fd = open(exe, O_PATH);
	tally_result(&t, path_fd, "keeping the program of pid 1 by O_PATH");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	tally_result(&t, open(path, O_WRONLY), "writing it by a kept name");
	tally_say(&t);
}

/* Does it run? Its output is ignored. */
static void tally_exec(struct tally *t, const char *path)
{
	char *const argv[] = { (char *)path, NULL }, *const envp[] = { NULL };
	int ends[2], error = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || (pid = fork()) < 0)
		say_broken("no process: %s", errno_name(errno));
	if (pid == 0) {
		int null_fd = open("/dev/null", O_RDWR);

		for (int stream = 0; stream < 3; stream++)
			(void)dup2(null_fd, stream);
		(void)execve(path, argv, envp);
		error = errno;
		(void)!write(ends[1], &error, sizeof(error));
		_exit(1);
	}
	(void)close(ends[1]);
	if (read(ends[0], &error, sizeof(error)) == 0)
		say_escaped("%s runs", path);
	(void)close(ends[0]);
	tally_error(t, error);
}

/* A script whose interpreter is the program that starts it: "exec" from outside would run it. */
static void plant_interpreter(void)
{
	const char *path = scratch("script");
	int fd = open(path, O_WRONLY | O_CREAT, 0755);
	struct tally t = { 0 };

	if (fd < 0 || write(fd, "#!/proc/1/exe\n", 14) != 14)
		say_broken("no script: %s", errno_name(errno));
	(void)close(fd);
	tally_exec(&t, path);
	tally_exec(&t, "/proc/1/exe");
	(void)unlink(path);
	tally_say(&t);
}

const struct escape_case cases_proc[] = {
	{ "PR01a", "write core_pattern", "read-only /proc, user namespace", "EROFS|EACCES",
	  write_core_pattern },
	{ "PR01b", "write modprobe, hotplug, poweroff_cmd, usermodehelper, uevent_helper",
	  "read-only /proc, no /sys", "EROFS|EACCES|ENOENT", write_helpers },
	{ "PR02a", "write sysrq-trigger", "read-only /proc, user namespace", "EROFS|EACCES|ENOENT",
	  write_sysrq },
	{ "PR02b", "write knobs of memory, files and the kernel", "read-only /proc, user namespace",
	  "EROFS|EACCES|ENOENT", write_vm },
	{ "PR02c", "register a binary format, mount binfmt_misc", "read-only /proc, seccomp",
	  "EROFS|EACCES|ENOENT|EPERM", write_binfmt },
	{ "PR02d", "write /proc/irq, acpi, mtrr", "read-only /proc, user namespace",
	  "EROFS|EACCES|ENOENT|EIO", write_irq },
	{ "PR02e", "write knobs that belong to our own namespaces", "read-only /proc",
	  "EROFS|EACCES|ENOENT", write_own_namespaces_knobs },
	{ "PR02f", "lower our own oom_score_adj, write pid 1's", "user namespace",
	  "EROFS|EACCES|EPERM", lower_own_oom_score },
	{ "PR02g", "register pressure triggers", "read-only /proc",
	  "EROFS|EACCES|ENOENT|EOPNOTSUPP", write_pressure },
	{ "PR03a", "read kcore, /dev/mem, page counts", "user namespace, own /dev",
	  "ENOENT|EACCES|EPERM", read_kcore },
	{ "PR03b", "read others' keys in /proc/keys", "/proc masks", "empty|ENOENT", read_keys },
	{ "PR03c", "read the kernel's symbols", "/proc masks", "empty|ENOENT", read_symbols },
	{ "PR03d", "read timer_list, vmallocinfo, slabinfo, sched_debug, a kernel stack",
	  "user namespace", "ENOENT|EACCES|EPERM", read_root_only },
	{ "PR03e", "read the kernel's log", "user namespace, own /dev", "ENOENT|EACCES|EPERM",
	  read_log },
	{ "PR03f", "read /sys: firmware, debug, tracing, devices", "own /sys", "ENOENT", read_sys },
	{ "PR03g", "read the frame numbers of our pages", "user namespace", "zeros|EACCES|EPERM",
	  read_frame_numbers },
	{ "PR04a", "set a release_agent, mount cgroups (CVE-2022-0492)",
	  "own /sys; seccomp, capabilities", "ENOENT|EPERM|EROFS|EACCES", release_agent },
	{ "PR04b", "see where our cgroup lies", "cgroup namespace", "/", see_cgroup_paths },
	{ "PR04c", "raise our limits, or forge what is told about them", "read-only /sys",
	  "EROFS|EACCES|ENOENT", write_limits },
	{ "PR04d", "see other groups below /sys/fs/cgroup", "own /sys, cgroup namespace", "none",
	  see_other_groups },
	{ "PR08a", "read memory, environment and program of pid 1", "hidden init, Landlock",
	  "EACCES|EPERM|ENOENT", read_init },
	{ "PR08b", "open descriptors, namespaces, root of pid 1", "hidden init, Landlock",
	  "EACCES|EPERM|ENOENT", follow_init },
	{ "PR08c", "write memory, oom score and maps of pid 1", "hidden init, read-only /proc",
	  "EACCES|EROFS|EPERM|ENOENT", write_init },
	{ "PR08d", "read a process of the host: environment, descriptors, root", "pid namespace",
	  "ENOENT", read_host_process },
	{ "PR08e", "see processes that are not ours", "pid namespace", "own processes only",
	  count_processes },
	{ "NS12a", "overwrite our program through /proc/self/exe and /proc/1/exe (CVE-2019-5736)",
	  "hidden init, read-only binds", "ETXTBSY|EACCES|EROFS|ENOENT|EBADF|EPERM",
	  overwrite_program },
	{ "NS12b", "make our program the interpreter of a script", "hidden init", "EACCES",
	  plant_interpreter },
	{ 0 },
};
