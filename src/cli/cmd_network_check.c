/* cmd_network_check - agentkernel network check: may a sandbox with these options go there? */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "cli/sandboxview.h"

#define DEFAULT_PORT 443
#define DENIED_STATUS 1

static const char *const examples[] = {
	"agentkernel network check --network-policy deny --allow-host '*.example.org' "
	"api.example.org",
	"allowed, and by which rule",
	"agentkernel network check 169.254.169.254:80",
	"denied, and why; the exit status is 1",
	NULL,
};

struct answer {
	bool is_allowed;
	struct buf target, reason, fix;
	const char *note; /* or NULL */
};

static void answer_done(struct answer *a)
{
	buf_done(&a->target);
	buf_done(&a->reason);
	buf_done(&a->fix);
}

static void format_target(const struct egress_target *t, struct buf *out)
{
	char text[ADDRESS_TEXT_MAX_BYTES];

	if (t->name)
		buf_addf(out, "%s:%u", t->name, t->port);
	else
		buf_addf(out, t->address.bits == 128 ? "[%s]:%u" : "%s:%u",
			 address_format(&t->address, text), t->port);
}

static const char *find_note(const struct policy *p, const struct egress_target *t,
			     const struct egress_decision *d)
{
	if (t->name && d->is_allowed && !egress_is_host_name(t->name))
		return "its address is checked when it connects: private ones stay blocked";
	if (t->name && d->reason == EGRESS_BY_RULE && p->egress.fallback == EGRESS_ALLOW)
		return "everything else is allowed, so its address can still be reached as a "
		       "number";
	return NULL;
}

static void decide(const struct policy *p, const struct egress_target *t, struct answer *a)
{
	struct egress_decision d = { 0 };

	format_target(t, &a->target);
	if (!p->has_network) {
		buf_addf(&a->reason, "this sandbox has no network (%s)", p->origin[POLICY_NETWORK]);
		buf_add_text(&a->fix, "--network");
		return;
	}
	if (t->name)
		egress_decide_name(&p->egress, t->name, t->port, &d);
	else
		egress_decide_address(&p->egress, &t->address, t->port, EGRESS_NOT_OURS, &d);
	a->is_allowed = d.is_allowed;
	egress_format_reason(&p->egress, &d, &a->reason);
	egress_format_fix(&d, t->name, t->name ? NULL : &t->address, t->port, &a->fix);
	a->note = find_note(p, t, &d);
}

static void format_text(const struct answer *a, struct buf *out)
{
	buf_addf(out, "%s  %s  %s\n", a->is_allowed ? "allowed" : "denied", buf_text(&a->target),
		 buf_text(&a->reason));
	if (a->fix.len)
		buf_addf(out, "to allow it: %s\n", buf_text(&a->fix));
	if (a->note)
		buf_addf(out, "note: %s\n", a->note);
}

static void format_json(const struct answer *a, struct buf *out)
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
	CLEANUP(request_done) struct request request = { 0 };
	CLEANUP(egress_target_done) struct egress_target target = { 0 };
	CLEANUP(answer_done) struct answer answer = { 0 };
	cleanup_buf struct buf out;
	CLEANUP(policy_done) struct policy own = { 0 };
	const char *words[2] = { NULL };
	unsigned count = 0;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	buf_init(&answer.target, BUF_TEXT_MAX_BYTES);
	buf_init(&answer.reason, BUF_TEXT_MAX_BYTES);
	buf_init(&answer.fix, BUF_TEXT_MAX_BYTES);
	if (request_read_words(&request_policy_options, argv, context->environ_list, &request,
			       words, 2, &count, e) < 0)
		return -1;
	if (count == 0)
		return err_set(e, ERR_INVALID,
			       "no host to check: agentkernel network check [NAME] HOST[:PORT]");
	if (count == 2 &&
	    sandboxview_load_policy(context->environ_list, words[0], &request, &own, e) < 0)
		return -1;
	if (egress_parse_target(words[count - 1], &target, e) < 0)
		return -1;
	if (target.port == 0)
		target.port = DEFAULT_PORT;
	decide(count == 2 ? &own : &request.policy, &target, &answer);
	if (request.flags.is_json)
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
	.options = &request_policy_options,
	.run = run,
};
