/* cmd_ps - agentkernel ps: lists the commands of a sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "ops/sandboxview.h"
#include "cli/words.h"
#include "ops/op_exec.h"
#include "ops/taskview.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

/* Each command has an argument list, of which each byte may become six. */
#define OUTPUT_MAX_BYTES (64u << 20)

struct flags {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable array", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* The commands of a sandbox. */
struct view {
	const struct ak *ak;
	const char *sandbox;
	struct tasks_list list;
};

static void view_done(struct view *v)
{
	tasks_list_done(&v->list);
}

static void format_state(const struct control_task *t, char *out, size_t size)
{
	if (t->ended_ms == 0)
		(void)snprintf(out, size, "running");
	else if (WIFEXITED(t->wait_status))
		(void)snprintf(out, size, "exited %d", WEXITSTATUS(t->wait_status));
	else
		(void)snprintf(out, size, "%s %d", t->has_timed_out ? "timed out" : "signal",
			       WTERMSIG(t->wait_status));
}

static void add_row(struct table *t, const struct control_task *task)
{
	char id[TASKS_ID_MAX_BYTES], pid[16] = "", uid[16], state[32],
				     age[SANDBOXVIEW_AGE_MAX_BYTES];

	(void)snprintf(id, sizeof(id), "%08" PRIx32, task->id);
	if (task->pid > 0)
		(void)snprintf(pid, sizeof(pid), "%d", task->pid);
	(void)snprintf(uid, sizeof(uid), "%u", task->uid);
	format_state(task, state, sizeof(state));
	sandboxview_format_age(task->started_ms / 1000, age);
	table_add_row(t, (const char *const[]){ id, pid, uid, state, age,
						task->flags & ORDER_DETACHED ? "detached" : "",
						task->text });
}

static void format(const struct view *v, bool is_json, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(7);
	struct json j;

	json_init(&j, out);
	table_add_row(
		t, (const char *const[]){ "ID", "PID", "USER", "STATE", "AGE", "HOW", "COMMAND" });
	if (is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < v->list.count; i++) {
		if (is_json)
			taskview_add_object(&j, v->ak, v->sandbox, &v->list.entries[i]);
		else
			add_row(t, &v->list.entries[i]);
	}
	if (is_json) {
		json_close_array(&j);
		buf_add_text(out, "\n");
	} else {
		table_format(t, out);
	}
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(view_done) struct view v = { .ak = context->ak };
	const struct words_rule rule = { .usage = "ps [NAME]", .options = &options, .max = 1 };
	struct op_exec_list_args args = { 0 };
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	char *words[2];
	unsigned count = 0;

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	if (count == 0) /* as in docker: list what is running */
		return cmd_sandbox_list.run(context, argv, ret_status, e);
	args.name = v.sandbox = words[0];
	if (op_exec_list(context->ak, &args, &cli_events, &v.list, e) < 0)
		return -1;
	format(&v, flags.is_json, &out);
	*ret_status = 0;
	return cli_print(&out, e);
}

const struct cli_command cmd_ps = {
	.name = "ps",
	.summary = "list the commands of a sandbox, and the detached ones that have ended",
	.usage = "[NAME] [--json]",
	.text = "Without NAME: the sandboxes that run, as list shows them.",
	.options = &options,
	.run = run,
};
