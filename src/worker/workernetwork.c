/* workernetwork - the network of sandboxes, and the audit log. */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/timestamp.h"
#include "ops/op_audit.h"
#include "ops/op_network.h"

/* ---- the network ---- */

int worker_network_log(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(netlog_sum_done) struct netlog_sum sum = { 0 };
	const struct op_network_log_args args = { .name = worker_text(w, "name") };

	if (op_network_log(w->ak, &args, &w->events, &sum, e) < 0)
		return -1;
	json_open_array(j, "entries");
	for (unsigned i = 0; i < sum.count; i++) {
		const struct netlog_row *row = &sum.rows[i];

		json_open_object(j, NULL);
		json_add_text(j, "decision", row->decision);
		json_add_text(j, "host", row->host);
		json_add_number(j, "port", row->port);
		json_add_text(j, "reason", row->reason);
		if (row->fix[0])
			json_add_text(j, "fix", row->fix);
		json_add_number(j, "count", (int64_t)row->count);
		json_close_object(j);
	}
	json_close_array(j);
	return 0;
}

int worker_network_check(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(networkview_answer_done) struct networkview_answer answer;
	const struct op_network_check_args args = { .name = worker_text(w, "name"),
						    .policy = &w->server.policy,
						    .target = worker_text(w, "host") };

	networkview_answer_init(&answer);
	if (op_network_check(w->ak, &args, &w->events, &answer, e) < 0)
		return -1;
	json_add_bool(j, "allowed", answer.is_allowed);
	json_add_text(j, "target", buf_text(&answer.target));
	json_add_text(j, "reason", buf_text(&answer.reason));
	if (answer.fix.len)
		json_add_text(j, "fix", buf_text(&answer.fix));
	return 0;
}

int worker_network_change(struct worker *w, struct json *j, struct err *e)
{
	cleanup_free char **allow = worker_list(w, "allow");
	cleanup_free char **block = worker_list(w, "block");
	const struct op_network_change_args args = { .name = worker_text(w, "name"),
						     .allow = allow,
						     .block = block };

	if (!allow && !block)
		return err_set(e, ERR_INVALID, "allow, block: at least one host is expected");
	if (op_network_change(w->ak, &args, &w->events, e) < 0)
		return -1;
	json_add_text(j, "name", args.name);
	json_add_text(j, "note", "the rules hold from now on");
	return 0;
}

/* ---- the audit log ---- */

static void add_entry(void *context, const struct auditline *a, const char *line,
		      uint64_t next_offset)
{
	struct json *j = context;
	char time[TIMESTAMP_TEXT_MAX_BYTES];

	(void)line;
	(void)next_offset;
	json_open_object(j, NULL);
	json_add_text(j, "time", timestamp_format(a->time_ms, time));
	json_add_text(j, "type", auditline_type_word(a->type));
	json_add_text(j, "sandbox", a->sandbox);
	if (a->what)
		json_add_text(j, "what", a->what);
	if (a->argv) {
		json_open_array(j, "command");
		for (char *const *word = a->argv; *word; word++)
			json_add_text(j, NULL, *word);
		json_close_array(j);
	}
	json_add_text(j, "result", a->result);
	json_close_object(j);
}

int worker_audit(struct worker *w, struct json *j, struct err *e)
{
	const struct op_audit_args args = { .name = worker_text(w, "name"),
					    .on_line = add_entry,
					    .context = j };
	struct op_audit_result result = { 0 };

	json_open_array(j, "entries");
	if (op_audit(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_close_array(j);
	return 0;
}

static void add_line(void *context, const struct auditline *a, const char *line,
		     uint64_t next_offset)
{
	struct json *j = context;

	(void)a;
	json_open_object(j, NULL);
	json_add_number(j, "offset", (int64_t)next_offset);
	json_add_text(j, "line", line);
	json_close_object(j);
}

int worker_events(struct worker *w, struct json *j, struct err *e)
{
	const struct op_audit_args args = { .offset = worker_number(w, "offset", 0),
					    .on_line = add_line,
					    .context = j };
	struct op_audit_result result = { 0 };

	json_open_array(j, "entries");
	if (op_audit(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_close_array(j);
	json_add_number(j, "next_offset", (int64_t)result.next_offset);
	return 0;
}
