/* cmd_daemon - agentkernel daemon start, stop, status, prewarm: the pool of ready sandboxes. */
#include "base/buf.h"
#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/errcode.h"
#include "base/file.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "ops/pickimage.h"
#include "cli/runoptions.h"
#include "cli/words.h"
#include "pool/claim.h"
#include "pool/daemon.h"
#include "pool/daemonclient.h"
#include "pool/pools.h"
#include "engine/images.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACTIVATION_FD 3 /* a service manager passes the listening socket here */

static const char *const examples[] = {
	"agentkernel daemon start",
	"from now on run, MCP and HTTP take a sandbox that waits ready, where one fits exactly",
	"agentkernel daemon prewarm --image python:3.12-alpine --count 5",
	"five more of these, always",
	"agentkernel daemon prewarm --mode claude",
	"for 'run -m claude' and 'agent run claude', in any directory",
	"agentkernel daemon status",
	"what waits, and how often it was of use",
	NULL,
};

struct start_flags {
	bool is_foreground;
};

static const struct opt start_rows[] = {
	{ "Options", "foreground", 0, NULL, "stay: for service managers", .kind = OPT_FLAG,
	  .offset = offsetof(struct start_flags, is_foreground) },
};
static const struct opts_table start_options = { start_rows, COUNT_OF(start_rows) };

struct status_flags {
	bool is_json;
};

static const struct opt status_rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct status_flags, is_json) },
};
static const struct opts_table status_options = { status_rows, COUNT_OF(status_rows) };
static const struct opts_table no_options = { NULL, 0 };

/* ---- start ---- */

struct plan {
	struct buf keys[CONFIGURATION_AGENTS_MAX];
	struct daemon_pool pools[CONFIGURATION_AGENTS_MAX];
	struct daemon_options options;
};

static void plan_done(struct plan *p)
{
	for (size_t i = 0; i < COUNT_OF(p->keys); i++)
		buf_done(&p->keys[i]);
}

/*
 * Resolves the policy that `run` would have with that image and mode. The client of a sandbox has
 * its own workspace: this process's directory may be unsuitable, so POLICY_BY_CALLER skips the
 * check.
 */
static int resolve_pool(struct runoptions *o, const struct configuration_pool *pool,
			const struct ak *ak, struct err *e)
{
	const struct policy_setting image = { POLICY_IMAGE,
					      pool->image ? pool->image : POLICY_HOST_IMAGE,
					      "[daemon]", POLICY_BY_COMMAND_LINE };
	const struct policy_setting mode = { POLICY_MODE, pool->agent, "[daemon]",
					     POLICY_BY_CALLER };
	char *none[] = { NULL };
	const char *words[1];
	unsigned count = 0;

	if (runoptions_collect(&runoptions_policy, none, ak, o, words, 0, &count, e) < 0)
		return -1;
	if (settings_add(&o->request.settings, &image, e) < 0 ||
	    (pool->agent && settings_add(&o->request.settings, &mode, e) < 0))
		return -1;
	o->request.is_quiet = true;
	return request_resolve(&o->request, NULL, &cli_events, e);
}

static int add_pool(struct plan *p, const struct configuration_pool *pool, unsigned min_warm,
		    const struct ak *ak, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	CLEANUP(images_done) struct images image;
	unsigned index = p->options.pool_count;

	images_init(&image);
	if (resolve_pool(&o, pool, ak, e) < 0 ||
	    pickimage_open(&o.request, NULL, &cli_events, &image, e) < 0)
		return err_wrap(e, "[daemon]%s%s", pool->agent ? " agents." : "",
				pool->agent ? pool->agent : "");
	if (!claim_format_key(&o.request.policy, image.lock_fd >= 0 ? &image : NULL,
			      &p->keys[index]))
		return 0; /* such sandboxes cannot be pooled */
	p->pools[index] = (struct daemon_pool){ .key = p->keys[index].bytes,
						.key_len = p->keys[index].len,
						.min_warm = min_warm };
	p->options.pool_count++;
	return 0;
}

/* Reads only the user's own file: a project's file must not start processes that stay. */
static int make_plan(struct plan *p, const struct ak *ak, struct err *e)
{
	CLEANUP(configfile_done) struct configfile files = { 0 };
	struct ak nowhere = *ak;
	const struct configuration_pool *pools;
	const struct configuration_pool usual = { 0 };

	for (size_t i = 0; i < COUNT_OF(p->keys); i++)
		buf_init(&p->keys[i], CLAIM_KEY_MAX_BYTES);
	nowhere.caller.cwd = NULL;
	if (configfile_load(&nowhere, NULL, &files, e) < 0)
		return -1;
	pools = files.user.pool_count ? files.user.pools : &usual;
	p->options = (struct daemon_options){
		.ak = ak,
		.pools = p->pools,
		.min_warm = pools[0].min_warm ? (unsigned)pools[0].min_warm : DAEMON_WARM_DEFAULT,
		.max_warm = pools[0].max_warm ? (unsigned)pools[0].max_warm : POOLS_WARM_MAX,
		.listen_fd = -1,
		.ready_fd = -1,
	};
	if (add_pool(p, &pools[0], p->options.min_warm, ak, e) < 0)
		return -1;
	for (unsigned i = 1; i < files.user.pool_count; i++)
		if (add_pool(p, &pools[i],
			     pools[i].min_warm ? (unsigned)pools[i].min_warm : p->options.min_warm,
			     ak, e) < 0)
			return -1;
	return 0;
}

/* The relevant part of sd_listen_fds(3). */
static int find_activation_fd(const struct ak *ak)
{
	const char *pid = environment_get(ak->caller.environ_list, "LISTEN_PID");
	const char *count = environment_get(ak->caller.environ_list, "LISTEN_FDS");

	if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid() ||
	    strtol(count, NULL, 10) != 1)
		return -1;
	(void)fcntl(ACTIVATION_FD, F_SETFD, FD_CLOEXEC);
	(void)fcntl(ACTIVATION_FD, F_SETFL, O_RDWR | O_NONBLOCK);
	return ACTIVATION_FD;
}

/* The child closes the pipe when it listens, and writes an error to it if it fails. */
static _Noreturn void be_daemon(struct plan *p, int ready_fd)
{
	struct err e = { 0 };
	int r;

	(void)setsid();
	(void)!chdir("/");
	p->options.ready_fd = ready_fd;
	r = file_leave_streams();
	if (r < 0)
		(void)err_sys(&e, -r, "let go of the caller's streams");
	if (r < 0 || daemon_serve(&p->options, &e) < 0) {
		(void)!write(ready_fd, &e, sizeof(e));
		_exit(ERRCODE_EXIT_FAILED);
	}
	_exit(0);
}

static int start_in_background(struct plan *p, struct err *e)
{
	struct err told;
	int ends[2];
	pid_t pid;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "create a pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		be_daemon(p, ends[1]);
	}
	(void)close(ends[1]);
	n = pid < 0 ? -1 : read(ends[0], &told, sizeof(told));
	(void)close(ends[0]);
	if (pid < 0)
		return err_sys(e, errno, "start a process");
	if (n == (ssize_t)sizeof(told)) {
		*e = told;
		return -1;
	}
	return 0;
}

static int run_start(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(plan_done) struct plan plan = { 0 };
	const struct words_rule rule = { .usage = "daemon start", .options = &start_options };
	struct start_flags flags = { 0 };
	unsigned count = 0;
	char *words[1];

	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    make_plan(&plan, context->ak, e) < 0)
		return -1;
	*ret_status = 0;
	if (!flags.is_foreground)
		return start_in_background(&plan, e);
	plan.options.listen_fd = find_activation_fd(context->ak);
	return daemon_serve(&plan.options, e);
}

/* ---- other commands ---- */

static int read_nothing(char **argv, const char *usage, const struct opts_table *options,
			void *flags, struct err *e)
{
	const struct words_rule rule = { .usage = usage, .options = options };
	unsigned count = 0;
	char *words[1];

	return words_read(&rule, argv, flags, NULL, words, &count, e);
}

static int run_stop(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	if (read_nothing(argv, "daemon stop", &no_options, NULL, e) < 0)
		return -1;
	*ret_status = 0;
	return daemonclient_ask_stop(context->ak, e);
}

/* Pools are created again: those of [daemon] at once, others by the runs that need them. */
static int run_restart(const struct cli_context *context, char **argv, int *ret_status,
		       struct err *e)
{
	CLEANUP(plan_done) struct plan plan = { 0 };

	if (read_nothing(argv, "daemon restart", &no_options, NULL, e) < 0)
		return -1;
	if (daemonclient_ask_stop(context->ak, e) < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	*ret_status = 0;
	return make_plan(&plan, context->ak, e) < 0 ? -1 : start_in_background(&plan, e);
}

static int run_status(const struct cli_context *context, char **argv, int *ret_status,
		      struct err *e)
{
	struct status_flags flags = { 0 };
	cleanup_free char *text = NULL;
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (read_nothing(argv, "daemon status", &status_options, &flags, e) < 0 ||
	    daemonclient_ask_status(context->ak, flags.is_json, &text, e) < 0)
		return -1;
	buf_addf(&out, "%s%s", text, flags.is_json ? "\n" : "");
	if (!flags.is_json && !strstr(text, buildid_get()))
		buf_addf(&out,
			 "it is of another build than this program (%s), so no run uses it: "
			 "'agentkernel daemon restart' renews it\n",
			 buildid_get());
	*ret_status = 0;
	return cli_print(&out, e);
}

static int run_prewarm(const struct cli_context *context, char **argv, int *ret_status,
		       struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	CLEANUP(images_done) struct images image;
	uint64_t count = DAEMON_WARM_DEFAULT;
	const char *words[1];
	unsigned word_count = 0;

	images_init(&image);
	if (runoptions_collect(&runoptions_prewarm, argv, context->ak, &o, words, 0, &word_count,
			       e) < 0)
		return -1;
	for (size_t i = 0; i < o.request.settings.count; i++)
		o.request.settings.list[i].layer = POLICY_BY_CALLER; /* as in resolve_pool() */
	if (request_resolve(&o.request, NULL, &cli_events, e) < 0)
		return -1;
	if (o.flags.count && parse_count(o.flags.count, 0, POOLS_WARM_MAX, &count, e) < 0)
		return err_wrap(e, "--count");
	if (pickimage_open(&o.request, NULL, &cli_events, &image, e) < 0)
		return -1;
	*ret_status = 0;
	return daemonclient_ask_prewarm(context->ak, &o.request.policy,
					image.lock_fd >= 0 ? &image : NULL, (unsigned)count, e);
}

const struct cli_command cmd_daemon_start = {
	.name = "daemon start",
	.summary = "keep sandboxes ready, in the background",
	.usage = "[--foreground]",
	.text = "A sandbox that waits ready serves one command and is thrown away. It is used only "
		"where\n"
		"it is exactly what was asked for; otherwise, and without the daemon, sandboxes "
		"are "
		"built\n"
		"as they are needed. A workspace and mounts are added when a sandbox is taken. "
		"[daemon] in\n"
		"your own config.toml says how many wait, and of which images and agents.",
	.examples = examples,
	.options = &start_options,
	.run = run_start,
};

const struct cli_command cmd_daemon_stop = {
	.name = "daemon stop",
	.summary = "stop the daemon; commands in its sandboxes keep running",
	.usage = "",
	.options = &no_options,
	.run = run_stop,
};

const struct cli_command cmd_daemon_restart = {
	.name = "daemon restart",
	.summary = "restart the daemon with this build",
	.usage = "",
	.options = &no_options,
	.run = run_restart,
};

const struct cli_command cmd_daemon_status = {
	.name = "daemon status",
	.summary = "show which sandboxes wait ready, and how often they were used",
	.usage = "[--json]",
	.options = &status_options,
	.run = run_status,
};

const struct cli_command cmd_daemon_prewarm = {
	.name = "daemon prewarm",
	.summary = "keep sandboxes with these options ready",
	.usage = "[run's options] [--count N]",
	.options = &runoptions_prewarm,
	.run = run_prewarm,
};
