/* session - a sandbox that is being built or running; see session.h. */
#include "engine/session.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/wall.h"
#include "state/etclayer.h"
#include "state/etcprivate.h"
#include "state/limitcache.h"
#include "net/netns.h"
#include "net/plan.h"
#include "protocol/report.h"
#include "host/cpuset.h"
#include "sandbox/landlock.h"
#include "host/mount.h"
#include "host/rlimits.h"
#include "sandbox/seccomp.h"

#include <fcntl.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define CGROUP_PATHS_MAX_BYTES 65536u

void session_init(struct session *s)
{
	*s = (struct session){ .idmap = { .lock_fd = -1 },
			       .etc_tree_fd = -1,
			       .etc_host_tree_fd = -1,
			       .limits_tree_fd = -1 };
	hostfiles_init(&s->files);
	newnames_init(&s->names);
	native_init(&s->sandbox);
	gatekeeper_init(&s->gatekeeper);
	cgroup_init(&s->cgroup);
}

/* Ends processes first, then removes their cgroups, then dismisses the janitor. */
void session_done(struct session *s)
{
	native_end(&s->sandbox);
	gatekeeper_done(&s->gatekeeper);
	cgroup_remove(&s->cgroup);
	janitor_dismiss(&s->janitor);
	newnames_done(&s->names);
	hostfiles_done(&s->files);
	idmap_done(&s->idmap);
	cleanup_closep(&s->limits_tree_fd);
	cleanup_closep(&s->etc_tree_fd);
	cleanup_closep(&s->etc_host_tree_fd);
	keyrows_list_free(&s->etc_private);
	free(s->etc_layer_path);
	s->etc_layer_path = NULL;
	free(s->limits_path);
	s->limits_path = NULL;
}

/* Without cgroups some limits have a weaker form, and the others are refused with an error. */
static int check_without_cgroup(const struct policy *p, const char *why, struct err *e)
{
	if (p->io_read_bytes_per_s || p->io_write_bytes_per_s)
		return err_set(
			e, ERR_UNSUPPORTED,
			"%s: a rate for disks needs a cgroup, and %s ('agentkernel doctor' "
			"shows what to change)",
			p->origin[p->io_read_bytes_per_s ? POLICY_IO_READ : POLICY_IO_WRITE].text,
			why);
	if (p->cpus_milli % 1000 != 0)
		return err_set(
			e, ERR_UNSUPPORTED,
			"%s: a fraction of a cpu needs a cgroup, and %s (use a whole number)",
			p->origin[POLICY_CPUS].text, why);
	return 0;
}

static int announce_cgroup(const struct session *s, struct err *e)
{
	cleanup_buf struct buf paths;

	buf_init(&paths, CGROUP_PATHS_MAX_BYTES);
	cgroup_format_paths(&s->cgroup, &paths);
	return s->options.before_cgroup(s->options.context, buf_text(&paths), e);
}

static int open_cgroup(struct session *s, struct err *e)
{
	const struct policy *p = s->options.policy;
	const char *why = NULL;

	if (cgroup_plan(p, s->options.is_changeable ? CGROUP_WANTS_ALL : 0, &s->cgroup, &why, e) <
	    0)
		return -1;
	if (s->cgroup.kind == CGROUP_NONE)
		return cgroup_needs(p) ? check_without_cgroup(p, why, e) : 0;
	s->cgroup.disk_path = s->options.disk_path;
	if (s->options.before_cgroup ? announce_cgroup(s, e) < 0
				     : janitor_start(&s->janitor, &s->cgroup, -1, e) < 0)
		return -1;
	return cgroup_make(&s->cgroup, p, e);
}

static int prepare_network(struct session *s, struct err *e)
{
	uint32_t number = 0;
	const struct gatekeeper_options options = {
		.policy = s->options.policy,
		.ak = s->options.ak,
		.id = s->idmap.kind == IDMAP_PRIVATE ? idmap_helper_id(&s->idmap) : 0,
		.sandbox = s->id,
	};

	if (!s->options.policy->has_network)
		return 0;
	(void)getrandom(&number, sizeof(number), GRND_NONBLOCK); /* a name, not a secret */
	if (s->options.name)
		(void)snprintf(s->id, sizeof(s->id), "%s", s->options.name);
	else
		(void)snprintf(s->id, sizeof(s->id), "run-%08" PRIx32, number);
	return gatekeeper_prepare(&s->gatekeeper, &options, e);
}

static int check_landlock(const struct policy *p, bool *ret_has_landlock, struct err *e)
{
	*ret_has_landlock = landlock_abi() > 0;
	if (*ret_has_landlock || p->accepts_no_landlock)
		return 0;
	return err_set(e, ERR_UNSUPPORTED,
		       "this kernel has no Landlock, the second wall behind the mounts (add "
		       "--accept-missing landlock to run without it)");
}

/* Does the sandbox have an image, not just this machine's programs? */
static bool has_image(const struct session *s)
{
	return s->options.root && s->options.root->layers;
}

/*
 * Packages install set-id files, which have no effect inside. They would have one outside if the
 * sandbox's owner is a user of this machine: in a writable directory of the host, or in a stream
 * that is a file. (A named sandbox's disk is below directories that nobody else may enter.) Nothing
 * in the host image needs them.
 */
static bool may_set_ids(const struct session *s, unsigned streams)
{
	if (!has_image(s) || s->options.awaits_places)
		return false;
	for (unsigned i = 0; i < s->files.count; i++)
		if (s->files.places[i].kind == ROOTFS_HOST && !s->files.places[i].is_read_only)
			return false;
	return s->idmap.kind == IDMAP_PRIVATE || !(streams & SESSION_FILE_STREAM);
}

unsigned session_choose_filter(const struct session *s, unsigned streams)
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

/*
 * A range of ids (newuidmap) costs an ordinary caller 1.6 ms per start. Root of an image needs one
 * for package managers, root of a named sandbox for servers that switch users. A `run` of this
 * machine's programs has one id, unless its user was chosen explicitly: --user root.
 */
static unsigned choose_ids(const struct session *s)
{
	const struct policy *p = s->options.policy;
	enum policy_origin_kind kind = p->origin[POLICY_USER].kind;
	bool was_asked = kind != POLICY_ORIGIN_NONE && kind != POLICY_ORIGIN_PRESET;
	bool is_lasting = has_image(s) || s->options.is_changeable;

	return was_asked || (is_lasting && p->uid == 0) ? IDMAP_WANTS_MANY : 0;
}

/* For a root caller, opens the trees that are mapped once the sandbox has its ids. */
static int open_trees(struct session *s, struct err *e)
{
	struct imageroot *root = s->options.root;

	for (unsigned i = 0; root && i < IMAGEROOT_SOURCE_COUNT; i++) {
		struct imageroot_dir *dir = &root->dirs[i];

		if (s->idmap.kind != IDMAP_PRIVATE || !dir->path || dir->tree_fd >= 0)
			continue;
		if (mount_open_tree(AT_FDCWD, dir->path, 0, &dir->tree_fd, e) < 0)
			return -1;
	}
	return 0;
}

/* Lists what to hide of this machine's /etc. A root caller's sandbox has ids that can open none. */
static int prepare_etc(struct session *s, struct err *e)
{
	const struct ak *ak = s->options.ak;

	if (s->idmap.kind != IDMAP_PRIVATE && etcprivate_list(ak, &s->etc_private, e) < 0)
		return -1;
	if (etclayer_get(ak, s->etc_private, &s->etc_layer_path, e) < 0)
		return -1;
	if (s->idmap.kind != IDMAP_PRIVATE)
		return 0;
	if (mount_open_tree(AT_FDCWD, "/etc", 0, &s->etc_host_tree_fd, e) < 0)
		return -1;
	return !s->etc_layer_path
		       ? 0
		       : mount_open_tree(AT_FDCWD, s->etc_layer_path, 0, &s->etc_tree_fd, e);
}

int session_prepare(struct session *s, const struct session_options *o, struct err *e)
{
	const struct policy *p = o->policy;

	s->options = *o;
	if (rlimits_check(p, e) < 0)
		return -1;
	if (idmap_init(&s->idmap, p->uid, p->gid, choose_ids(s), e) < 0)
		return -1;
	if (hostfiles_open(&s->files, p, o->ak, &s->idmap, e) < 0 ||
	    newnames_open(&s->names, p, &s->files.workspace, o->ak, o->name, e) < 0 ||
	    open_trees(s, e) < 0)
		return -1;
	if (!has_image(s) && prepare_etc(s, e) < 0)
		return -1;
	if (prepare_network(s, e) < 0)
		return -1;
	return open_cgroup(s, e);
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

unsigned session_count_cpus(const struct policy *p)
{
	return (unsigned)((p->cpus_milli + 999) / 1000);
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

int session_start(struct session *s, struct command *command, unsigned streams, struct err *e)
{
	const struct policy *p = s->options.policy;
	bool has_cgroup = s->cgroup.kind != CGROUP_NONE;
	struct native_plan plan = {
		.idmap = &s->idmap,
		.cgroup = &s->cgroup,
		.rootfs = { .policy = p,
			    .places = s->files.places,
			    .guards = s->files.workspace.guards,
			    .guard_count = s->files.workspace.guard_count,
			    .place_count = s->files.count,
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
		.awaits_places = s->options.awaits_places,
	};

	if (check_landlock(p, &s->has_landlock, e) < 0)
		return -1;
	s->is_pinned = p->cpus_milli && !has_cgroup;
	if (choose_figures(s, &plan, e) < 0)
		return -1;
	command->has_landlock = s->has_landlock;
	command->can_switch_ids = s->idmap.kind != IDMAP_ONE;
	command->rlimit_flags = has_cgroup ? 0 : RLIMITS_WITHOUT_CGROUP;
	command->seccomp_variant = session_choose_filter(s, streams);
	if (plan.serves)
		command->landlock_parts = LANDLOCK_FILES;
	plan.command = *command;
	if (native_start(&plan, &s->sandbox, e) < 0)
		return -1;
	gatekeeper_take_sockets(&s->gatekeeper, s->sandbox.sockets, s->sandbox.socket_count);
	return 0;
}

void session_inspect(struct session *s)
{
	if (s->sandbox.is_stuck)
		(void)keyrows_list_add(&s->names.notices, SESSION_STUCK_WORDS);
	newnames_conclude(&s->names);
}

int session_await_init(const struct session *s, struct err *e)
{
	struct report report;
	int r = report_read(s->sandbox.report_fd, &report, e);

	if (r < 0)
		return -1;
	if (r == 0)
		return err_set(e, ERR_SYSTEM, "init died while the sandbox started");
	if (report.kind == REPORT_FAILED) {
		*e = report.error;
		return -1;
	}
	return 0;
}
