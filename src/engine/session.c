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
#include "host/mount.h"
#include "host/rlimits.h"

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
			       .etc_layer_fd = -1,
			       .etc_tree_fd = -1,
			       .etc_host_tree_fd = -1,
			       .limits_tree_fd = -1 };
	hostfiles_init(&s->files);
	newnames_init(&s->names);
	handle_init(&s->sandbox);
	gatekeeper_init(&s->gatekeeper);
	cgroup_init(&s->cgroup);
}

/* Ends processes first, then removes their cgroups, then dismisses the janitor. */
void session_done(struct session *s)
{
	session_stop(s);
	handle_close(&s->sandbox);
	gatekeeper_done(&s->gatekeeper);
	cgroup_remove(&s->cgroup);
	janitor_dismiss(&s->janitor);
	newnames_done(&s->names);
	hostfiles_done(&s->files);
	idmap_done(&s->idmap);
	cleanup_closep(&s->limits_tree_fd);
	cleanup_closep(&s->etc_tree_fd);
	cleanup_closep(&s->etc_layer_fd);
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

	if (!s->options.policy->has_network && !s->options.policy->publish && !s->options.serves)
		return 0;
	(void)getrandom(&number, sizeof(number), GRND_NONBLOCK); /* a name, not a secret */
	if (s->options.name)
		(void)snprintf(s->id, sizeof(s->id), "%s", s->options.name);
	else
		(void)snprintf(s->id, sizeof(s->id), "run-%08" PRIx32, number);
	return gatekeeper_prepare(&s->gatekeeper, &options, e);
}

bool session_has_image(const struct session *s)
{
	return s->options.root && s->options.root->layers;
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
	bool is_lasting = session_has_image(s) || s->options.is_changeable;

	return was_asked || (is_lasting && p->uid == 0) ? IDMAP_WANTS_MANY : 0;
}

/* For a root caller, opens the trees that are mapped once the sandbox has its ids. */
static int open_trees(struct session *s, struct err *e)
{
	struct rootspec_image *root = s->options.root;

	for (unsigned i = 0; root && i < ROOTSPEC_SOURCE_COUNT; i++) {
		struct rootspec_dir *dir = &root->dirs[i];

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
	if (etclayer_hold(ak, s->etc_private, &s->etc_layer_path, &s->etc_layer_fd, e) < 0)
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
	s->backend = backend_of(p);
	if (s->backend->check(p, e) < 0 || rlimits_check(p, e) < 0)
		return -1;
	if (idmap_init(&s->idmap, p->uid, p->gid, choose_ids(s), e) < 0)
		return -1;
	if (hostfiles_open(&s->files, p, o->ak, &s->idmap, e) < 0 ||
	    newnames_open(&s->names, p, &s->files.workspace, o->ak, o->name, e) < 0 ||
	    open_trees(s, e) < 0)
		return -1;
	if (!session_has_image(s) && prepare_etc(s, e) < 0)
		return -1;
	if (prepare_network(s, e) < 0)
		return -1;
	return open_cgroup(s, e);
}

unsigned session_count_cpus(const struct policy *p)
{
	return (unsigned)((p->cpus_milli + 999) / 1000);
}

int session_start(struct session *s, const struct backend_command *command, unsigned streams,
		  struct err *e)
{
	if (s->backend->start(s, command, streams, e) < 0)
		return -1;
	gatekeeper_take_sockets(&s->gatekeeper, s->sandbox.sockets, s->sandbox.socket_count,
				s->sandbox.dial_fd);
	cgroup_sweep_beside(&s->cgroup); /* while the child goes on */
	return 0;
}

void session_stop(struct session *s)
{
	if (s->backend)
		s->backend->stop(&s->sandbox);
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
