/* native - creates the child and sets up all protections in order; see native.h. */
#include "sandbox/native.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/title.h"
#include "base/wall.h"
#include "sandbox/nsaccount.h"
#include "sandbox/hostetc.h"
#include "sandbox/init.h"
#include "sandbox/networkthread.h"
#include "host/loopback.h"
#include "host/mount.h"
#include "sandbox/placement.h"
#include "host/privs.h"
#include "protocol/report.h"
#include "sandbox/serve.h"
#include "host/tty.h"
#include "sandbox/imageroot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_SETUP_FAILED 125
#define PROC_PATH_MAX_BYTES 40
#define STOP_AGAIN_MS 500 /* interval at which init is killed and thawed again */

/* Both ends of the pipes and sockets between parent and child. */
struct links {
	int report[2];   /* child -> parent */
	int lifeline[2]; /* parent -> child: one byte means "go on", end-of-file means "die" */
	int channel[2];  /* passes descriptors both ways; only if there are any */
	int orders[2];   /* orders for init if it serves */
	int dials[2];    /* requests for connections to the inside, if it takes them */
};

enum { READ_END, WRITE_END };
enum { PARENT_END, CHILD_END };

static void links_done(struct links *l)
{
	for (int end = 0; end < 2; end++) {
		cleanup_closep(&l->report[end]);
		cleanup_closep(&l->lifeline[end]);
		cleanup_closep(&l->channel[end]);
		cleanup_closep(&l->orders[end]);
		cleanup_closep(&l->dials[end]);
	}
}

/* A root caller's overlay: owners can be mapped only once the namespace has its ids. */
static bool maps_trees(const struct native_plan *plan)
{
	return plan->rootfs.image && imageroot_has_trees(plan->rootfs.image);
}

static int links_open(struct links *l, const struct native_plan *plan, struct err *e)
{
	if (pipe2(l->report, O_CLOEXEC) < 0 || pipe2(l->lifeline, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create pipes to the sandbox");
	if ((plan->command.has_tty || plan->network || plan->serves || maps_trees(plan)) &&
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->channel) < 0)
		return err_sys(e, errno, "create a socket to the sandbox");
	if (plan->serves && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, l->orders) < 0)
		return err_sys(e, errno, "create a socket for orders");
	if (plan->takes_dials &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, l->dials) < 0)
		return err_sys(e, errno, "create a socket for connections to the inside");
	return 0;
}

/* ---- the child ---- */

static int await_maps(int lifeline_fd, struct err *e)
{
	char byte;

	if (read(lifeline_fd, &byte, 1) != 1)
		return err_set(e, ERR_SYSTEM, "the supervisor ended while the sandbox started");
	return 0;
}

/* Before this no file may be opened: until the child has its own ids that is done as the caller. */
static int take_identity(const struct native_plan *plan, const struct links *l, struct err *e)
{
	if (plan->idmap->kind != IDMAP_ONE ? await_maps(l->lifeline[READ_END], e) < 0
					   : idmap_write_own(plan->idmap, e) < 0)
		return -1;
	return wall_stands(WALL_USER_NAMESPACE) ? idmap_become_inside_root(plan->idmap, e) : 0;
}

/* The cgroup namespace is created after joining, so that its root is the sandbox's own group. */
static int enter_cgroup(const struct native_plan *plan, struct err *e)
{
	if (wall_stands(WALL_CGROUP) && cgroup_join(plan->cgroup, e) < 0)
		return -1;
	if (wall_stands(WALL_CGROUP_NAMESPACE) && syscall(SYS_unshare, CLONE_NEWCGROUP) < 0)
		return err_sys(e, errno, "create a cgroup namespace");
	return 0;
}

/* The network while a thread makes it; then it is handed out. */
struct network {
	const struct native_plan *plan;
	int channel_fd;
	struct networkthread thread;
	bool is_entered;
	int sockets[FDPASS_MAX];
	unsigned socket_count;
};

/* Runs in the thread. */
static int fill_network(void *context, struct err *e)
{
	struct network *n = context;

	return n->plan->network ? n->plan->network(n->sockets, &n->socket_count, e)
				: loopback_up(e);
}

static int begin_network(struct network *n, struct err *e)
{
	if (!wall_stands(WALL_NETWORK_NAMESPACE))
		return n->plan->network ? err_set(e, ERR_INVALID,
						  "the host's own network is not ours to change")
					: 0;
	return networkthread_start(&n->thread, fill_network, n, e);
}

static int hand_out_network(struct network *n, struct err *e)
{
	int r = n->socket_count ? fdpass_send(n->channel_fd, n->sockets, n->socket_count) : 0;

	for (unsigned i = 0; i < n->socket_count; i++)
		(void)close(n->sockets[i]);
	n->socket_count = 0;
	if (r < 0)
		return err_sys(e, -r, "hand the network's sockets out");
	return 0;
}

static int pin(const struct native_plan *plan, struct err *e)
{
	const cpu_set_t *set = &plan->figures.usable;

	if (plan->is_pinned && sched_setaffinity(0, sizeof(*set), set) < 0)
		return err_sys(e, errno, "set the cpu affinity");
	return 0;
}

/*
 * Enters the network namespace, and keeps to the sandbox's cpus now that the thread has ended,
 * which would share them; nothing of the sandbox runs before this. The sockets are handed out as
 * late as possible, because the supervisor then takes a cpu from us.
 */
static int enter_network(void *context, struct err *e)
{
	struct network *n = context;

	if (n->is_entered)
		return 0;
	n->is_entered = true;
	if (wall_stands(WALL_NETWORK_NAMESPACE) && networkthread_join(&n->thread, e) < 0)
		return -1;
	if (pin(n->plan, e) < 0)
		return -1;
	return n->plan->awaits_places ? hand_out_network(n, e) : 0;
}

/* Builds the root with the trees that the parent mapped and sent, in the order of their enum. */
static int enter_root(const struct native_plan *plan, int channel_fd, struct network *network,
		      struct limitfiles *limits, struct placement *placement, struct err *e)
{
	struct rootfs_options rootfs = plan->rootfs;
	struct rootspec_image image;
	int fds[FDPASS_MAX];
	unsigned count = 0, taken = 0;
	int r;

	rootfs.cgroup_kind = plan->cgroup->kind;
	rootfs.figures = &plan->figures;
	rootfs.limits = limits;
	rootfs.before_unmount = enter_network;
	rootfs.before_unmount_context = network;
	if (plan->awaits_places) {
		rootfs.await_places = placement_await;
		rootfs.placement = placement;
		rootfs.has_only_trees = plan->idmap->kind == IDMAP_PRIVATE;
	}
	if (maps_trees(plan)) {
		r = fdpass_receive(channel_fd, fds, &count);
		if (r < 0)
			return err_sys(e, -r, "receive the root's layers");
		image = *plan->rootfs.image;
		for (unsigned i = 0; i < ROOTSPEC_SOURCE_COUNT && taken < count; i++)
			if (image.dirs[i].tree_fd >= 0)
				image.dirs[i].tree_fd = fds[taken++];
		rootfs.image = &image;
	}
	return rootfs_enter(&rootfs, e); /* other descriptors are closed before the command */
}

/* A warm sandbox has no complete root before it is claimed, and nobody works on its files. */
static bool hands_out_root(const struct native_plan *plan)
{
	return plan->serves && !plan->awaits_places;
}

/* Sends what is needed for work on files from outside: root, user namespace, mount namespace. */
static int hand_out_root(int channel_fd, struct err *e)
{
	cleanup_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int userns_fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	cleanup_fd int mntns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int r;

	if (root_fd < 0 || userns_fd < 0 || mntns_fd < 0)
		return err_sys(e, errno, "open the root");
	r = fdpass_send(channel_fd, (const int[]){ root_fd, userns_fd, mntns_fd }, 3);
	if (r < 0)
		return err_sys(e, -r, "hand the root out");
	return 0;
}

static int set_host_name(const char *name, struct err *e)
{
	if (!wall_stands(WALL_UTS_NAMESPACE))
		return 0;
	if (!name)
		name = HOSTETC_HOST_NAME;
	if (sethostname(name, strlen(name)) < 0)
		return err_sys(e, errno, "set the host name");
	return 0;
}

static int build_walls(const struct native_plan *plan, const struct links *l,
		       struct limitfiles *limits, struct placement *placement, struct err *e)
{
	struct network network = { .plan = plan, .channel_fd = l->channel[CHILD_END] };

	if (wall_stands(WALL_OWN_SESSION) && setsid() < 0)
		return err_sys(e, errno, "leave the caller's session");
	if (enter_cgroup(plan, e) < 0 || begin_network(&network, e) < 0)
		return -1;
	if (take_identity(plan, l, e) < 0)
		return -1;
	if (nsaccount_bound_users(e) < 0 || set_host_name(plan->rootfs.host_name, e) < 0)
		return -1;
	if (enter_root(plan, l->channel[CHILD_END], &network, limits, placement, e) < 0)
		return -1;
	if (hand_out_network(&network, e) < 0)
		return -1;
	if (hands_out_root(plan) && hand_out_root(l->channel[CHILD_END], e) < 0)
		return -1;
	return plan->awaits_places ? 0 : privs_seclude(e); /* placement_await() has done that */
}

/* A security module (AppArmor) may allow creating the namespaces but then deny mounts in them. */
static void hint_at_doctor(struct err *e)
{
	size_t len = strlen(e->msg);

	if (e->sys == EPERM || e->sys == EACCES)
		(void)snprintf(e->msg + len, sizeof(e->msg) - len,
			       " ('agentkernel doctor' shows what to change)");
}

static _Noreturn void child_main(const struct native_plan *plan, struct links *l)
{
	struct command command = plan->command;
	struct limitfiles limits;
	struct init_options init = {
		.command = &command,
		.limits = &limits,
		.orders_fd = l->orders[CHILD_END],
		.dial_fd = l->dials[CHILD_END],
		.report_fd = l->report[WRITE_END],
		.lifeline_fd = l->lifeline[READ_END],
		.lock_fd = plan->idmap->lock_fd,
		.watch = plan->watch,
	};
	struct placement placement = {
		.orders_fd = l->orders[CHILD_END],
		.report_fd = l->report[WRITE_END],
		.lifeline_fd = l->lifeline[READ_END],
		.placed_fd = -1,
		.seccomp_variant = command.seccomp_variant,
	};
	struct err e = { 0 };
	int slave_fd = -1;

	/* first: processes inside can read the command line that we inherited from our caller */
	title_set_init();
	limitfiles_init(&limits);
	/* our copy of the supervisor's end would keep the lifeline open forever */
	cleanup_closep(&l->lifeline[WRITE_END]);
	cleanup_closep(&l->orders[PARENT_END]);
	cleanup_closep(&l->dials[PARENT_END]);
	if (build_walls(plan, l, &limits, &placement, &e) < 0) {
		hint_at_doctor(&e);
		goto out;
	}
	if (placement.placed_fd >= 0) {
		report_started(placement.placed_fd); /* from here on the claim cannot be undone */
		init.has_waited = true;
	}
	if (command.has_tty) {
		if (tty_open_inside(l->channel[CHILD_END], &slave_fd, &e) < 0)
			goto out;
		for (int stream = 0; stream < 3; stream++)
			command.stdio_fd[stream] = slave_fd;
	}
	if (plan->serves)
		serve_run(&init);
	init_run(&init);
out:
	report_failed(init.report_fd, &e);
	_exit(EXIT_SETUP_FAILED);
}

/* ---- the parent ---- */

static uint64_t choose_namespaces(void)
{
	static const struct {
		enum wall wall;
		uint64_t flag;
	} namespaces[] = {
		{ WALL_USER_NAMESPACE, CLONE_NEWUSER },
		{ WALL_PID_NAMESPACE, CLONE_NEWPID },
		{ WALL_IPC_NAMESPACE, CLONE_NEWIPC },
		{ WALL_UTS_NAMESPACE, CLONE_NEWUTS },
	};
	/*
	 * Mounts always: otherwise we would change the host's own. The network namespace comes
	 * later: networkthread.
	 */
	uint64_t flags = CLONE_NEWNS;

	for (size_t i = 0; i < COUNT_OF(namespaces); i++)
		if (wall_stands(namespaces[i].wall))
			flags |= namespaces[i].flag;
	return flags;
}

static int clone_child(const struct native_plan *plan, struct links *l, int *ret_pid_fd,
		       pid_t *ret_pid, struct err *e)
{
	int cgroup_fd = cgroup_clone_fd(plan->cgroup);
	struct clone_args args = { .flags = choose_namespaces(), .exit_signal = SIGCHLD };

	if (cgroup_fd >= 0 && wall_stands(WALL_CGROUP)) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	return nsaccount_clone(plan->idmap, &args, l->lifeline, ret_pid, ret_pid_fd, e);
}

static int map_tree(const struct rootspec_dir *dir, int userns_fd, struct err *e)
{
	if (mount_set_idmap(dir->tree_fd, userns_fd, e) == 0)
		return 0;
	if (e->sys != EINVAL)
		return err_wrap(e, "'%s'", dir->path);
	return err_set(e, ERR_UNSUPPORTED,
		       "the file system of '%s' cannot map owners, which root's sandboxes need "
		       "there (set AGENTKERNEL_HOME to a directory on ext4, xfs or btrfs)",
		       dir->path);
}

/* Maps the owners of the trees to the child's user namespace and sends the trees to the child. */
static int hand_trees(const struct native_plan *plan, pid_t pid, int channel_fd, struct err *e)
{
	const struct rootspec_image *image = plan->rootfs.image;
	char path[PROC_PATH_MAX_BYTES];
	cleanup_fd int userns_fd = -1;
	int fds[ROOTSPEC_SOURCE_COUNT];
	unsigned count = 0;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	userns_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (userns_fd < 0)
		return err_sys(e, errno, "open the sandbox's user namespace");
	for (unsigned i = 0; i < ROOTSPEC_SOURCE_COUNT; i++) {
		if (image->dirs[i].tree_fd < 0)
			continue;
		if (map_tree(&image->dirs[i], userns_fd, e) < 0)
			return -1;
		fds[count++] = image->dirs[i].tree_fd;
	}
	r = fdpass_send(channel_fd, fds, count);
	if (r < 0)
		return err_sys(e, -r, "hand the root's layers in");
	return 0;
}

static int release_child(const struct native_plan *plan, pid_t pid, int lifeline_fd, int channel_fd,
			 struct err *e)
{
	if (plan->idmap->kind == IDMAP_ONE)
		return 0;
	if (plan->idmap->kind == IDMAP_PRIVATE && wall_stands(WALL_USER_NAMESPACE) &&
	    idmap_write_for(plan->idmap, pid, e) < 0)
		return -1;
	if (maps_trees(plan) && hand_trees(plan, pid, channel_fd, e) < 0)
		return -1;
	if (write(lifeline_fd, "g", 1) != 1)
		return err_set(e, ERR_SYSTEM, "the sandbox ended while it started");
	return 0;
}

/* Receives descriptors that the child created inside for use outside. */
static int receive(const struct handle *s, int channel_fd, int ret_fds[FDPASS_MAX],
		   unsigned *ret_count, struct err *e)
{
	int r = fdpass_receive(channel_fd, ret_fds, ret_count);
	struct report report;
	struct err ignored;

	if (r == 0)
		return 0;
	/* if the child closed the channel, its report says why */
	if (r == -EPIPE && report_read(s->report_fd, &report, &ignored) == 1 &&
	    report.kind == REPORT_FAILED) {
		*e = report.error;
		return -1;
	}
	return err_sys(e, -r, "receive descriptors from the sandbox");
}

/* Receives everything that the plan tells the child to send, in that order. */
static int receive_all(const struct native_plan *plan, struct handle *s, int channel_fd,
		       struct err *e)
{
	int fds[FDPASS_MAX];
	unsigned count = 0;

	if (plan->network && receive(s, channel_fd, s->sockets, &s->socket_count, e) < 0)
		return -1;
	if (hands_out_root(plan)) {
		if (receive(s, channel_fd, fds, &count, e) < 0)
			return -1;
		s->root_fd = fds[0];
		s->userns_fd = count > 1 ? fds[1] : -1;
		s->mntns_fd = count > 2 ? fds[2] : -1;
	}
	if (plan->command.has_tty) {
		if (receive(s, channel_fd, fds, &count, e) < 0)
			return -1;
		s->tty_master_fd = fds[0];
	}
	return 0;
}

/* Of a sandbox that could not be started. */
static void end(struct handle *s)
{
	native_stop(s);
	handle_close(s);
}

int native_start(const struct native_plan *plan, struct handle *ret, struct err *e)
{
	CLEANUP(links_done)
	struct links l = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	CLEANUP(end) struct handle s;

	handle_init(&s);
	if (links_open(&l, plan, e) < 0)
		return -1;
	if (clone_child(plan, &l, &s.pid_fd, &s.pid, e) < 0)
		return -1;
	if (s.pid == 0)
		child_main(plan, &l);

	s.cgroup = plan->cgroup;
	s.report_fd = take_fd(&l.report[READ_END]);
	s.lifeline_fd = take_fd(&l.lifeline[WRITE_END]);
	s.orders_fd = take_fd(&l.orders[PARENT_END]);
	s.dial_fd = take_fd(&l.dials[PARENT_END]);
	cleanup_closep(&l.report[WRITE_END]);
	cleanup_closep(&l.lifeline[READ_END]);
	cleanup_closep(&l.channel[CHILD_END]);
	cleanup_closep(&l.orders[CHILD_END]);
	cleanup_closep(&l.dials[CHILD_END]);
	if (release_child(plan, s.pid, s.lifeline_fd, l.channel[PARENT_END], e) < 0 ||
	    receive_all(plan, &s, l.channel[PARENT_END], e) < 0)
		return -1;
	*ret = s;
	handle_init(&s);
	return 0;
}

static uint64_t microseconds(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* A frozen process dies of SIGKILL only once thawed. Killed first, it never runs again. */
static void kill_and_thaw(struct handle *s)
{
	/* closing the lifeline also makes init exit */
	if (syscall(SYS_pidfd_send_signal, s->pid_fd, SIGKILL, NULL, 0) < 0)
		cleanup_closep(&s->lifeline_fd);
	if (s->cgroup)
		cgroup_thaw_for_end(s->cgroup);
}

/* True: init has ended and can be reaped without blocking. */
static bool await_end(struct handle *s)
{
	struct pollfd polled = { .fd = s->pid_fd, .events = POLLIN };
	uint64_t give_up_ms = clock_now_ms() + NATIVE_STOP_MAX_MS;
	int r;

	do {
		kill_and_thaw(s);
		r = poll(&polled, 1, STOP_AGAIN_MS);
	} while (r <= 0 && clock_now_ms() < give_up_ms);
	return r > 0;
}

void native_stop(struct handle *s)
{
	struct rusage usage = { 0 };

	if (s->pid_fd < 0)
		return;
	s->is_stuck = !await_end(s);
	while (!s->is_stuck && wait4(s->pid, NULL, 0, &usage) < 0 && errno == EINTR)
		continue;
	s->cpu_us = microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime);
	s->peak_process_bytes = (uint64_t)usage.ru_maxrss * 1024;
	cleanup_closep(&s->pid_fd);
}
