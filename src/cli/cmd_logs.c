/* cmd_logs - agentkernel logs: the output of a detached command. */
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "engine/logs.h"
#include "engine/tasks.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#define FOLLOW_INTERVAL_MS 100
#define LOOKS_BETWEEN_QUESTIONS 5u

static const char *const examples[] = {
	"agentkernel logs otter",
	"what the latest detached command has written so far",
	"agentkernel logs otter 1a2b3c4d -f",
	"one of them, as it comes, until it ends",
	NULL,
};

struct flags {
	bool follows;
};

static const struct opt rows[] = {
	{ "Options", "follow", 'f', NULL, "go on until the command has ended", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, follows) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* stdout's to stdout, stderr's to stderr, as if it had run here. */
static void print_chunk(void *context, enum tasklog_stream stream, const char *bytes, size_t len)
{
	int *failure = context;
	int r = file_write_all(stream == TASKLOG_STDERR ? STDERR_FILENO : STDOUT_FILENO, bytes,
			       len);

	if (r < 0 && *failure == 0)
		*failure = r;
}

static int print(struct logs *l, struct err *e)
{
	uint64_t skipped = 0;
	int failure = 0;

	if (logs_read(l, print_chunk, &failure, &skipped, e) < 0)
		return -1;
	if (skipped)
		cli_say("%" PRIu64 " earlier bytes are not kept any more", skipped);
	return failure < 0 ? err_sys(e, -failure, "write the output") : 0;
}

/* A command that died with its sandbox has left no end in its log. */
static bool is_alive(char *const *environ_list, const char *sandbox, uint32_t id)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	struct err e = { 0 };

	if (tasks_list(environ_list, sandbox, &list, &e) < 0)
		return e.code != ERR_NOT_FOUND;
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].id == id)
			return list.entries[i].ended_ms == 0;
	return false;
}

static int follow(struct logs *l, char *const *environ_list, const char *sandbox, struct err *e)
{
	bool is_over = false;

	for (unsigned looks = 0; !l->has_ended && !is_over; looks++) {
		struct pollfd reader = { .fd = STDOUT_FILENO };

		if (poll(&reader, 1, FOLLOW_INTERVAL_MS) > 0 && (reader.revents & POLLERR))
			return 0;
		if (looks % LOOKS_BETWEEN_QUESTIONS == 0) /* before the last look at the log */
			is_over = !is_alive(environ_list, sandbox, l->id);
		if (print(l, e) < 0)
			return -1;
	}
	return 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings none = { 0 };
	const struct words_rule rule = {
		.usage = "logs NAME [ID] [-f]", .options = &options, .min = 1, .max = 2
	};
	CLEANUP(logs_done) struct logs l;
	struct flags flags = { 0 };
	unsigned count = 0;
	char *words[3];

	logs_init(&l);
	if (words_read(&rule, argv, &flags, &none, words, &count, e) < 0 ||
	    logs_open(context->environ_list, words[0], words[1], &l, e) < 0 || print(&l, e) < 0)
		return -1;
	*ret_status = 0;
	return flags.follows ? follow(&l, context->environ_list, words[0], e) : 0;
}

const struct cli_command cmd_logs = {
	.name = "logs",
	.summary = "show what a detached command has written",
	.usage = "NAME [ID] [-f]",
	.text = "The last two megabytes are kept, also after the command or the sandbox has ended.",
	.examples = examples,
	.options = &options,
	.run = run,
};
