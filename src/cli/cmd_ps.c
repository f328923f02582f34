/* cmd_ps - agentkernel ps: the commands of a sandbox. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/sandboxview.h"
#include "cli/words.h"
#include "engine/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>

struct flags {
	bool is_json;
};

static const struct opt rows[] = {
	{ "Options", "json", 0, NULL, "print one machine-readable array", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

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

static void add_object(struct json *j, const struct control_task *t)
{
	char id[TASKS_ID_MAX_BYTES];

	(void)snprintf(id, sizeof(id), "%08" PRIx32, t->id);
	json_open_object(j, NULL);
	json_add_text(j, "id", id);
	json_add_number(j, "pid", t->pid);
	json_add_number(j, "uid", t->uid);
	json_add_bool(j, "running", t->ended_ms == 0);
	json_add_bool(j, "detached", t->flags & ORDER_DETACHED);
	json_add_bool(j, "tty", t->flags & ORDER_TTY);
	if (t->ended_ms && WIFEXITED(t->wait_status))
		json_add_number(j, "exit_code", WEXITSTATUS(t->wait_status));
	else
		json_add_null(j, "exit_code");
	if (t->ended_ms && WIFSIGNALED(t->wait_status))
		json_add_number(j, "signal", WTERMSIG(t->wait_status));
	else
		json_add_null(j, "signal");
	json_add_bool(j, "timed_out", t->has_timed_out);
	json_add_number(j, "started_ms", (int64_t)t->started_ms);
	json_add_text(j, "command", t->text);
	json_close_object(j);
}

static void format(const struct tasks_list *list, bool is_json, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(7);
	struct json j;

	json_init(&j, out);
	table_add_row(
		t, (const char *const[]){ "ID", "PID", "USER", "STATE", "AGE", "HOW", "COMMAND" });
	if (is_json)
		json_open_array(&j, NULL);
	for (size_t i = 0; i < list->count; i++) {
		if (is_json)
			add_object(&j, &list->entries[i]);
		else
			add_row(t, &list->entries[i]);
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
	CLEANUP(opts_settings_done) struct opts_settings none = { 0 };
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	const struct words_rule rule = {
		.usage = "ps [NAME]", .options = &options, .max = 1
	};
	struct flags flags = { 0 };
	cleanup_buf struct buf out;
	char *words[2];
	unsigned count = 0;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0)
		return -1;
	if (count == 0) /* as docker has it: what runs */
		return cmd_sandbox_list.run(context, argv, ret_status, e);
	if (tasks_list(context->environ_list, words[0], &list, e) < 0)
		return -1;
	format(&list, flags.is_json, &out);
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
