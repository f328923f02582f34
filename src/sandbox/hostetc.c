/* hostetc - the /etc of the host image; see hostetc.h. */
#include "sandbox/hostetc.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "policy/policy.h"
#include "sandbox/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bound when they exist. Nothing here may hold a secret on an ordinary machine. */
static const char *const shared_dir[] = {
	"alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust", "ca-certificates", "fonts",
	"terminfo", "java-17-openjdk", "java-21-openjdk", "perl",
};

static const char *const shared_file[] = {
	"ld.so.cache", "ssl/openssl.cnf", "protocols", "services", "mime.types",
};

/* Symbolic links are made anew with the same text. */
static const char *const shared_link[] = { "localtime", "os-release", "mtab" };

static int make_parent(int etc_fd, const char *name)
{
	char parent[64];
	const char *slash = strrchr(name, '/');
	char *p;

	if (!slash)
		return 0;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
	for (p = strchr(parent, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdirat(etc_fd, parent, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	if (mkdirat(etc_fd, parent, 0755) < 0 && errno != EEXIST)
		return -errno;
	return 0;
}

static int make_place(int etc_fd, const char *name, bool is_dir)
{
	int r = make_parent(etc_fd, name);

	if (r < 0)
		return r;
	if (is_dir)
		return mkdirat(etc_fd, name, 0755) < 0 ? -errno : 0;
	return file_create_at(etc_fd, name, 0644, "");
}

static int bind_entry(int host_etc_fd, int etc_fd, const char *name, bool is_dir, struct err *e)
{
	cleanup_fd int tree_fd = -1;
	cleanup_fd int target_fd = -1;
	int r;

	if (mount_open_tree(host_etc_fd, name, MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return e->code == ERR_NOT_FOUND || e->sys == EACCES ? 0 : -1;
	r = make_place(etc_fd, name, is_dir);
	if (r < 0)
		return err_sys(e, -r, "create /etc/%s", name);
	target_fd = openat(etc_fd, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	if (target_fd < 0)
		return err_sys(e, errno, "open /etc/%s", name);
	return mount_attach(tree_fd, target_fd, name, e);
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

static int write_names(int etc_fd, struct err *e)
{
	if (write_file(etc_fd, "hosts",
		       "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n",
		       e) < 0)
		return -1;
	if (write_file(etc_fd, "hostname", "sandbox\n", e) < 0)
		return -1;
	return write_file(etc_fd, "nsswitch.conf",
			  "passwd: files\ngroup: files\nhosts: files dns\n", e);
}

int hostetc_fill(int root_fd, const struct policy *p, struct err *e)
{
	cleanup_fd int host_etc_fd = open("/etc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int etc_fd = openat(root_fd, "etc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (host_etc_fd < 0 || etc_fd < 0)
		return err_sys(e, errno, "open /etc");
	if (write_accounts(etc_fd, p, e) < 0 || write_names(etc_fd, e) < 0)
		return -1;
	if (copy_links(host_etc_fd, etc_fd, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(shared_dir); i++)
		if (bind_entry(host_etc_fd, etc_fd, shared_dir[i], true, e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT_OF(shared_file); i++)
		if (bind_entry(host_etc_fd, etc_fd, shared_file[i], false, e) < 0)
			return -1;
	return 0;
}
