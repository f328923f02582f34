/*
 * nativebackend - the backend `native`: namespaces, Landlock, seccomp; see backend.h.
 *
 * Turns a prepared session into the plan of sandbox/native and decides what depends on the session:
 * which filter, which cpus, what init has to watch. Only this file and nativeprobe.c know sandbox/.
 */
#include "engine/backend.h"
#include "engine/nativeprobe.h"
#include "engine/session.h"
#include "host/cpuset.h"
#include "host/rlimits.h"
#include "base/wall.h"
#include "host/mount.h"
#include "net/netns.h"
#include "net/plan.h"
#include "sandbox/init.h"
#include "sandbox/landlock.h"
#include "sandbox/native.h"
#include "sandbox/seccomp.h"
#include "state/limitcache.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int check_landlock(const struct policy *p, bool *ret_has_landlock, struct err *e)
{
	*ret_has_landlock = landlock_abi() > 0;
	if (*ret_has_landlock || p->accepts_no_landlock)
		return 0;
	return err_set(e, ERR_UNSUPPORTED,
		       "this kernel has no Landlock, the second wall behind the mounts (add "
		       "--accept-missing landlock to run without it)");
}

static int check(const struct policy *p, struct err *e)
{
	bool ignored;

	return check_landlock(p, &ignored, e);
}

/* ---- starting ---- */

/*
 * Packages install set-id files, which have no effect inside. They would have one outside if the
 * sandbox's owner is a user of this machine: in a writable directory of the host, or in a stream
 * that is a file. (A named sandbox's disk is below directories that nobody else may enter.) Nothing
 * in the host image needs them.
 */
static bool may_set_ids(const struct session *s, unsigned streams)
{
	if (!session_has_image(s) || s->options.awaits_places)
		return false;
	for (unsigned i = 0; i < s->files.count; i++)
		if (s->files.places[i].kind == ROOTSPEC_HOST && !s->files.places[i].is_read_only)
			return false;
	return s->idmap.kind == IDMAP_PRIVATE || !(streams & SESSION_FILE_STREAM);
}

static unsigned choose_filter(const struct session *s, unsigned streams)
{
	unsigned variant = 0;

	if (!s->options.policy->may_trace && wall_stands(WALL_SECCOMP_TRACING))
		variant |= SECCOMP_STRICT;
	if (!may_set_ids(s, streams) && wall_stands(WALL_SET_ID_REFUSAL))
		variant |= SECCOMP_NO_SET_ID;
	if (s->is_pinned)
		variant |= SECCOMP_PINNED;
	if (s->idmap.kind == IDMAP_ONE && s->idmap.uid == 0 && s->idmap.gid == 0)
		variant |= SECCOMP_ONE_OWNER;
	/* otherwise Landlock prevents truncating a file that was passed for reading */
	if (streams & SESSION_FILE_STREAM && landlock_abi() < LANDLOCK_ABI_TRUNCATE)
		variant |= SECCOMP_NO_CUTTING;
	return variant;
}

/* Limits that init must watch because there is no cgroup. */
static struct watch_limits watched(const struct session *s)
{
	const struct policy *p = s->options.policy;
	bool has_cgroup = s->cgroup.kind != CGROUP_NONE;

	return (struct watch_limits){
		.policy = p,
		.memory_bytes = has_cgroup ? 0 : p->memory_bytes,
		.cpu_ms = has_cgroup ? 0 : p->cpu_time_ms,
		.pids_count = !has_cgroup && s->idmap.kind != IDMAP_ONE ? p->pids_count : 0,
		.is_root_on_disk = s->options.disk_path,
	};
}

/*
 * Chooses the cpus, and the values that the sandbox is shown as its limits. Constant files are
 * cached for the next sandbox; a root caller opens them here, because the sandbox's ids cannot
 * enter the caller's directories.
 */
static int choose_figures(struct session *s, struct native_plan *plan, struct err *e)
{
	const struct policy *p = s->options.policy;
	struct limitfiles_figures *f = &plan->figures;

	*f = (struct limitfiles_figures){ .memory_bytes = p->memory_bytes,
					  .cpus_milli = p->cpus_milli,
					  .pids_count = p->pids_count,
					  .has_v1 = s->cgroup.has_v1 };
	plan->is_pinned = p->cpus_milli && !s->is_pinned;
	if (p->cpus_milli &&
	    cpuset_choose(session_count_cpus(p), plan->serves ? 0 : CPUSET_NEAR, &f->usable, e) < 0)
		return -1;
	if (!p->cpus_milli && sched_getaffinity(0, sizeof(f->usable), &f->usable) < 0) {
		/* EINVAL: this machine has more cpus than a cpu_set_t holds. Show no cpu list. */
		if (errno != EINVAL)
			return err_sys(e, errno, "read the cpu affinity");
		CPU_ZERO(&f->usable);
	}
	if (s->is_pinned && sched_setaffinity(0, sizeof(f->usable), &f->usable) < 0)
		return err_sys(e, errno, "set the cpu affinity");
	if (s->options.is_changeable)
		return 0;
	s->limits_path = limitcache_get(s->options.ak, f);
	plan->rootfs.limits_path = s->limits_path;
	if (s->limits_path && s->idmap.kind == IDMAP_PRIVATE &&
	    mount_open_tree(AT_FDCWD, s->limits_path, 0, &s->limits_tree_fd, e) < 0)
		return -1;
	plan->rootfs.limits_tree_fd = s->limits_tree_fd;
	return 0;
}

static void fill_command(struct command *ret, const struct policy *p,
			 const struct backend_command *c)
{
	command_init(ret, p);
	ret->argv = c->argv;
	ret->envp = c->envp;
	ret->has_tty = c->has_tty;
	if (c->argv)
		memcpy(ret->stdio_fd, c->stdio_fd, sizeof(ret->stdio_fd));
}

static int start(struct session *s, const struct backend_command *c, unsigned streams,
		 struct err *e)
{
	const struct policy *p = s->options.policy;
	bool has_cgroup = s->cgroup.kind != CGROUP_NONE;
	struct native_plan plan = {
		.idmap = &s->idmap,
		.cgroup = &s->cgroup,
		.rootfs = { .policy = p,
			    .shown = { .places = s->files.places,
				       .guards = s->files.workspace.guards,
				       .place_count = s->files.count,
				       .guard_count = s->files.workspace.guard_count },
			    .etc_private = s->etc_private,
			    .etc_layer_path = s->etc_layer_path,
			    .etc_tree_fd = s->etc_tree_fd,
			    .etc_host_tree_fd = s->etc_host_tree_fd,
			    .resolv_conf = p->has_network ? PLAN_RESOLV_CONF : NULL,
			    .image = s->options.root,
			    .limits_tree_fd = -1,
			    .host_name = s->options.name,
			    .machine_id = s->options.machine_id },
		.network = p->has_network ? netns_build : NULL,
		.watch = watched(s),
		.serves = s->options.serves,
		.takes_dials = s->options.serves || p->publish,
		.awaits_places = s->options.awaits_places,
	};

	if (check_landlock(p, &s->has_landlock, e) < 0)
		return -1;
	s->is_pinned = p->cpus_milli && !has_cgroup;
	if (choose_figures(s, &plan, e) < 0)
		return -1;
	fill_command(&plan.command, p, c);
	plan.command.has_landlock = s->has_landlock;
	plan.command.can_switch_ids = s->idmap.kind != IDMAP_ONE;
	plan.command.rlimit_flags = has_cgroup ? 0 : RLIMITS_WITHOUT_CGROUP;
	plan.command.seccomp_variant = choose_filter(s, streams);
	if (plan.serves)
		plan.command.landlock_parts = LANDLOCK_FILES;
	return native_start(&plan, &s->sandbox, e);
}

/* ---- a sandbox that runs ---- */

static void signal_command(const struct handle *h, int number, bool is_to_group)
{
	siginfo_t info = { .si_signo = number, .si_code = SI_QUEUE };

	info.si_value.sival_int = INIT_TO_GROUP;
	(void)syscall(SYS_pidfd_send_signal, h->pid_fd, number, is_to_group ? &info : NULL, 0);
}

const struct backend nativebackend = {
	.name = "native",
	.abilities = BACKEND_PASSES_STREAMS | BACKEND_HAS_ROOT_FD | BACKEND_CHANGES_LIMITS |
		     BACKEND_HAS_GATE | BACKEND_WAITS,
	.check = check,
	.start = start,
	.choose_filter = choose_filter,
	.signal = signal_command,
	.stop = native_stop,
	.probe = nativeprobe_examine,
};
