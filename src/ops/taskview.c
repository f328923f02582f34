/* taskview - a command of a named sandbox as JSON; see taskview.h. */
#include "ops/taskview.h"

#include "base/cleanup.h"
#include "base/errcode.h"

#include <sys/wait.h>

static void add_number_if(struct json *j, const char *key, bool is_known, int64_t value)
{
	if (is_known)
		json_add_number(j, key, value);
	else
		json_add_null(j, key);
}

static void add_words(struct json *j, const struct tasks_command *c)
{
	json_open_array(j, "argv");
	for (char **word = c->argv; *word; word++)
		json_add_text(j, NULL, *word);
	json_close_array(j);
	if (c->is_cut)
		json_add_bool(j, "argv_cut", true);
}

void taskview_add_object(struct json *j, const struct ak *ak, const char *sandbox,
			 const struct control_task *t)
{
	CLEANUP(tasks_command_done) struct tasks_command c = { 0 };
	char id[TASKS_ID_MAX_BYTES];
	struct err ignored;
	bool has_ended = t->ended_ms != 0;

	if (tasks_describe(ak, sandbox, t->id, &c, &ignored) < 0)
		c.pid = t->pid;
	tasks_format_id(t->id, id);
	json_open_object(j, NULL);
	json_add_text(j, "id", id);
	json_add_number(j, "pid", c.pid);
	json_add_number(j, "uid", t->uid);
	json_add_text(j, "command", t->text);
	if (c.argv)
		add_words(j, &c);
	json_add_bool(j, "detached", t->flags & ORDER_DETACHED);
	json_add_bool(j, "tty", t->flags & ORDER_TTY);
	json_add_bool(j, "running", !has_ended);
	add_number_if(j, "exit_code", has_ended, errcode_exit_of_wait(t->wait_status));
	add_number_if(j, "signal", has_ended && WIFSIGNALED(t->wait_status),
		      WTERMSIG(t->wait_status));
	json_add_bool(j, "timed_out", t->has_timed_out);
	json_add_number(j, "started_ms", (int64_t)t->started_ms);
	add_number_if(j, "ended_ms", has_ended, (int64_t)t->ended_ms);
	json_close_object(j);
}
