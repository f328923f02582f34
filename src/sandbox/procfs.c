/* procfs - the sandbox's /proc; see procfs.h. */
#include "sandbox/procfs.h"

#include "base/cleanup.h"
#include "base/wall.h"
#include "policy/policy.h"
#include "sandbox/mask.h"
#include "host/mount.h"

#include <errno.h>

/*
 * World-readable files. Those that only the host's root may open (kcore, timer_list, sysrq-trigger)
 * need no mask, because nobody inside is the host's root.
 */
static const char *const masked[] = { "proc/keys", "proc/key-users", "proc/kallsyms" };

/* Read-only even if the rest of /proc is writable. */
static const char *const read_only[] = { "proc/sys", "proc/pressure" };

static int close_knobs(int root_fd, struct err *e)
{
	for (size_t i = 0; i < COUNT_OF(read_only); i++) {
		cleanup_fd int tree_fd = -1;

		if (mount_open_tree(root_fd, read_only[i], 0, &tree_fd, e) < 0) {
			if (e->code == ERR_NOT_FOUND)
				continue; /* kernel without this file */
			return -1;
		}
		if (mount_restrict(tree_fd, MOUNT_READ_ONLY | MOUNT_NO_EXEC, e) < 0 ||
		    mount_attach_own(tree_fd, root_fd, read_only[i], e) < 0)
			return -1;
	}
	return 0;
}

int procfs_mount(int root_fd, int empty_fd, const struct policy *p, struct err *e)
{
	bool has_wall = wall_stands(WALL_PROC_READ_ONLY);
	unsigned flags = MOUNT_NO_EXEC | (has_wall && !p->may_trace ? MOUNT_READ_ONLY : 0);
	cleanup_fd int proc_fd = -1;

	if (mount_new("proc", NULL, flags, &proc_fd, e) < 0) {
		/*
		 * The kernel lets a user namespace mount proc only if all of /proc was visible
		 * before; masks of a container runtime prevent that.
		 */
		if (e->sys == EPERM)
			return err_set(e, ERR_UNSUPPORTED,
				       "a fresh /proc is refused here: parts of this machine's "
				       "/proc are masked, as inside a container");
		return err_wrap(e, "/proc");
	}
	if (mount_attach_own(proc_fd, root_fd, "proc", e) < 0)
		return -1;
	if (has_wall && p->may_trace && close_knobs(root_fd, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(masked) && wall_stands(WALL_PROC_MASKS); i++)
		if (mask_own_file(empty_fd, root_fd, masked[i], e) < 0)
			return -1;
	return 0;
}
