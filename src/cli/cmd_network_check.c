/* cmd_network_check - agentkernel network check: may a sandbox with these options connect there? */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/shown.h"
#include "cli/commands.h"
#include "ops/networkview.h"
#include "cli/runoptions.h"
#include "ops/sandboxview.h"

#define DENIED_STATUS 1

static const char *const examples[] = {
	"agentkernel network check --network-policy deny --allow-host '*.example.org' "
	"api.example.org",
	"allowed, and by which rule",
	"agentkernel network check 169.254.169.254:80",
	"denied, and why; the exit status is 1",
	NULL,
};

static void format_text(const struct networkview_answer *a, struct buf *out)
{
	buf_addf(out, "%s  %s  %s\n", a->is_allowed ? "allowed" : "denied", buf_text(&a->target),
		 buf_text(&a->reason));
	if (a->fix.len)
		buf_addf(out, "to allow it: %s\n", buf_text(&a->fix));
	if (a->note)
		buf_addf(out, "note: %s\n", a->note);
	shown_replace_lines(out->bytes, out->len);
}

static void format_json(const struct networkview_answer *a, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_bool(&j, "allowed", a->is_allowed);
	json_add_text(&j, "target", buf_text(&a->target));
	json_add_text(&j, "reason", buf_text(&a->reason));
	json_add_text(&j, "fix", a->fix.len ? buf_text(&a->fix) : NULL);
	json_add_text(&j, "note", a->note);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	CLEANUP(networkview_answer_done) struct networkview_answer answer;
	cleanup_buf struct buf out;
	CLEANUP(policy_done) struct policy own = { 0 };
	const char *words[2] = { NULL };
	unsigned count = 0;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	networkview_answer_init(&answer);
	if (runoptions_read_words(&runoptions_policy, argv, context->ak, &o, words, 2, &count, e) <
	    0)
		return -1;
	if (count == 0)
		return err_set(e, ERR_INVALID,
			       "no host to check: agentkernel network check [NAME] HOST[:PORT]");
	if (count == 2 && sandboxview_load_policy(context->ak, words[0], &o.request, &own, e) < 0)
		return -1;
	if (networkview_decide(count == 2 ? &own : &o.request.policy, words[count - 1], &answer,
			       e) < 0)
		return -1;
	if (o.flags.is_json)
		format_json(&answer, &out);
	else
		format_text(&answer, &out);
	*ret_status = answer.is_allowed ? 0 : DENIED_STATUS;
	return cli_print(&out, e);
}

const struct cli_command cmd_network_check = {
	.name = "network check",
	.summary =
		"say whether a sandbox, or one with these options, may connect to a host, and why",
	.usage = "[NAME | run's options] HOST[:PORT]",
	.text = "Answers allowed (exit status 0) or denied (1), the rule, and where it came from.\n"
		"Without a port: for port 443. Nothing is looked up and nobody is contacted.",
	.examples = examples,
	.options = &runoptions_policy,
	.run = run,
};
