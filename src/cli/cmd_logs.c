/* cmd_logs - agentkernel logs: the output of a detached command. */
#include "base/cleanup.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "engine/logs.h"

#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#define FOLLOW_INTERVAL_MS 100

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

static int follow(struct logs *l, struct err *e)
{
	while (!l->has_ended) {
		struct pollfd reader = { .fd = STDOUT_FILENO };

		if (poll(&reader, 1, FOLLOW_INTERVAL_MS) > 0 && (reader.revents & POLLERR))
			return 0;
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
	return flags.follows ? follow(&l, e) : 0;
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
