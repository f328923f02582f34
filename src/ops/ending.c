/* ending - describes how a command ended; see ending.h. */
#include "ops/ending.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/errcode.h"
#include "ops/events.h"

#include <inttypes.h>

/* `bytes` 0: a named sandbox, whose limit is not known here. */
static const char *limit_of(uint64_t bytes, char out[PARSE_FORMAT_MAX_BYTES])
{
	return bytes ? parse_format_bytes(bytes, out) : "the sandbox's own";
}

/* The command ended by itself, perhaps because of one of these limits. */
static void format_reached(const struct run_result *r, uint64_t memory_bytes, struct buf *out)
{
	char amount[PARSE_FORMAT_MAX_BYTES];

	if (r->has_oom)
		buf_addf(
			out,
			"a process inside was killed for lack of memory: the limit is %s (raise it "
			"with --memory)",
			limit_of(memory_bytes, amount));
	else if (r->reached_pids)
		buf_addf(out,
			 "a process inside could not be started: the limit is %" PRIu64
			 " processes and threads (raise it with --pids)",
			 r->reached_pids);
	else if (r->reached_disk_bytes)
		buf_addf(out, "the disk inside is full: its limit is %s (raise it with --disk)",
			 limit_of(r->reached_disk_bytes, amount));
}

void ending_format(const struct run_result *r, const struct policy *p, uint64_t timeout_ms,
		   struct buf *out)
{
	uint64_t memory_bytes = p ? p->memory_bytes : 0;
	char amount[PARSE_FORMAT_MAX_BYTES];

	switch (r->end) {
	case RUN_TIMED_OUT:
		buf_addf(out, "the command was ended after %s (--timeout)",
			 timeout_ms ? parse_format_duration(timeout_ms, amount) : "its time");
		break;
	case RUN_OUT_OF_CPU:
		buf_addf(out, "the command used up its processor time%s%s (--cpu-time)",
			 p ? " of " : "", p ? parse_format_duration(p->cpu_time_ms, amount) : "");
		break;
	case RUN_OUT_OF_MEMORY:
		buf_addf(out,
			 "the command ran out of memory: its limit is %s (raise it with --memory)",
			 limit_of(memory_bytes, amount));
		break;
	case RUN_OUT_OF_PIDS:
		buf_addf(out,
			 "the command had more processes than its limit (raise it with --pids)");
		break;
	case RUN_SANDBOX_ENDED:
		buf_addf(out, "the sandbox has ended, and the command with it");
		break;
	case RUN_EXITED:
	case RUN_SIGNALLED:
		format_reached(r, memory_bytes, out);
		break;
	}
}

void ending_remark(const struct op_events *ev, const struct run_result *r, const struct policy *p,
		   uint64_t timeout_ms)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	ending_format(r, p, timeout_ms, &out);
	if (out.len)
		op_remark(ev, "%s", buf_text(&out));
}

void ending_format_failure(const struct err *why, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_number(&j, "exit_code", errcode_exit_status(why->code));
	json_add_null(&j, "signal");
	json_add_text(&j, "stdout", "");
	json_add_text(&j, "stderr", "");
	json_add_bool(&j, "timed_out", false);
	json_add_bool(&j, "oom", false);
	json_add_text(&j, "error", why->msg);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

void ending_add_denials(struct json *j, const struct run_result *r)
{
	json_open_array(j, "denied");
	for (unsigned i = 0; i < r->denial_count; i++) {
		json_open_object(j, NULL);
		json_add_text(j, "host", r->denials[i].host);
		json_add_number(j, "port", r->denials[i].port);
		json_add_text(j, "reason", r->denials[i].reason);
		json_add_text(j, "fix", r->denials[i].fix);
		json_close_object(j);
	}
	json_close_array(j);
}

static void add_figures(struct json *j, const struct run_result *r, const struct policy *p)
{
	json_add_number(j, "cpu_ms", (int64_t)r->cpu_ms);
	json_add_number(j, "peak_memory", (int64_t)r->peak_memory_bytes);
	ending_add_denials(j, r);
	json_add_text(j, "image", p->image);
	json_add_text(j, "backend", policy_backends[p->backend]);
}

void ending_format_json(const struct run_result *r, const struct policy *p, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_number(&j, "exit_code", r->exit_code);
	if (r->signal_number)
		json_add_number(&j, "signal", r->signal_number);
	else
		json_add_null(&j, "signal");
	json_add_bytes(&j, "stdout", buf_text(&r->output[0]), r->output[0].len);
	json_add_bytes(&j, "stderr", buf_text(&r->output[1]), r->output[1].len);
	json_add_bool(&j, "stdout_cut", r->output[0].is_cut);
	json_add_bool(&j, "stderr_cut", r->output[1].is_cut);
	json_add_number(&j, "duration_ms", (int64_t)r->duration_ms);
	json_add_bool(&j, "timed_out", r->end == RUN_TIMED_OUT);
	json_add_bool(&j, "oom", r->has_oom);
	json_open_array(&j, "notices");
	for (char *const *text = r->notices; text && *text; text++)
		json_add_text(&j, NULL, *text);
	json_close_array(&j);
	if (p)
		add_figures(&j, r, p);
	json_close_object(&j);
	buf_add_text(out, "\n");
}
