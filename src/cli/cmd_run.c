/* cmd_run - agentkernel run: one command in a fresh sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "engine/images.h"
#include "engine/run.h"
#include "policy/environment.h"
#include "policy/policyimage.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

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
	"agentkernel run --mount ./data:/data:ro --memory 4G sort /data/big",
	"one directory of yours, read-only, and more memory than usual",
	NULL,
};

/* stdout and stderr hold at most 6 escaped characters a byte. */
#define JSON_MAX_BYTES (13u * STREAMS_CAPTURE_MAX_BYTES)

/* The command's status tells the rest; these would look like crashes of its own. */
static void explain_end(const struct run_result *r, const struct policy *p)
{
	char amount[PARSE_FORMAT_MAX_BYTES];

	switch (r->end) {
	case RUN_TIMED_OUT:
		cli_say("the command was ended after %s (--timeout)",
			parse_format_duration(p->timeout_ms, amount));
		break;
	case RUN_OUT_OF_CPU:
		cli_say("the command used up its processor time of %s (--cpu-time)",
			parse_format_duration(p->cpu_time_ms, amount));
		break;
	case RUN_OUT_OF_MEMORY:
		cli_say("the command ran out of memory: its limit is %s (raise it with --memory)",
			parse_format_bytes(p->memory_bytes, amount));
		break;
	case RUN_OUT_OF_PIDS:
		cli_say("the command had more processes than its limit of %" PRIu64
			" (raise it with --pids)",
			p->pids_count);
		break;
	case RUN_EXITED:
	case RUN_SIGNALLED:
		if (r->has_oom)
			cli_say("a process inside was killed for lack of memory: the limit is %s "
				"(raise "
				"it with --memory)",
				parse_format_bytes(p->memory_bytes, amount));
		break;
	}
}

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

static int print_json(const struct run_result *r, const struct policy *p, struct err *e)
{
	cleanup_buf struct buf out;
	struct json j;

	buf_init(&out, JSON_MAX_BYTES);
	json_init(&j, &out);
	json_open_object(&j, NULL);
	json_add_number(&j, "exit_code", r->exit_code);
	if (r->signal_number)
		json_add_number(&j, "signal", r->signal_number);
	else
		json_add_null(&j, "signal");
	json_add_bytes(&j, "stdout", buf_text(&r->output[0]), r->output[0].len);
	json_add_bytes(&j, "stderr", buf_text(&r->output[1]), r->output[1].len);
	json_add_bool(&j, "stdout_cut", r->output[0].is_cut);
	json_add_bool(&j, "stderr_cut", r->output[1].is_cut);
	json_add_number(&j, "duration_ms", (int64_t)r->duration_ms);
	json_add_bool(&j, "timed_out", r->end == RUN_TIMED_OUT);
	json_add_bool(&j, "oom", r->has_oom);
	json_add_number(&j, "cpu_ms", (int64_t)r->cpu_ms);
	json_add_number(&j, "peak_memory", (int64_t)r->peak_memory_bytes);
	json_open_array(&j, "denied");
	for (unsigned i = 0; i < r->denial_count; i++) {
		json_open_object(&j, NULL);
		json_add_text(&j, "host", r->denials[i].host);
		json_add_number(&j, "port", r->denials[i].port);
		json_add_text(&j, "reason", r->denials[i].reason);
		json_add_text(&j, "fix", r->denials[i].fix);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_add_text(&j, "image", p->image);
	json_add_text(&j, "backend", "native");
	json_close_object(&j);
	buf_add_text(&out, "\n");
	return cli_print(&out, e);
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

static int choose_tty(const struct request_flags *f, enum streams_tty *ret, struct err *e)
{
	if (f->has_tty && f->has_no_tty)
		return err_set(e, ERR_INVALID, "--tty and --no-tty exclude each other");
	*ret = f->has_tty ? STREAMS_TTY_ON : f->has_no_tty ? STREAMS_TTY_OFF : STREAMS_TTY_AUTO;
	return 0;
}

static int choose_pull(const struct request_flags *f, enum images_pull *ret, struct err *e)
{
	static const char *const names[] = {
		[IMAGES_PULL_MISSING] = "missing",
		[IMAGES_PULL_ALWAYS] = "always",
		[IMAGES_PULL_NEVER] = "never",
	};

	*ret = IMAGES_PULL_MISSING;
	if (!f->pull)
		return 0;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (strcmp(names[i], f->pull) != 0)
			continue;
		*ret = (enum images_pull)i;
		return 0;
	}
	return err_set(e, ERR_INVALID, "--pull: no '%s' (use missing, always or never)", f->pull);
}

static bool is_on_host(const char *command)
{
	const char *dirs = ENVIRONMENT_PATH;
	char path[PATH_MAX];

	if (strchr(command, '/'))
		return true; /* of a mount, perhaps: the sandbox will tell */
	for (; *dirs; dirs += strspn(dirs, ":")) {
		size_t len = strcspn(dirs, ":");

		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)len, dirs, command);
		if (access(path, X_OK) == 0)
			return true;
		dirs += len;
	}
	return false;
}

/* It came, and something is wrong with it: that is worth stopping for. */
static bool is_refused(const struct err *why)
{
	return why->code == ERR_INVALID || why->code == ERR_LIMIT || why->code == ERR_UNSUPPORTED ||
	       why->code == ERR_CORRUPT;
}

/* Nobody asked for this image: this machine's own program serves as well. */
static int fall_back(struct request *r, const char *command, const struct err *why, struct err *e)
{
	if (!command || !is_on_host(command)) {
		*e = *why;
		return -1;
	}
	cli_say("%s; running this machine's own '%s' (--image host does so at once)", why->msg,
		command);
	return policyimage_use_host(&r->policy, "fallback", e);
}

/* Opens the image that the policy names; none is open for the host's. */
static int open_image(struct request *r, const char *command, struct images *ret, struct err *e)
{
	struct images_request q = {
		.reference = r->policy.image,
		.environ_list = r->caller.environ_list,
		.flags = (r->flags.is_json ? IMAGES_QUIET : 0) |
			 (r->is_image_detected ? IMAGES_DETECTED : 0),
	};
	struct err why = { 0 };
	struct policyimage config;

	if (choose_pull(&r->flags, &q.pull, e) < 0)
		return -1;
	if (policy_is_host_image(&r->policy))
		return 0;
	if (r->is_image_detected && !r->flags.pull &&
	    images_was_unreachable(q.reference, q.environ_list))
		q.pull = IMAGES_PULL_NEVER;
	if (images_open(&q, ret, &why) < 0) {
		if (!r->is_image_detected || is_refused(&why)) {
			*e = why;
			return -1;
		}
		if (q.pull != IMAGES_PULL_NEVER)
			images_note_unreachable(q.reference, q.environ_list);
		else if (!r->flags.pull)
			(void)err_set(&why, ERR_NOT_FOUND,
				      "image '%s' could not be pulled a few minutes ago",
				      q.reference);
		return fall_back(r, command, &why, e);
	}
	config = images_config(ret);
	return policyimage_apply(&r->policy, &config, e);
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

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(request_done) struct request request = { 0 };
	CLEANUP(run_result_done) struct run_result result = { 0 };
	CLEANUP(images_done) struct images image;
	cleanup_free char **composed = NULL;
	struct run_options options = { .policy = &request.policy, .caller = &request.caller };

	images_init(&image);
	if (request_read(&request_options, argv, context->environ_list, &request, e) < 0)
		return -1;
	if (!argv[request.used] &&
	    (policy_is_host_image(&request.policy) || request.is_image_detected))
		return err_set(e, ERR_INVALID,
			       "no command to run: agentkernel run [options] COMMAND");
	if (choose_tty(&request.flags, &options.tty, e) < 0)
		return -1;
	warn_of_idle_rule(&request.policy);
	if (open_image(&request, argv[request.used], &image, e) < 0 ||
	    compose(&request, &image, argv + request.used, &composed, e) < 0)
		return -1;
	options.argv = composed;
	options.image = image.lock_fd >= 0 ? &image : NULL;
	options.is_captured = request.flags.is_json;
	if (run_command(&options, &result, e) < 0) {
		if (request.is_image_detected && options.image && e->code == ERR_COMMAND_NOT_FOUND)
			return err_wrap(
				e, "%s, %s (--image takes another, --image host this machine's)",
				request.policy.image, request.policy.origin[POLICY_IMAGE]);
		return -1;
	}
	if (result.gate_deaths)
		cli_say("the network broke down %u times%s%s", result.gate_deaths,
			result.gate_trouble ? ": " : "",
			result.gate_trouble ? result.gate_trouble : "");
	if (!request.flags.is_json && result.exit_code != 0)
		explain_denials(&result);
	if (!request.flags.is_json)
		explain_end(&result, &request.policy);
	else if (print_json(&result, &request.policy, e) < 0)
		return -1;
	*ret_status = result.exit_code;
	return 0;
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
