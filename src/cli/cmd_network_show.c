/* cmd_network_show - agentkernel network show: shows the rules in the order of their precedence. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/runoptions.h"
#include "ops/sandboxview.h"

static const char *const examples[] = {
	"agentkernel network show --network-policy deny --allow-host "
	"'*.example.org,api.example.com:443'",
	"the rules of such a sandbox, the most specific first",
	NULL,
};

static const char *action_word(enum egress_action action)
{
	return action == EGRESS_ALLOW ? "allow" : "block";
}

static void format_table(const struct policy *p, const struct egress_rule **order, struct buf *out)
{
	const struct egress *g = &p->egress;
	CLEANUP(table_freep) struct table *t = table_new(3);

	table_add_row(t, (const char *const[]){ "ACTION", "PATTERN", "SET BY" });
	for (unsigned i = 0; i < g->count; i++)
		table_add_row(t, (const char *const[]){ action_word(order[i]->action),
							order[i]->text, order[i]->origin });
	table_add_row(t, (const char *const[]){ action_word(g->fallback), "everything else",
						g->fallback_origin });
	table_format(t, out);
	buf_add_text(out,
		     "\nWhatever the rules for names say, addresses that are not public, or are\n"
		     "this machine's own, need a rule for addresses; a cloud's metadata service\n"
		     "needs one for its exact address; this machine's loopback needs a rule "
		     "for\n" EGRESS_HOST_NAME ":PORT.\n");
}

static void format_json(const struct policy *p, const struct egress_rule **order, struct buf *out)
{
	const struct egress *g = &p->egress;
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_bool(&j, "network", p->has_network);
	json_add_text(&j, "default", action_word(g->fallback));
	json_add_text(&j, "default_set_by", g->fallback_origin);
	json_open_array(&j, "rules");
	for (unsigned i = 0; i < g->count; i++) {
		json_open_object(&j, NULL);
		json_add_text(&j, "action", action_word(order[i]->action));
		json_add_text(&j, "pattern", order[i]->text);
		json_add_text(&j, "set_by", order[i]->origin);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	cleanup_free const struct egress_rule **order = NULL;
	CLEANUP(policy_done) struct policy own = { 0 };
	const struct policy *p = &o.request.policy;
	const char *name = NULL;
	unsigned count = 0;
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (runoptions_read_words(&runoptions_policy, argv, context->ak, &o, &name, 1, &count, e) <
	    0)
		return -1;
	if (name) {
		if (sandboxview_load_policy(context->ak, name, &o.request, &own, e) < 0)
			return -1;
		p = &own;
	}
	order = mem_alloc((p->egress.count + 1) * sizeof(*order));
	egress_order(&p->egress, order);
	if (o.flags.is_json)
		format_json(p, order, &out);
	else if (p->has_network)
		format_table(p, order, &out);
	else
		buf_addf(&out, "no network (%s)\n", p->origin[POLICY_NETWORK].text);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_network_show = {
	.name = "network show",
	.summary =
		"show the network rules of a sandbox, or of one with these options, first to last",
	.usage = "[NAME | run's options]",
	.examples = examples,
	.options = &runoptions_policy,
	.run = run,
};
