/* cmd_network_log - agentkernel network log: connections and denials of sandboxes. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/parse.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/follower.h"
#include "ops/networkview.h"
#include "named/named.h"
#include "state/statedir.h"
#include "net/netlog.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OUTPUT_MAX_BYTES (16u << 20)
#define TIME_MAX_BYTES 32

static const char *const examples[] = {
	"agentkernel network log",
	"hosts, decisions and rules of all sandboxes, with counts and bytes",
	"agentkernel network log -f",
	"decisions as they are made",
	NULL,
};

struct flags {
	bool is_json;
	bool follows;
};

static const struct opt rows[] = {
	{ "Options", "follow", 'f', NULL, "go on printing what comes", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, follows) },
	{ NULL, "json", 0, NULL, "print machine-readable objects, one a line", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static const char *format_time(uint64_t ms, char out[TIME_MAX_BYTES])
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	if (!localtime_r(&seconds, &tm) || !strftime(out, TIME_MAX_BYTES, "%Y-%m-%d %H:%M:%S", &tm))
		return "?";
	return out;
}

/* ---- summed ---- */

static void format_row(const struct netlog_row *r, struct table *t)
{
	char when[TIME_MAX_BYTES], port[8] = "-", count[24];
	char sent[PARSE_FORMAT_MAX_BYTES], received[PARSE_FORMAT_MAX_BYTES];

	if (r->port)
		(void)snprintf(port, sizeof(port), "%u", r->port);
	(void)snprintf(count, sizeof(count), "%llu", (unsigned long long)r->count);
	table_add_row(t, (const char *const[]){
				 format_time(r->last_ms, when), r->decision, r->host, port, count,
				 parse_format_bytes(r->sent_bytes, sent),
				 parse_format_bytes(r->received_bytes, received), r->reason });
}

static void format_table(const struct netlog_sum *sum, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(8);

	table_add_row(t, (const char *const[]){ "LAST SEEN", "DECISION", "HOST", "PORT", "COUNT",
						"SENT", "RECEIVED", "BECAUSE" });
	for (unsigned i = 0; i < sum->count; i++)
		format_row(&sum->rows[i], t);
	table_format(t, out);
	if (sum->is_cut)
		buf_add_text(out, "(and more hosts than can be listed)\n");
}

static void format_sum_json(const struct netlog_sum *sum, struct buf *out)
{
	for (unsigned i = 0; i < sum->count; i++) {
		const struct netlog_row *r = &sum->rows[i];
		struct json j;

		json_init(&j, out);
		json_open_object(&j, NULL);
		json_add_text(&j, "decision", r->decision);
		json_add_text(&j, "host", r->host);
		json_add_number(&j, "port", r->port);
		json_add_text(&j, "reason", r->reason);
		json_add_text(&j, "fix", r->fix[0] ? r->fix : NULL);
		json_add_number(&j, "count", (int64_t)r->count);
		json_add_number(&j, "sent_bytes", (int64_t)r->sent_bytes);
		json_add_number(&j, "received_bytes", (int64_t)r->received_bytes);
		json_add_number(&j, "last_seen_ms", (int64_t)r->last_ms);
		json_close_object(&j);
		buf_add_text(out, "\n");
	}
}

/* ---- following ---- */

static void format_line(const struct netlog_line *l, const struct flags *f, struct buf *out)
{
	char when[TIME_MAX_BYTES], port[8] = "";
	struct json j;

	if (f->is_json) {
		json_init(&j, out);
		json_open_object(&j, NULL);
		json_add_number(&j, "time_ms", (int64_t)l->time_ms);
		json_add_text(&j, "sandbox", l->sandbox);
		json_add_text(&j, "decision", l->decision);
		json_add_text(&j, "host", l->host);
		json_add_number(&j, "port", l->port);
		json_add_text(&j, "reason", l->reason);
		json_add_text(&j, "fix", l->fix[0] ? l->fix : NULL);
		json_add_number(&j, "count", (int64_t)l->count);
		json_add_number(&j, "sent_bytes", (int64_t)l->sent_bytes);
		json_add_number(&j, "received_bytes", (int64_t)l->received_bytes);
		json_close_object(&j);
		buf_add_text(out, "\n");
		return;
	}
	if (l->count == 0)
		return; /* bytes of a connection that was already shown */
	if (l->port)
		(void)snprintf(port, sizeof(port), ":%u", l->port);
	buf_addf(out, "%s  %s  %s  %s%s  %s\n", format_time(l->time_ms, when), l->sandbox,
		 l->decision, l->host, port, l->reason);
	/* a compromised gate must not send escape sequences to the terminal */
	shown_replace_lines(out->bytes, out->len);
}

struct following {
	const struct flags *flags;
	const char *sandbox; /* NULL: all */
};

static void on_line(void *context, char *line, size_t len, struct buf *out)
{
	const struct following *f = context;
	struct netlog_line parsed;

	(void)len;
	if (line && netlog_parse_line(line, &parsed) &&
	    (!f->sandbox || strcmp(parsed.sandbox, f->sandbox) == 0))
		format_line(&parsed, f->flags, out);
}

/* Starts at the end of the log: older lines are shown without -f. */
static int follow(const char *path, struct following *following, struct err *e)
{
	CLEANUP(follower_done) struct follower f;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	follower_init(&f, path, on_line, following);
	if (fd >= 0)
		(void)lseek(fd, 0, SEEK_END);
	return follower_follow(&f, fd, e);
}

/* ---- nothing to show ---- */

/* Was the sandbox created after the log begins? Then the log has all its lines. */
static bool is_newer(const struct cli_context *context, const char *sandbox, uint64_t begins_ms)
{
	CLEANUP(named_done) struct named n;
	struct err ignored;

	named_init(&n);
	return named_open(context->ak, sandbox, &n, &ignored) == 0 &&
	       n.created_s * 1000 > begins_ms;
}

static void say_nothing_found(const struct cli_context *context, const char *sandbox,
			      uint64_t begins_ms, struct buf *out)
{
	char when[TIME_MAX_BYTES];

	if (!sandbox)
		buf_add_text(out, "no sandbox has used the network yet\n");
	else if (begins_ms == 0 || is_newer(context, sandbox, begins_ms))
		buf_add_text(out, "that sandbox has not used the network\n");
	else
		buf_addf(out,
			 "nothing since %s, when the log begins; what was before is no longer "
			 "known\n",
			 format_time(begins_ms, when));
}

/* ---- the command ---- */

/* Runs have their own names in the log; any other name must be an existing sandbox. */
static int check_exists(const struct cli_context *context, const char *sandbox, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (!sandbox || strncmp(sandbox, "run-", 4) == 0)
		return 0;
	return named_open(context->ak, sandbox, &n, e);
}

static int show(const struct cli_context *context, const struct flags *flags, const char *sandbox,
		struct err *e)
{
	CLEANUP(netlog_sum_done) struct netlog_sum sum = { 0 };
	cleanup_buf struct buf out;

	buf_init(&out, OUTPUT_MAX_BYTES);
	if (networkview_sum(context->ak, sandbox, &sum, e) < 0 ||
	    (sum.count == 0 && check_exists(context, sandbox, e) < 0))
		return -1;
	if (flags->is_json)
		format_sum_json(&sum, &out);
	else if (sum.count)
		format_table(&sum, &out);
	else
		say_nothing_found(context, sandbox, sum.begins_ms, &out);
	return cli_print(&out, e);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	struct flags flags = { 0 };
	cleanup_free char *path = NULL;
	const char *sandbox = NULL;
	int used = 0;

	while (*argv) {
		if (opts_parse(&options, argv, &flags, NULL, &used, e) < 0)
			return -1;
		argv += used;
		if (*argv && sandbox)
			return err_set(e, ERR_INVALID, "unexpected argument '%s'", *argv);
		if (*argv)
			sandbox = *argv++;
	}
	*ret_status = 0;
	if (statedir_path(context->ak, NETLOG_FILE, &path, e) < 0)
		return -1;
	if (flags.follows) {
		struct following following = { .flags = &flags, .sandbox = sandbox };

		return follow(path, &following, e);
	}
	return show(context, &flags, sandbox, e);
}

const struct cli_command cmd_network_log = {
	.name = "network log",
	.summary = "show where sandboxes connected to, and what was denied",
	.usage = "[-f] [--json] [SANDBOX]",
	.text = "Decisions of all sandboxes, or of one (\"run-1a2b3c4d\"), added up by host, rule "
		"and\n"
		"decision. \"lookup\" is a name that was looked up outside; \"failed\" is a "
		"connection\n"
		"that was allowed but found nobody.",
	.examples = examples,
	.options = &options,
	.run = run,
};
