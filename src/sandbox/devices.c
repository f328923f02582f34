/* devices - the sandbox's /dev; see devices.h. */
#include "sandbox/devices.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const nodes[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const struct {
	const char *name, *text;
} links[] = {
	{ "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" },
	{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	{ "ptmx", "pts/ptmx" },
};

static int bind_node(int host_dev_fd, int dev_fd, const char *name, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(host_dev_fd, name, 0, &tree_fd, e) < 0)
		return err_wrap(e, "/dev/%s", name);
	if (mknodat(dev_fd, name, S_IFREG | 0644, 0) < 0)
		return err_sys(e, errno, "create /dev/%s", name);
	return mount_attach_own(tree_fd, dev_fd, name, e);
}

static int mount_terminals(int dev_fd, struct err *e)
{
	static const char *const options[] = {
		"mode", "620", "ptmxmode", "666", "max", "64", NULL,
	};
	cleanup_fd int pts_fd = -1;

	if (mkdirat(dev_fd, "pts", 0755) < 0)
		return err_sys(e, errno, "create /dev/pts");
	if (mount_new("devpts", options, MOUNT_DEVICES | MOUNT_NO_EXEC, &pts_fd, e) < 0)
		return err_wrap(e, "/dev/pts");
	return mount_attach_own(pts_fd, dev_fd, "pts", e);
}

/* Mounts the message queues of the sandbox's ipc namespace; Landlock needs a path for them. */
static int mount_queues(int dev_fd, struct err *e)
{
	cleanup_fd int queues_fd = -1;

	if (!wall_stands(WALL_IPC_NAMESPACE))
		return 0; /* these would be the host's queues, which cannot be mounted here */
	if (mount_new("mqueue", NULL, MOUNT_NO_EXEC, &queues_fd, e) < 0)
		return e->sys == ENODEV ? 0 : err_wrap(e, "/dev/mqueue"); /* kernel without it */
	if (mkdirat(dev_fd, "mqueue", 0755) < 0)
		return err_sys(e, errno, "create /dev/mqueue");
	return mount_attach_own(queues_fd, dev_fd, "mqueue", e);
}

/* For tests: shows the host's /dev, as without WALL_OWN_DEVICES. */
static int show_all(int root_fd, struct err *e)
{
	cleanup_fd int tree_fd = -1;

	if (mount_open_tree(AT_FDCWD, "/dev", MOUNT_RECURSIVE, &tree_fd, e) < 0)
		return -1;
	return mount_attach_own(tree_fd, root_fd, "dev", e);
}

int devices_fill(int root_fd, struct err *e)
{
	cleanup_fd int host_dev_fd = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int dev_fd = openat(root_fd, "dev", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (!wall_stands(WALL_OWN_DEVICES))
		return show_all(root_fd, e);
	if (host_dev_fd < 0 || dev_fd < 0)
		return err_sys(e, errno, "open /dev");
	for (size_t i = 0; i < COUNT_OF(nodes); i++)
		if (bind_node(host_dev_fd, dev_fd, nodes[i], e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT_OF(links); i++)
		if (symlinkat(links[i].text, dev_fd, links[i].name) < 0)
			return err_sys(e, errno, "create /dev/%s", links[i].name);
	return mount_terminals(dev_fd, e) < 0 ? -1 : mount_queues(dev_fd, e);
}
