/* cmd_run - agentkernel run: one command in a fresh sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "cli/commands.h"
#include "cli/ending.h"
#include "cli/habits.h"
#include "cli/pickimage.h"
#include "cli/refusal.h"
#include "cli/request.h"
#include "named/execute.h"
#include "engine/images.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "engine/project.h"
#include "pool/claimed.h"
#include "engine/run.h"
#include "policy/credential.h"
#include "policy/environment.h"
#include "policy/policyimage.h"
#include "state/ak.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const examples[] = {
	"agentkernel run python3 -c 'print(6*7)'",
	"a script, in python's image, seeing nothing of yours",
	"agentkernel run -i debian:12 sh -c 'apt-get update && apt-get install -y jq && jq "
	"--version'",
	"any image, with its package manager; gone when it ends",
	"agentkernel run -i host --workspace sh -c 'make && make test'",
	"build the project in this directory with this machine's programs; nothing else is visible",
	"agentkernel run -p restrictive --timeout 10s -v ./untrusted:/untrusted:ro /untrusted",
	"a program of unknown intent: read-only root, small limits, ten seconds at most",
	"agentkernel run --keep -i debian:12 apt-get install -y jq",
	"the sandbox stays, stopped, with what it installed; start, exec and checkpoint work on it",
	"agentkernel run --mount ./data:/data:ro --memory 4G sort /data/big",
	"one directory of yours, read-only, and more memory than usual",
	NULL,
};

#define DENIALS_SHOWN 3u

/* What a program makes of "no such host" is anyone's guess; say what it was. */
static void explain_denials(const struct run_result *r)
{
	for (unsigned i = 0; i < r->denial_count && i < DENIALS_SHOWN; i++) {
		const struct gatekeeper_denial *d = &r->denials[i];

		char port[8] = "";

		if (d->port)
			(void)snprintf(port, sizeof(port), ":%u", d->port);
		cli_say("the network policy denied %s%s: %s%s%s%s", d->host, port, d->reason,
			d->fix[0] ? " (add " : "", d->fix, d->fix[0] ? ")" : "");
	}
	if (r->denial_count > DENIALS_SHOWN)
		cli_say("and %u more (see agentkernel network log)",
			r->denial_count - DENIALS_SHOWN);
}

/* Harmless, but whoever typed it thinks that it shuts something. */
static void warn_of_idle_rule(const struct policy *p)
{
	const struct egress_rule *idle = p->has_network ? egress_find_idle(&p->egress) : NULL;

	if (idle)
		cli_say("%s %s changes nothing, everything is allowed already (add "
			"--network-policy deny to allow nothing else)",
			idle->origin, idle->text);
}

static void tell_masked(const struct policy *p, struct buf *out)
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

/* --verbose: what of the caller's is kept back although the policy shows its surroundings. */
static void tell_kept_back(const struct request *r)
{
	cleanup_buf struct buf masked, dropped;

	buf_init(&masked, BUF_TEXT_MAX_BYTES);
	buf_init(&dropped, BUF_TEXT_MAX_BYTES);
	tell_masked(&r->policy, &masked);
	environment_format_dropped(&r->policy, &r->ak->caller, &dropped);
	if (masked.len)
		cli_say("masked: %s (--unmask shows one)", buf_text(&masked));
	if (dropped.len)
		cli_say("variables kept out: %s (-e NAME passes one)", buf_text(&dropped));
}

static int choose_tty(const struct request_flags *f, enum streams_tty *ret, struct err *e)
{
	if (f->has_tty && f->has_no_tty)
		return err_set(e, ERR_INVALID, "--tty and --no-tty exclude each other");
	*ret = f->has_tty ? STREAMS_TTY_ON : f->has_no_tty ? STREAMS_TTY_OFF : STREAMS_TTY_AUTO;
	return 0;
}

/*
 * What is executed. An image that was detected serves the command that was typed: its entrypoint
 * would often be that very program.
 */
static int compose(const struct request *r, const struct images *image, char **command, char ***ret,
		   struct err *e)
{
	const char *entrypoint = r->flags.entrypoint;

	if (image->lock_fd < 0 && entrypoint)
		return err_set(e, ERR_INVALID, "--entrypoint needs an image (add --image)");
	*ret = images_compose(image, r->is_image_detected && !entrypoint ? "" : entrypoint,
			      command);
	if (!*ret)
		return err_set(
			e, ERR_INVALID,
			"the image does not say what to run: agentkernel run [options] COMMAND");
	return 0;
}

static int check_kept(const struct request_flags *f, struct err *e)
{
	if (f->is_removed && (f->is_kept || f->name || f->is_detached))
		return err_set(
			e, ERR_INVALID,
			"--rm keeps nothing, and %s keeps the sandbox (leave --rm out; --ttl "
			"1h removes it later)",
			f->is_detached ? "--detach"
			: f->name      ? "--name"
				       : "--keep");
	if (f->is_detached && f->is_json)
		return err_set(e, ERR_INVALID, "--detach prints a name, and --json an object");
	if (f->is_kept || f->name || f->is_detached)
		return f->name ? named_check_name(f->name, e) : 0;
	if (f->labels.count > 0)
		return err_set(e, ERR_INVALID, "--label is for sandboxes that stay (add --keep)");
	if (f->ttl)
		return err_set(e, ERR_INVALID, "--ttl is for sandboxes that stay (add --keep)");
	return 0;
}

static int print_name(const char *name, struct err *e)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_addf(&out, "%s\n", name);
	return cli_print(&out, e);
}

/* A sandbox that stays, with the one command in it; stopped when that has ended. */
static int run_kept(struct request *r, const struct run_options *o, const char *name,
		    struct run_result *ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	const struct ak *ak = r->ak;
	struct lifecycle_request q = {
		.ak = ak,
		.name = name,
		.policy = o->policy,
		.image = o->image,
		.labels = (char *const *)(uintptr_t)r->flags.labels.texts,
		.init = request_init(r),
	};
	const struct execute_options command = {
		.name = name,
		.ak = r->ak,
		.argv = o->argv,
		.tty = o->tty,
		.is_captured = o->is_captured,
	};
	struct err ignored;
	uint32_t id = 0;

	named_init(&n);
	if (request_read_ttl(&r->flags, &q.ttl_ms, e) < 0 || lifecycle_create(&q, &n, e) < 0)
		return -1;
	if (lifecycle_start_locked(ak, &n, e) < 0 ||
	    (r->flags.is_detached ? execute_detached(&command, &id, e)
				  : execute_command(&command, ret, e)) < 0) {
		named_unlock(&n);
		(void)!lifecycle_remove(ak, name, LIFECYCLE_FORCE, &ignored);
		return -1;
	}
	if (r->flags.is_detached)
		return print_name(name, e);
	/* it may have expired, or have been stopped by another */
	(void)!lifecycle_stop(ak, name, LIFECYCLE_STOP_DEFAULT_MS, 0, &ignored);
	named_take_notices(&n, &ret->notices);
	cli_say("kept as %s ('agentkernel start %s' goes on with it)", name, name);
	return 0;
}

static int run_one(struct request *r, const struct run_options *o, struct run_result *ret,
		   struct err *e)
{
	char name[NAMED_NAME_MAX_BYTES + 1], id[NAMED_ID_BYTES + 1];

	if (!r->flags.is_kept && !r->flags.name && !r->flags.is_detached)
		return claimed_run(o, ret, e);
	named_random_id(id);
	(void)snprintf(name, sizeof(name), "run-%.8s", id);
	return run_kept(r, o, r->flags.name ? r->flags.name : name, ret, e);
}

/* Is this directory, or one that holds it, visible inside? */
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

/* The first word after the command that is a file of this directory; NULL: none. */
static const char *find_file_word(char *const *argv)
{
	for (size_t i = 1; argv[0] && argv[i]; i++)
		if (argv[i][0] != '-' && argv[i][0] != '/' && access(argv[i], F_OK) == 0)
			return argv[i];
	return NULL;
}

/* The command may have failed for want of files that are here and that it cannot see. */
static void hint_at_workspace(const struct request *r, char *const *argv)
{
	char origin[REQUEST_ORIGIN_MAX_BYTES] = "";
	const char *file;

	if (!r->ak->caller.cwd || is_cwd_shown(r))
		return;
	file = find_file_word(argv);
	if (file)
		cli_say("'%s' is in this directory, which is not visible inside (add --workspace, "
			"or "
			"-W in short)",
			file);
	else if (project_detect(r->ak->caller.cwd, NULL, origin, sizeof(origin)) ||
		 access("Makefile", F_OK) == 0)
		cli_say("the project in this directory is not visible inside (add --workspace, or "
			"-W "
			"in short)");
}

static int report_end(const struct request *r, const struct run_result *result, char *const *argv,
		      struct err *e)
{
	if (r->flags.is_detached)
		return 0;
	if (result->gate_deaths)
		cli_say("the network broke down %u time%s%s%s", result->gate_deaths,
			result->gate_deaths == 1 ? "" : "s", result->gate_trouble ? ": " : "",
			result->gate_trouble ? result->gate_trouble : "");
	if (result->has_outdated_daemon && isatty(STDERR_FILENO))
		cli_say("the daemon is of another build than this program, and was not used "
			"('agentkernel daemon restart' renews it)");
	if (r->flags.is_json)
		return ending_print_json(result, &r->policy, e);
	ending_tell_notices(result->notices);
	if (result->exit_code != 0) {
		explain_denials(result);
		if (!refusal_explain(argv, result))
			hint_at_workspace(r, argv);
	}
	ending_explain(result, &r->policy, r->policy.timeout_ms);
	return 0;
}

/* Whoever typed `run debian:12 bash` has docker's order in mind. */
static int explain_not_found(const struct request *r, const char *command, struct err *e)
{
	if (e->code != ERR_COMMAND_NOT_FOUND || !command || !strchr(command, ':') ||
	    !habits_is_image(command))
		return -1;
	(void)r;
	return err_wrap(e, "an image is named with -i (agentkernel run -i %s COMMAND)", command);
}

static int run_request(const struct cli_context *context, struct request *request, char **argv,
		       int *ret_status, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	CLEANUP(images_done) struct images image;
	cleanup_free char **composed = NULL;
	cleanup_free char *init_text = NULL;
	struct run_options options = { .policy = &request->policy, .ak = context->ak };

	images_init(&image);
	if (request_read(&request_options, argv, context->ak, request, e) < 0 ||
	    check_kept(&request->flags, e) < 0)
		return -1;
	if (!argv[request->used] &&
	    (policy_is_host_image(&request->policy) || request->is_image_detected))
		return err_set(e, ERR_INVALID,
			       "no command to run: agentkernel run [options] COMMAND");
	if (choose_tty(&request->flags, &options.tty, e) < 0)
		return -1;
	warn_of_idle_rule(&request->policy);
	if (request->flags.is_verbose)
		tell_kept_back(request);
	if (pickimage_open(request, argv[request->used], &image, e) < 0 ||
	    compose(request, &image, argv + request->used, &composed, e) < 0)
		return -1;
	/* one that stays runs it when it is started for the first time */
	if (!request->flags.is_kept && !request->flags.name && !request->flags.is_detached)
		request_put_init_first(request, &composed, &init_text);
	options.argv = composed;
	options.image = image.lock_fd >= 0 ? &image : NULL;
	options.is_captured = request->flags.is_json;
	if (run_one(request, &options, &result, e) < 0) {
		ending_tell_notices(result.notices);
		if (request->is_image_detected && options.image && e->code == ERR_COMMAND_NOT_FOUND)
			return err_wrap(
				e, "%s, %s (--image takes another, --image host this machine's)",
				request->policy.image, request->policy.origin[POLICY_IMAGE].text);
		return explain_not_found(request, argv[request->used], e);
	}
	*ret_status = result.exit_code;
	return report_end(request, &result, argv + request->used, e);
}

/* --json before the command's own words, also where the options cannot be read. */
static bool asks_for_json(char **argv)
{
	for (; *argv && (*argv)[0] == '-' && strcmp(*argv, "--") != 0; argv++)
		if (strcmp(*argv, "--json") == 0)
			return true;
	return false;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(request_done) struct request request = { 0 };
	struct err why;

	if (run_request(context, &request, argv, ret_status, e) == 0)
		return 0;
	if (!request.flags.is_json && !asks_for_json(argv))
		return -1;
	why = *e;
	*ret_status = ending_print_failure(&why, e);
	return *ret_status < 0 ? -1 : 0;
}

const struct cli_command cmd_run = {
	.name = "run",
	.summary = "run a command in a fresh sandbox that leaves nothing behind",
	.usage = "[options] [--] [COMMAND [ARG...]]",
	.text = "The command runs from an image: --image, else $AGENTKERNEL_IMAGE, else what the\n"
		"command or the files of this directory suggest, else \"host\", this machine's "
		"own\n"
		"programs, read-only. Of yours it sees no file, process or variable; its network "
		"is\n"
		"the public internet through the gate (--no-network for none). An image's own "
		"command\n"
		"runs when none is given. Streams, signals and the exit status pass through as if "
		"there\n"
		"were no sandbox. Exit status: the command's own; 124 deadline; 125 the sandbox "
		"could\n"
		"not be built; 126 not executable; 127 not found; 128+n ended by signal n.",
	.examples = examples,
	.options = &request_options,
	.run = run,
};
