/* cmd_policy_show - agentkernel policy show: shows the policy of given options, with origins. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/runoptions.h"
#include "engine/run.h"
#include "policy/policyshow.h"

#include <stdio.h>
#include <string.h>

#define VALUE_SHOWN_MAX_BYTES 80
#define CUT_NOTE " ... (--json has all)"

static const char *const examples[] = {
	"agentkernel policy show -p restrictive --memory 1G",
	"every value of that policy, and who set it",
	NULL,
};

/* Cuts long values, such as an agent's domains, which would widen every row of the table. */
static void add_value(struct table *t, const char *name, const char *value, const char *origin)
{
	char shown[VALUE_SHOWN_MAX_BYTES + sizeof(CUT_NOTE)];
	size_t len = strlen(value);

	if (len > VALUE_SHOWN_MAX_BYTES) {
		len = VALUE_SHOWN_MAX_BYTES;
		while (len > 0 && value[len - 1] != ',')
			len--;
		(void)snprintf(shown, sizeof(shown), "%.*s" CUT_NOTE, (int)len, value);
		value = shown;
	}
	table_add_row(t, (const char *const[]){ name, value, origin });
}

static void format_table(const struct policy *p, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(3);

	table_add_row(t, (const char *const[]){ "FIELD", "VALUE", "SET BY" });
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf value;

		buf_init(&value, BUF_TEXT_MAX_BYTES);
		policyshow_field(p, field, &value);
		add_value(t, policy_field_name(field), buf_text(&value), p->origin[field].text);
	}
	table_format(t, out);
	buf_addf(out, "\nLimits are enforced by: %s\n", run_limits_by(p));
}

static void format_json(const struct policy *p, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf value;

		buf_init(&value, BUF_TEXT_MAX_BYTES);
		policyshow_field(p, field, &value);
		json_open_object(&j, policy_field_name(field));
		json_add_text(&j, "value", buf_text(&value));
		json_add_text(&j, "set_by", p->origin[field].text);
		json_close_object(&j);
	}
	json_add_text(&j, "limits_by", run_limits_by(p));
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(runoptions_done) struct runoptions o = { 0 };
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (runoptions_parse(&runoptions_policy, argv, context->ak, &o, e) < 0 ||
	    request_resolve(&o.request, argv[o.used], &cli_events, e) < 0)
		return -1;
	if (argv[o.used])
		return err_set(e, ERR_INVALID, "'%s' is not an option of policy show",
			       argv[o.used]);
	if (o.flags.is_json)
		format_json(&o.request.policy, &out);
	else
		format_table(&o.request.policy, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_policy_show = {
	.name = "policy show",
	.summary = "show what a sandbox with these options may do, and who set each value",
	.usage = "[run's options]",
	.examples = examples,
	.options = &runoptions_policy,
	.run = run,
};
