/* hostetc - the /etc of the host image; see hostetc.h. */
#include "sandbox/hostetc.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "sandbox/mount.h"
#include "sandbox/rootfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Bound when they exist. Nothing here may hold a secret on an ordinary machine. Each row costs
 * about ten microseconds of every start, so only what programs fail without is here.
 */
static const struct {
	const char *name;
	const char *parent; /* made first; NULL: /etc itself */
	mode_t type;
} shared[] = {
	{ "ld.so.cache", NULL, S_IFREG },
	{ "alternatives", NULL, S_IFDIR }, /* Debian: awk, editor, java, ... are links into it */
	{ "ssl/certs", "ssl", S_IFDIR },
	{ "ssl/openssl.cnf", "ssl", S_IFREG },
	{ "pki", NULL, S_IFDIR }, /* Fedora's certificates; its private keys are root's alone */
	{ "ca-certificates", NULL, S_IFDIR },
	{ "services", NULL, S_IFREG },
	{ "fonts", NULL, S_IFDIR },
	{ "java-17-openjdk", NULL, S_IFDIR },
	{ "java-21-openjdk", NULL, S_IFDIR },
};

/* Symbolic links are made anew with the same text. */
static const char *const shared_link[] = { "localtime", "os-release", "mtab" };

/* One call either way: mknod makes a plain file without opening it. */
static int make_place(int etc_fd, size_t row, struct err *e)
{
	const char *name = shared[row].name;
	int r = 0;

	if (shared[row].parent && mkdirat(etc_fd, shared[row].parent, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create /etc/%s", shared[row].parent);
	r = shared[row].type == S_IFDIR ? mkdirat(etc_fd, name, 0755)
					: mknodat(etc_fd, name, S_IFREG | 0644, 0);
	if (r < 0)
		return err_sys(e, errno, "create /etc/%s", name);
	return 0;
}

/* Over a place that the sandbox may have changed since it was made. */
static int bind_over(int tree_fd, int etc_fd, const char *name, struct err *e)
{
	cleanup_fd int place_fd = mount_open_plain(etc_fd, name, O_PATH | O_NOFOLLOW);

	/* removed or made into something else: the sandbox's own affair, in its own /etc */
	if (place_fd == -ENOENT || place_fd == -ENOTDIR || place_fd == -ELOOP)
		return 0;
	if (place_fd < 0)
		return err_sys(e, -place_fd, "open /etc/%s", name);
	if (mount_attach(tree_fd, place_fd, name, e) < 0)
		return e->sys == ENOTDIR || e->sys == EINVAL ? 0 : -1; /* of another kind now */
	return 0;
}

/*
 * A place alone: nothing is cloned to find out whether there is something to bind, for throwing a
 * clone away waits for the whole machine (a grace period of the kernel's, 0.3 ms and more).
 */
static int write_entry(int host_etc_fd, int etc_fd, size_t row, struct err *e)
{
	if (faccessat(host_etc_fd, shared[row].name, F_OK, 0) == 0)
		return make_place(etc_fd, row, e);
	if (file_is_absence(-errno))
		return 0;
	return err_sys(e, errno, "look for /etc/%s", shared[row].name);
}

static int fill_entry(int host_etc_fd, int etc_fd, size_t row, unsigned steps, struct err *e)
{
	const char *name = shared[row].name;
	cleanup_fd int tree_fd = -1;

	if (steps == HOSTETC_WRITE)
		return write_entry(host_etc_fd, etc_fd, row, e);
	if (mount_open_tree(host_etc_fd, name, MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return e->code == ERR_NOT_FOUND || e->sys == EACCES ? 0 : -1;
	if (steps == HOSTETC_BIND)
		return bind_over(tree_fd, etc_fd, name, e);
	if (make_place(etc_fd, row, e) < 0)
		return -1;
	return mount_attach_own(tree_fd, etc_fd, name, e);
}

static int copy_links(int host_etc_fd, int etc_fd, struct err *e)
{
	char text[256];

	for (size_t i = 0; i < COUNT_OF(shared_link); i++) {
		ssize_t n = readlinkat(host_etc_fd, shared_link[i], text, sizeof(text) - 1);

		if (n < 0)
			continue;
		text[n] = '\0';
		if (symlinkat(text, etc_fd, shared_link[i]) < 0)
			return err_sys(e, errno, "create /etc/%s", shared_link[i]);
	}
	return 0;
}

static int write_file(int etc_fd, const char *name, const char *text, struct err *e)
{
	int r = file_create_at(etc_fd, name, 0644, text);

	if (r < 0)
		return err_sys(e, -r, "write /etc/%s", name);
	return 0;
}

/* The accounts that policy.c knows by name; "user" takes whatever id the command runs as. */
static int write_accounts(int etc_fd, const struct policy *p, struct err *e)
{
	uint32_t uid = p->uid ? p->uid : POLICY_USER_ID;
	uint32_t gid = p->gid ? p->gid : POLICY_USER_ID;
	cleanup_free char *passwd = NULL;
	cleanup_free char *group = NULL;

	passwd = mem_format("root:x:0:0:root:%s:/bin/sh\n"
			    "user:x:%" PRIu32 ":%" PRIu32 ":user:%s:/bin/sh\n"
			    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
			    p->uid == 0 ? p->home_dir : "/root", uid, gid,
			    p->uid == 0 ? "/home/user" : p->home_dir);
	group = mem_format("root:x:0:\nuser:x:%" PRIu32 ":\ntty:x:5:\nnogroup:x:65534:\n", gid);
	if (write_file(etc_fd, "passwd", passwd, e) < 0)
		return -1;
	return write_file(etc_fd, "group", group, e);
}

void hostetc_format(const struct rootfs_options *o, struct hostetc_texts *ret)
{
	const char *name = o->host_name ? o->host_name : HOSTETC_HOST_NAME;

	(void)snprintf(ret->hosts, sizeof(ret->hosts),
		       "127.0.0.1 localhost %s\n::1 localhost ip6-localhost ip6-loopback\n", name);
	(void)snprintf(ret->host_name, sizeof(ret->host_name), "%s\n", name);
	(void)snprintf(ret->machine_id, sizeof(ret->machine_id), "%s\n",
		       o->machine_id ? o->machine_id : "");
}

static int write_names(int etc_fd, const struct rootfs_options *o, struct err *e)
{
	struct hostetc_texts texts;

	hostetc_format(o, &texts);
	if (o->resolv_conf && write_file(etc_fd, "resolv.conf", o->resolv_conf, e) < 0)
		return -1;
	if (write_file(etc_fd, "hosts", texts.hosts, e) < 0)
		return -1;
	if (o->host_name && write_file(etc_fd, "hostname", texts.host_name, e) < 0)
		return -1;
	if (o->machine_id && write_file(etc_fd, "machine-id", texts.machine_id, e) < 0)
		return -1;
	return write_file(etc_fd, "nsswitch.conf",
			  "passwd: files\ngroup: files\nhosts: files dns\n", e);
}

static int write_files(int host_etc_fd, int etc_fd, const struct rootfs_options *o, struct err *e)
{
	if (write_accounts(etc_fd, o->policy, e) < 0 || write_names(etc_fd, o, e) < 0)
		return -1;
	return copy_links(host_etc_fd, etc_fd, e);
}

int hostetc_fill(int root_fd, const struct rootfs_options *o, unsigned steps, struct err *e)
{
	cleanup_fd int host_etc_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int etc_fd =
		openat(root_fd, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (etc_fd < 0 && steps == HOSTETC_BIND && file_is_absence(-errno))
		return err_sys(e, errno, "the sandbox has replaced its '/etc'");
	if (host_etc_fd < 0 || etc_fd < 0)
		return err_sys(e, errno, "open /etc");
	if (steps & HOSTETC_WRITE && write_files(host_etc_fd, etc_fd, o, e) < 0)
		return -1;
	for (size_t row = 0; row < COUNT_OF(shared); row++)
		if (fill_entry(host_etc_fd, etc_fd, row, steps, e) < 0)
			return -1;
	return 0;
}
