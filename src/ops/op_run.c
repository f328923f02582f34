/*
 * op_run - one command in a new sandbox; see op_run.h.
 *
 * Theory of operation. A plain run asks the pool first (pool/claimed), which builds a sandbox if
 * none is ready. A run that is kept, or that needs files first, uses a named sandbox: it is created
 * and started, gets its files and executes the command. A sandbox that is named only because of its
 * files belongs to this call alone, has an expiry in case this process dies, and is removed however
 * the command ends.
 */
#include "ops/op_run.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/path.h"
#include "engine/project.h"
#include "named/execute.h"
#include "named/files.h"
#include "named/lifecycle.h"
#include "named/namedfile.h"
#include "ops/access.h"
#include "ops/events.h"
#include "named/reconfigure.h"
#include "ops/op_service.h"
#include "ops/pickimage.h"
#include "ops/portview.h"
#include "ops/refusal.h"
#include "policy/credential.h"
#include "policy/environment.h"
#include "pool/claimed.h"
#include "state/ak.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MODE 0644
#define SPARE_TTL_MS 60000u /* expiry after the deadline, for a sandbox of one call */

void op_run_result_done(struct op_run_result *r)
{
	run_result_done(&r->end);
}

/* ---- remarks ---- */

/* Warns of a rule without effect: its author may believe that it blocks something. */
static void remark_idle_rule(const struct policy *p, const struct op_events *ev)
{
	const struct egress_rule *idle = p->has_network ? egress_find_idle(&p->egress) : NULL;

	if (idle)
		op_remark(ev,
			  "%s %s changes nothing, everything is allowed already (add "
			  "--network-policy deny to allow nothing else)",
			  idle->origin, idle->text);
}

static void format_masked(const struct policy *p, struct buf *out)
{
	unsigned count = 0;

	for (size_t i = 0; p->home && i < credential_home_count; i++) {
		cleanup_free char *path = mem_format("%s/%s", p->home, credential_home[i]);
		bool is_shown = false;

		for (char *const *name = p->unmask; name && *name; name++)
			is_shown = is_shown || strcmp(*name, credential_home[i]) == 0;
		if (!is_shown && access(path, F_OK) == 0)
			buf_addf(out, "%s~/%s", count++ ? ", " : "", credential_home[i]);
	}
	for (char *const *name = p->workspace ? p->mask : NULL; name && *name; name++)
		buf_addf(out, "%s%s", count++ ? ", " : "", *name);
}

/* Remarks what is hidden from the command although the policy shows its surroundings. */
static void remark_kept_back(const struct request *r, const struct op_events *ev)
{
	cleanup_buf struct buf masked, dropped;

	buf_init(&masked, BUF_TEXT_MAX_BYTES);
	buf_init(&dropped, BUF_TEXT_MAX_BYTES);
	format_masked(&r->policy, &masked);
	environment_format_dropped(&r->policy, &r->ak->caller, &dropped);
	if (masked.len)
		op_remark(ev, "masked: %s (--unmask shows one)", buf_text(&masked));
	if (dropped.len)
		op_remark(ev, "variables kept out: %s (-e NAME passes one)", buf_text(&dropped));
}

/* Is the caller's directory, or one of its parents, visible inside? */
static bool is_cwd_shown(const struct request *r)
{
	const struct policy *p = &r->policy;

	if (p->workspace || p->home)
		return true;
	for (unsigned i = 0; i < p->mount_count; i++)
		if (path_is_within(r->ak->caller.cwd, p->mounts[i].source))
			return true;
	return false;
}

/*
 * The first word after the command that is a file of this directory; NULL: none. Callers of a
 * server read this too, so hidden files and paths that leave the directory do not count.
 */
static const char *find_file_word(const char *cwd, char *const *argv)
{
	for (size_t i = 1; argv[0] && argv[i]; i++) {
		cleanup_free char *path = path_absolute(cwd, argv[i]);

		if (argv[i][0] != '-' && argv[i][0] != '/' && path && path_is_within(path, cwd) &&
		    !strstr(path + strlen(cwd), "/.") && access(path, F_OK) == 0)
			return argv[i];
	}
	return NULL;
}

/* The command may have failed because files of this directory are not visible inside. */
static void remark_hidden_project(const struct request *r, char *const *argv,
				  const struct op_events *ev)
{
	const char *cwd = r->ak->caller.cwd, *home = r->ak->caller.home, *file;
	char origin[REQUEST_ORIGIN_MAX_BYTES] = "";

	if (!cwd || is_cwd_shown(r) || (home && path_is_within(home, cwd)))
		return; /* a home directory is never a workspace */
	file = find_file_word(cwd, argv);
	if (file)
		op_remark(ev,
			  "'%s' is in this directory, which is not visible inside (add "
			  "--workspace, or -W in short)",
			  file);
	else if (project_detect(cwd, NULL, origin, sizeof(origin)) || access("Makefile", F_OK) == 0)
		op_remark(ev,
			  "the project in this directory is not visible inside (add --workspace, "
			  "or -W in short)");
}

void op_run_explain(const struct request *r, char *const *command, const struct run_result *end,
		    const struct op_events *ev)
{
	if (end->exit_code != 0 && !refusal_explain(ev, command, end))
		remark_hidden_project(r, command, ev);
}

/* ---- files to write first ---- */

static int copy_content(int from, int to, uint64_t left, const char *path, struct err *e)
{
	char bytes[65536];

	while (left > 0) {
		ssize_t n = read(from, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
		int r;

		if (n <= 0)
			return err_set(e, ERR_INVALID, "a file in the request is not whole");
		r = file_write_all(to, bytes, (size_t)n);
		if (r < 0)
			return err_sys(e, -r, "write '%s'", path);
		left -= (uint64_t)n;
	}
	return 0;
}

static int place_file(struct files *f, const struct policy *p, const char *text, int contents_fd,
		      struct err *e)
{
	const char *size_text = strrchr(text, '\n');
	cleanup_free char *given = NULL, *path = NULL;
	cleanup_fd int fd = -1;

	if (!size_text)
		return err_set(e, ERR_INVALID, "a file in the request has no size");
	given = mem_dup_bytes(text, (size_t)(size_text - text));
	if (access_resolve_path_by(p, given, &path, e) < 0 ||
	    files_open_file(f, path, FILES_WRITE | FILES_PARENTS, FILES_MODE, &fd, e) < 0)
		return -1;
	return copy_content(contents_fd, fd, strtoull(size_text + 1, NULL, 10), path, e);
}

static int place_files(struct ak *ak, const struct op_run_args *args, const char *name,
		       struct err *e)
{
	CLEANUP(files_close) struct files f;

	files_init(&f);
	if (!args->files)
		return 0;
	if (files_open(ak, name, &f, e) < 0)
		return -1;
	for (char *const *file = args->files; *file; file++)
		if (place_file(&f, &args->request->policy, *file, args->contents_fd, e) < 0)
			return -1;
	return 0;
}

/* ---- a named sandbox for one command ---- */

static bool is_abandoned(const struct ak *ak)
{
	struct pollfd polled = { .fd = ak->lifeline_fd, .events = POLLIN };

	return ak->lifeline_fd && poll(&polled, 1, 0) > 0;
}

/* Makes the sandbox visible only to this call, not to the owner of its key. */
static void work_for_this_call(struct ak *ak)
{
	char id[NAMED_ID_BYTES + 1], owner[sizeof(NAMED_CALL_OWNER) + NAMED_ID_BYTES];
	char creator[NAMED_CREATOR_BYTES + 1];

	named_random_id(id); /* not the name's id, from which the owner must not be guessed */
	(void)snprintf(owner, sizeof(owner), NAMED_CALL_OWNER "%s", id);
	(void)snprintf(creator, sizeof(creator), "%s", ak->view.creator);
	named_work_for(ak, owner, creator);
}

/* The command of `run -d` comes back at each later start. */
static int keep_as_main(struct ak *ak, const struct op_run_args *args, char **argv, uint32_t id,
			const struct named *n, struct err *e)
{
	CLEANUP(services_done) struct services all = { 0 };

	if (op_service_compose(args->request, argv, &all, e) < 0)
		return -1;
	all.list[0].is_once = true;
	all.list[0].task_id = id;
	return reconfigure_services(ak, n->name, &all.list[0], NULL, e);
}

static int execute_in(struct ak *ak, const struct op_run_args *args, char **argv, struct named *n,
		      const struct op_events *ev, struct op_run_result *ret, struct err *e)
{
	const struct execute_options command = {
		.name = n->name,
		.ak = ak,
		.argv = argv,
		.tty = args->tty,
		.is_captured = args->is_captured,
		.timeout_ms = args->files ? args->request->policy.timeout_ms : 0,
		.lifeline_fd = ak->lifeline_fd,
	};
	uint32_t id = 0;
	int r;

	if (lifecycle_start_locked(ak, n, e) < 0 || place_files(ak, args, n->name, e) < 0)
		return -1;
	if (args->is_detached)
		return execute_detached(&command, &id, e) < 0
			       ? -1
			       : keep_as_main(ak, args, argv, id, n, e);
	if (is_abandoned(ak))
		return err_set(e, ERR_SYSTEM, "the caller is gone");
	op_command_begins(ev);
	r = execute_command(&command, &ret->end, e);
	op_command_ended(ev);
	return r;
}

static int create(struct ak *ak, const struct op_run_args *args, struct images *image,
		  const char *name, struct named *n, struct err *e)
{
	char *calls_labels[] = { (char *)(uintptr_t) "agentkernel=run", NULL };
	CLEANUP(services_done) struct services services = { 0 };
	const struct policy *policy = &args->request->policy;
	const struct lifecycle_request q = {
		.services = &services,
		.ak = ak,
		.name = name,
		.policy = policy,
		.image = image->lock_fd >= 0 ? image : NULL,
		.labels = args->files ? calls_labels : args->labels,
		.ttl_ms = args->files ? policy->timeout_ms + SPARE_TTL_MS : args->ttl_ms,
		.init = request_init(args->request),
	};

	/* one that is kept for its files alone, or made for one call, has none */
	if (args->is_detached && op_service_compose(args->request, NULL, &services, e) < 0)
		return -1;
	return lifecycle_create(&q, n, e);
}

static int run_named(struct ak *ak, const struct op_run_args *args, char **argv,
		     struct images *image, const struct op_events *ev, struct op_run_result *ret,
		     struct err *e)
{
	CLEANUP(named_done) struct named n;
	char name[NAMED_NAME_MAX_BYTES + 1], id[NAMED_ID_BYTES + 1];
	struct err ignored;
	int r;

	named_init(&n);
	named_random_id(id);
	(void)snprintf(name, sizeof(name), "run-%.*s", args->files ? 12 : 8, id);
	if (args->name)
		(void)snprintf(name, sizeof(name), "%s", args->name);
	if (args->files)
		work_for_this_call(ak);
	op_guards_lifeline(ev); /* from here on there is a sandbox to remove */
	if (create(ak, args, image, name, &n, e) < 0)
		return -1;
	r = execute_in(ak, args, argv, &n, ev, ret, e);
	if (r < 0 || args->files) {
		named_unlock(&n);
		(void)!lifecycle_remove(ak, name, LIFECYCLE_FORCE, &ignored);
		return r;
	}
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	if (args->is_detached)
		return 0;
	/* ignore errors: it may have expired, or another command stopped it */
	(void)!lifecycle_stop(ak, name, LIFECYCLE_STOP_DEFAULT_MS, 0, &ignored);
	namedfile_take_notices(&n, &ret->end.notices);
	op_remark(ev, "kept as %s ('agentkernel start %s' goes on with it)", name, name);
	return 0;
}

/* ---- a plain run ---- */

static void on_published(void *context, const struct published *ports)
{
	portview_remark_all(context, ports);
}

static int run_fresh(const struct ak *ak, const struct op_run_args *args, char **argv,
		     struct images *image, const struct op_events *ev, struct run_result *ret,
		     struct err *e)
{
	const struct run_options options = {
		.policy = &args->request->policy,
		.ak = ak,
		.image = image->lock_fd >= 0 ? image : NULL,
		.argv = argv,
		.tty = args->tty,
		.is_captured = args->is_captured,
		.lifeline_fd = ak->lifeline_fd,
		.on_published = on_published,
		.context = (void *)(uintptr_t)ev,
	};
	int r;

	op_guards_lifeline(ev);
	op_command_begins(ev);
	r = claimed_run(&options, ret, e);
	op_command_ended(ev);
	return r;
}

/*
 * Composes the command line. The entrypoint of a detected image is not used, because it would often
 * be the same program as the typed command.
 */
static int compose(const struct op_run_args *args, const struct images *image, char ***ret,
		   struct err *e)
{
	const char *entrypoint = args->entrypoint;

	if (image->lock_fd < 0 && entrypoint)
		return err_set(e, ERR_INVALID, "--entrypoint needs an image (add --image)");
	if (args->has_no_entrypoint || (args->request->is_image_detected && !entrypoint))
		entrypoint = "";
	*ret = images_compose(image, entrypoint, args->command);
	if (!*ret)
		return err_set(
			e, ERR_INVALID,
			"the image does not say what to run: agentkernel run [options] COMMAND");
	return 0;
}

static int resolve(const struct op_run_args *args, const struct op_events *ev, struct err *e)
{
	struct request *r = args->request;

	if (request_resolve(r, args->command[0], ev, e) < 0)
		return -1;
	if (!args->command[0] && (policy_is_host_image(&r->policy) || r->is_image_detected))
		return err_set(e, ERR_INVALID,
			       "no command to run: agentkernel run [options] COMMAND");
	if (!r->server)
		remark_idle_rule(&r->policy, ev);
	if (args->is_verbose)
		remark_kept_back(r, ev);
	return 0;
}

int op_run(struct ak *ak, const struct op_run_args *args, const struct op_events *ev,
	   struct op_run_result *ret, struct err *e)
{
	struct request *request = args->request;
	bool is_named = args->is_kept || args->name || args->is_detached || args->files;
	CLEANUP(images_done) struct images image;
	cleanup_free char **argv = NULL;
	cleanup_free char *init_text = NULL;
	int r;

	images_init(&image);
	if ((!is_named || args->files) && (settings_have(&request->settings, POLICY_IDLE_TIMEOUT) ||
					   settings_have(&request->settings, POLICY_IDLE)))
		return err_set(e, ERR_INVALID,
			       "--idle-timeout and --idle are for sandboxes that stay (add --keep "
			       "or --detach)");
	if (resolve(args, ev, e) < 0 ||
	    pickimage_open(request, args->command[0], ev, &image, e) < 0 ||
	    compose(args, &image, &argv, e) < 0)
		return -1;
	if (!is_named) /* a named sandbox runs init at its first start */
		request_put_init_first(request, &argv, &init_text);
	r = is_named ? run_named(ak, args, argv, &image, ev, ret, e)
		     : run_fresh(ak, args, argv, &image, ev, &ret->end, e);
	if (r < 0 && request->is_image_detected && image.lock_fd >= 0 &&
	    e->code == ERR_COMMAND_NOT_FOUND)
		return err_wrap(e, "%s, %s (--image takes another, --image host this machine's)",
				request->policy.image, request->policy.origin[POLICY_IMAGE].text);
	return r;
}
