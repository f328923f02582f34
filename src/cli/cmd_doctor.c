/* cmd_doctor - agentkernel doctor: which protections this host supports, and how to fix the others.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "engine/doctor.h"

#include <assert.h>

struct doctor_options {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable object", .kind = OPT_FLAG,
	  .offset = offsetof(struct doctor_options, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const char *const state_name[] = {
	[DOCTOR_OK] = "ok",
	[DOCTOR_WEAKER] = "weaker",
	[DOCTOR_MISSING] = "MISSING",
};
static_assert(COUNT_OF(state_name) == DOCTOR_STATE_COUNT, "a state has no name");

static void format_table(const struct doctor_finding *findings, size_t count, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(3);

	table_add_row(t, (const char *const[]){ "WALL", "STATE", "DETAIL" });
	for (size_t i = 0; i < count; i++)
		table_add_row(t, (const char *const[]){ findings[i].wall,
							state_name[findings[i].state],
							findings[i].detail });
	table_format(t, out);
	for (size_t i = 0; i < count; i++)
		if (findings[i].fix[0])
			buf_addf(out, "\n%s: %s\n", findings[i].wall, findings[i].fix);
}

static void format_json(const struct doctor_finding *findings, size_t count, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_open_array(&j, "walls");
	for (size_t i = 0; i < count; i++) {
		json_open_object(&j, NULL);
		json_add_text(&j, "wall", findings[i].wall);
		json_add_text(&j, "state", state_name[findings[i].state]);
		json_add_text(&j, "detail", findings[i].detail);
		json_add_text(&j, "fix", findings[i].fix[0] ? findings[i].fix : NULL);
		json_close_object(&j);
	}
	json_close_array(&j);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
	struct doctor_options o = { 0 };
	cleanup_buf struct buf out;
	size_t count;
	int used = 0;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (opts_parse(&options, argv, &o, NULL, &used, e) < 0)
		return -1;
	if (argv[used])
		return err_set(e, ERR_INVALID, "doctor takes no argument, not '%s'", argv[used]);
	count = doctor_examine(context->ak, findings);
	if (o.is_json)
		format_json(findings, count, &out);
	else
		format_table(findings, count, &out);
	*ret_status = 0;
	for (size_t i = 0; i < count; i++)
		if (findings[i].state == DOCTOR_MISSING)
			*ret_status = 1;
	return cli_print(&out, e);
}

const struct cli_command cmd_doctor = {
	.name = "doctor",
	.summary = "show which protections this host supports, and how to fix the missing ones",
	.usage = "[--json]",
	.text = "Exit status 1 when a wall is missing without which no sandbox runs.",
	.options = &options,
	.run = run,
};
