/* cmd_stats - agentkernel stats: shows resource usage of sandboxes, live. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/table.h"
#include "cli/commands.h"
#include "ops/sandboxview.h"
#include "cli/words.h"
#include "named/inventory.h"
#include "named/tasks.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define INTERVAL_MS 1000
#define SHORT_INTERVAL_MS 200 /* to measure the cpu share for a single table */
#define CELL_MAX_BYTES 80

static const char *const examples[] = {
	"agentkernel stats",
	"all sandboxes that run, every second",
	"agentkernel stats otter --no-stream --json",
	"one of them, once, for a program",
	NULL,
};

struct flags {
	bool is_once, is_json;
};

static const struct opt rows[] = {
	{ "Options", "no-stream", 0, NULL, "once, instead of every second", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_once) },
	{ NULL, "json", 0, NULL, "one machine-readable object a sandbox and line", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

struct row {
	char *name;
	struct control_stats stats, before;
	bool is_there, was_there;
};

struct view {
	struct row *rows;
	size_t count;
};

static void view_done(struct view *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->rows[i].name);
	free(v->rows);
	*v = (struct view){ 0 };
}

static void add_name(struct view *v, const char *name)
{
	v->rows = mem_grow(v->rows, v->count + 1, sizeof(*v->rows));
	v->rows[v->count++] = (struct row){ .name = mem_dup(name) };
}

static int choose(const struct cli_context *context, char **names, struct view *v, struct err *e)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };

	for (; *names; names++)
		add_name(v, *names);
	if (v->count)
		return 0;
	if (inventory_list(context->ak, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++)
		if (namedrun_is_live(list.entries[i].state))
			add_name(v, list.entries[i].named.name);
	return 0;
}

static int measure(const struct cli_context *context, struct view *v, bool is_asked, struct err *e)
{
	for (size_t i = 0; i < v->count; i++) {
		struct row *r = &v->rows[i];

		r->before = r->stats;
		r->was_there = r->is_there;
		r->is_there = tasks_stats(context->ak, r->name, &r->stats, e) == 0;
		/* a listed sandbox may have ended meanwhile */
		if (!r->is_there && is_asked)
			return -1;
	}
	return 0;
}

/* In thousandths of a processor, since the last measurement. */
static uint64_t cpu_share(const struct row *r)
{
	uint64_t time_us = r->stats.time_us - r->before.time_us;

	if (!r->was_there || time_us == 0 || r->stats.cpu_us < r->before.cpu_us)
		return 0;
	return (r->stats.cpu_us - r->before.cpu_us) * 1000 / time_us;
}

static void format_pair(uint64_t a, uint64_t b, const char *between, char out[CELL_MAX_BYTES])
{
	char first[PARSE_FORMAT_MAX_BYTES], second[PARSE_FORMAT_MAX_BYTES];

	(void)snprintf(out, CELL_MAX_BYTES, "%s%s%s", parse_format_bytes(a, first), between,
		       parse_format_bytes(b, second));
}

static void add_row(struct table *t, const struct row *r)
{
	const struct control_stats *s = &r->stats;
	char cpu[CELL_MAX_BYTES], memory[CELL_MAX_BYTES], peak[PARSE_FORMAT_MAX_BYTES],
		pids[CELL_MAX_BYTES], io[CELL_MAX_BYTES], net[CELL_MAX_BYTES];
	uint64_t share = cpu_share(r);

	(void)snprintf(cpu, sizeof(cpu), "%" PRIu64 ".%" PRIu64 " %%", share / 10, share % 10);
	if (s->memory_limit_bytes)
		format_pair(s->memory_bytes, s->memory_limit_bytes, " of ", memory);
	else
		(void)parse_format_bytes(s->memory_bytes, memory);
	(void)snprintf(pids, sizeof(pids), "%" PRIu64, s->pids_count);
	format_pair(s->read_bytes, s->written_bytes, " / ", io);
	format_pair(s->sent_bytes, s->received_bytes, " / ", net);
	table_add_row(
		t,
		(const char *const[]){
			r->name, s->has_cpu ? cpu : "?", s->has_memory ? memory : "?",
			s->peak_memory_bytes ? parse_format_bytes(s->peak_memory_bytes, peak) : "?",
			s->has_pids ? pids : "?", s->has_io ? io : "?", net });
}

static void add_object(const struct row *r, struct buf *out)
{
	const struct control_stats *s = &r->stats;
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_text(&j, "name", r->name);
	if (s->has_cpu && r->was_there)
		json_add_number(&j, "cpu_milli", (int64_t)cpu_share(r));
	else
		json_add_null(&j, "cpu_milli");
	sandboxview_add_figures(&j, s);
	json_close_object(&j);
	buf_add_text(out, "\n");
}

static int show(const struct view *v, const struct flags *f, struct err *e)
{
	CLEANUP(table_freep) struct table *t = table_new(7);
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	table_add_row(t, (const char *const[]){ "NAME", "CPU", "MEMORY", "PEAK", "PIDS",
						"READ / WRITTEN", "SENT / RECEIVED" });
	for (size_t i = 0; i < v->count; i++) {
		if (!v->rows[i].is_there)
			continue;
		if (f->is_json)
			add_object(&v->rows[i], &out);
		else
			add_row(t, &v->rows[i]);
	}
	if (!f->is_json) {
		if (!f->is_once && isatty(STDOUT_FILENO))
			buf_add_text(&out, "\033[H\033[2J");
		table_format(t, &out);
	}
	return cli_print(&out, e);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(view_done) struct view v = { 0 };
	const struct words_rule rule = { .usage = "stats [NAME...]",
					 .options = &options,
					 .max = WORDS_MAX };
	char *words[WORDS_MAX + 1];
	struct flags flags = { 0 };
	unsigned count = 0;

	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0 ||
	    choose(context, words, &v, e) < 0 || measure(context, &v, count > 0, e) < 0)
		return -1;
	*ret_status = 0;
	do {
		struct pollfd reader = { .fd = STDOUT_FILENO };
		int wait_ms = flags.is_once ? SHORT_INTERVAL_MS : INTERVAL_MS;

		if (poll(&reader, 1, wait_ms) > 0 && (reader.revents & POLLERR))
			return 0;
		if (measure(context, &v, count > 0, e) < 0 || show(&v, &flags, e) < 0)
			return -1;
	} while (!flags.is_once && v.count > 0);
	return 0;
}

const struct cli_command cmd_stats = {
	.name = "stats",
	.summary = "show what sandboxes use: cpu, memory, processes, disk, network",
	.usage = "[NAME...] [--no-stream]",
	.examples = examples,
	.options = &options,
	.run = run,
};
