/* cmd_audit - agentkernel audit: prints the audit log. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/shown.h"
#include "base/timestamp.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/follower.h"
#include "state/audit.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_TRIES 8
#define NAMES_MAX 32u /* cached user names */
#define DURATION_MAX_MS (3650ull * 86400 * 1000)

static const char *const examples[] = {
	"agentkernel audit",
	"every event that is still known, oldest first",
	"agentkernel audit --sandbox otter --since 1h",
	"what happened to one sandbox in the last hour",
	"agentkernel audit --type exec --json",
	"commands that were run, as JSON, one object a line",
	"agentkernel audit -f",
	"events as they happen",
	NULL,
};

struct flags {
	const char *sandbox, *type, *since;
	bool is_json;
	bool follows;
};

static const struct opt rows[] = {
	{ "Options", "sandbox", 0, "NAME", "only events of this sandbox", .kind = OPT_TEXT,
	  .offset = offsetof(struct flags, sandbox) },
	{ NULL, "type", 0, "TYPE", "only events of this type, such as exec, file or denied",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, type) },
	{ NULL, "since", 0, "TIME",
	  "only events since then: 10m (that long ago), 2025-03-01 or 2025-03-01T12:30:00Z",
	  .kind = OPT_TEXT, .offset = offsetof(struct flags, since) },
	{ NULL, "follow", 'f', NULL, "go on printing what comes; earlier events with --since",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, follows) },
	{ NULL, "json", 0, NULL, "print the log's own lines, one object each", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, is_json) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

struct user {
	uint32_t uid;
	char *name; /* NULL: unknown */
};

struct reading {
	const char *sandbox; /* NULL: all */
	bool has_type;
	enum auditline_type type;
	uint64_t since_ms;
	bool is_json, is_filtered;
	unsigned shown, damaged;
	struct user users[NAMES_MAX];
	unsigned user_count;
};

static void reading_done(struct reading *r)
{
	for (unsigned i = 0; i < r->user_count; i++)
		free(r->users[i].name);
	r->user_count = 0;
}

/* ---- one line ---- */

static void add_user(struct reading *r, uint32_t uid, struct buf *out)
{
	const struct passwd *entry;
	unsigned i = 0;

	while (i < r->user_count && r->users[i].uid != uid)
		i++;
	if (i == r->user_count) {
		if (i == NAMES_MAX) /* replace the last entry */
			free(r->users[--i].name);
		else
			r->user_count++;
		entry = getpwuid(uid);
		r->users[i] = (struct user){ uid, entry ? mem_dup(entry->pw_name) : NULL };
	}
	if (r->users[i].name)
		buf_add_text(out, r->users[i].name);
	else
		buf_addf(out, "%u", uid);
}

/* Quotes a word as for a shell. */
static void add_word(const char *word, struct buf *out)
{
	if (word[0] && !strpbrk(word, " \t\n\"'\\$`&|;<>()*?[]#~!{}")) {
		buf_add_text(out, word);
		return;
	}
	buf_add_quoted(out, word);
}

static void format_line(struct reading *r, const struct auditline *a, struct buf *out)
{
	char time[TIMESTAMP_TEXT_MAX_BYTES];
	cleanup_buf struct buf actor;
	cleanup_buf struct buf line;
	const char *separator = "  ";

	buf_init(&actor, BUF_TEXT_MAX_BYTES);
	buf_init(&line, BUF_TEXT_MAX_BYTES);
	add_user(r, a->uid, &actor);
	buf_addf(&actor, " %s[%u]", a->program, a->pid);
	buf_addf(&line, "%s  %-20s  %-12s  %-10s", timestamp_format(a->time_ms, time),
		 buf_text(&actor), a->sandbox ? a->sandbox : "-", auditline_type_word(a->type));
	for (char *const *word = a->argv; word && *word; word++) {
		buf_add_text(&line, separator);
		add_word(*word, &line);
		separator = " ";
	}
	if (a->what)
		buf_addf(&line, "  %s", a->what);
	buf_addf(&line, "  %s", a->result);
	if (a->detail)
		buf_addf(&line, " (%s)", a->detail);
	shown_replace(line.bytes);
	buf_addf(out, "%s\n", buf_text(&line));
}

static bool is_wanted(const struct reading *r, const struct auditline *a)
{
	return (!r->sandbox || (a->sandbox && strcmp(a->sandbox, r->sandbox) == 0)) &&
	       (!r->has_type || a->type == r->type) && a->time_ms >= r->since_ms;
}

/* An unreadable line may be of any sandbox and time: always counts it as damaged. */
static void on_line(void *context, char *line, size_t len, struct buf *out)
{
	char *words[AUDITLINE_WORDS_MAX];
	cleanup_free char *original = NULL;
	struct reading *r = context;
	struct auditline a;

	if (r->is_json && line)
		original = mem_dup_bytes(line, len);
	if (!line || !auditline_parse(line, len, words, &a)) {
		r->damaged++;
		if (!r->is_json && !r->is_filtered)
			buf_add_text(out, "(damaged line)\n");
	} else if (is_wanted(r, &a)) {
		r->shown++;
		if (original)
			buf_addf(out, "%s\n", original);
		else
			format_line(r, &a, out);
	}
}

/* ---- the logs ---- */

static bool are_same(int a_fd, int b_fd)
{
	struct stat a, b;

	return a_fd >= 0 && b_fd >= 0 && fstat(a_fd, &a) == 0 && fstat(b_fd, &b) == 0 &&
	       a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static int open_log(const char *path, int *ret_fd, struct err *e)
{
	cleanup_closep(ret_fd);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0 && errno != ENOENT)
		return err_sys(e, errno, "open '%s'", path);
	return 0;
}

/* Opens both files consistently: in between, the current one may be renamed to the old one. */
static int open_logs(const char *path, const char *old_path, int *fd, int *old_fd, struct err *e)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		if (open_log(path, fd, e) < 0 || open_log(old_path, old_fd, e) < 0)
			return -1;
		if (!are_same(*fd, *old_fd))
			return 0;
	}
	return err_set(e, ERR_BUSY, "'%s' changes all the time", path);
}

static int show(const char *path, const char *old_path, const struct flags *flags,
		struct reading *r, struct err *e)
{
	CLEANUP(follower_done) struct follower f;
	cleanup_fd int fd = -1;
	cleanup_fd int old_fd = -1;

	follower_init(&f, path, on_line, r);
	if (open_logs(path, old_path, &fd, &old_fd, e) < 0)
		return -1;
	if (flags->follows && !flags->since) {
		if (fd >= 0)
			(void)lseek(fd, 0, SEEK_END);
	} else if (follower_print(&f, take_fd(&old_fd), e) < 0) {
		return -1;
	}
	return flags->follows ? follower_follow(&f, take_fd(&fd), e)
			      : follower_print(&f, take_fd(&fd), e);
}

/* ---- the command ---- */

static int read_since(const char *text, uint64_t *ret_ms, struct err *e)
{
	uint64_t now_ms = timestamp_now_ms(), ago_ms = 0;
	struct err ignored;

	if (timestamp_parse(text, ret_ms))
		return 0;
	if (parse_duration_ms(text, 0, DURATION_MAX_MS, &ago_ms, &ignored) < 0)
		return err_set(e, ERR_INVALID,
			       "--since: invalid time '%s' (10m, 2025-03-01, 2025-03-01T12:30:00Z)",
			       text);
	*ret_ms = ago_ms < now_ms ? now_ms - ago_ms : 0;
	return 0;
}

static int read_flags(const struct flags *flags, struct reading *ret, struct err *e)
{
	ret->sandbox = flags->sandbox;
	ret->is_json = flags->is_json;
	ret->has_type = flags->type != NULL;
	ret->is_filtered = flags->sandbox || flags->type || flags->since;
	if (flags->type && auditline_parse_type(flags->type, &ret->type, e) < 0)
		return err_wrap(e, "--type");
	return flags->since ? read_since(flags->since, &ret->since_ms, e) : 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(reading_done) struct reading r = { 0 };
	struct flags flags = { 0 };
	cleanup_free char *path = NULL;
	cleanup_free char *old_path = NULL;
	int used = 0;

	if (opts_parse(&options, argv, &flags, NULL, &used, e) < 0)
		return -1;
	if (argv[used])
		return err_set(e, ERR_INVALID, "unexpected argument '%s'", argv[used]);
	if (read_flags(&flags, &r, e) < 0 || statedir_path(context->ak, AUDIT_FILE, &path, e) < 0 ||
	    statedir_path(context->ak, AUDIT_OLD_FILE, &old_path, e) < 0 ||
	    show(path, old_path, &flags, &r, e) < 0)
		return -1;
	if (r.damaged)
		say("%u damaged %s in '%s'", r.damaged, r.damaged == 1 ? "line" : "lines", path);
	else if (!r.shown && !r.is_json && !flags.follows)
		say(r.is_filtered ? "no such event" : "nothing has happened yet");
	*ret_status = 0;
	return 0;
}

const struct cli_command cmd_audit = {
	.name = "audit",
	.summary = "show who did what to which sandbox",
	.usage = "[options]",
	.text = "One line for each event of a named sandbox: time (UTC), user, program and process "
		"that\n"
		"asked for it, sandbox, type, what, and \"ok\" or what went wrong. Lines that "
		"cannot "
		"be\n"
		"read are shown as damaged and counted.",
	.examples = examples,
	.options = &options,
	.run = run,
};
