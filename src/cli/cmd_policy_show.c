/* cmd_policy_show - agentkernel policy show: what the given options would allow, and why. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/request.h"
#include "engine/run.h"

#include <unistd.h>

static const char *const examples[] = {
	"agentkernel policy show -p restrictive --memory 1G",
	"every value of that policy, and who set it",
	NULL,
};

static void format_table(const struct policy *p, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(3);

	table_add_row(t, (const char *const[]){ "FIELD", "VALUE", "SET BY" });
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf value;

		buf_init(&value, BUF_TEXT_MAX_BYTES);
		policy_format_field(p, field, &value);
		table_add_row(t, (const char *const[]){ policy_field_name(field), buf_text(&value),
							p->origin[field] });
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
		policy_format_field(p, field, &value);
		json_open_object(&j, policy_field_name(field));
		json_add_text(&j, "value", buf_text(&value));
		json_add_text(&j, "set_by", p->origin[field]);
		json_close_object(&j);
	}
	json_add_text(&j, "limits_by", run_limits_by(p));
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings settings = { 0 };
	CLEANUP(policy_done) struct policy policy = { 0 };
	cleanup_buf struct buf out;
	struct request request = { 0 };
	char cwd[REQUEST_PATH_MAX_BYTES];
	struct policy_caller caller;
	int used = 0;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (opts_parse(&request_policy_options, argv, &request, &settings, &used, e) < 0)
		return -1;
	if (argv[used])
		return err_set(e, ERR_INVALID, "'%s' is not an option of policy show", argv[used]);
	request_caller(context->environ_list, cwd, &caller);
	if (policy_resolve(settings.list, settings.count, &caller, &policy, e) < 0)
		return -1;
	if (request.is_json)
		format_json(&policy, &out);
	else
		format_table(&policy, &out);
	(void)file_write_all(STDOUT_FILENO, out.bytes, out.len);
	*ret_status = 0;
	return 0;
}

const struct cli_command cmd_policy_show = {
	.name = "policy show",
	.summary = "show what a sandbox with these options may do, and who set each value",
	.usage = "[run's options]",
	.examples = examples,
	.options = &request_policy_options,
	.run = run,
};
