/* cmd_logs - agentkernel logs: prints the output of a detached command. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/logfile.h"
#include "base/say.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "pool/daemon.h"
#include "named/logs.h"
#include "named/named.h"
#include "state/statedir.h"
#include "named/tasks.h"

#include <errno.h>
#include <fcntl.h>
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
	bool follows, is_system;
};

static const struct opt rows[] = {
	{ "Options", "follow", 'f', NULL, "go on until the command has ended", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, follows) },
	{ "Options", "system", 0, NULL, "what its supervisor has to tell; without NAME: the daemon",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, is_system) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* Writes stdout to stdout and stderr to stderr. */
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
		say("%" PRIu64 " bytes of output are missing here: older ones are not kept, and "
		    "a full disk takes none",
		    skipped);
	return failure < 0 ? err_sys(e, -failure, "write the output") : 0;
}

/* A command that died with its sandbox has no end in its log, so ask the supervisor too. */
static bool is_alive(const struct ak *ak, const char *sandbox, uint32_t id)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	struct err e = { 0 };

	if (tasks_list(ak, sandbox, &list, &e) < 0)
		return e.code != ERR_NOT_FOUND;
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].id == id)
			return list.entries[i].ended_ms == 0;
	return false;
}

static int follow(struct logs *l, const struct ak *ak, const char *sandbox, struct err *e)
{
	bool is_over = false;

	for (unsigned looks = 0; !l->has_ended && !is_over; looks++) {
		struct pollfd reader = { .fd = STDOUT_FILENO };

		if (poll(&reader, 1, FOLLOW_INTERVAL_MS) > 0 && (reader.revents & POLLERR))
			return 0;
		if (looks % LOOKS_BETWEEN_QUESTIONS == 0) /* before the last read of the log */
			is_over = !is_alive(ak, sandbox, l->id);
		if (print(l, e) < 0)
			return -1;
	}
	return 0;
}

/* Prints one of the two files of base/logfile; a missing one is empty. */
static int print_file(int dir_fd, const char *name, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_at(dir_fd, name, 2 * LOGFILE_MAX_BYTES, &text, &len);

	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = file_write_all(STDOUT_FILENO, text, len);
	return r < 0 ? err_sys(e, -r, "show '%s'", name) : 0;
}

static int show_system(const struct ak *ak, const char *sandbox, struct err *e)
{
	CLEANUP(named_done) struct named n;
	cleanup_free char *dir = NULL;
	cleanup_fd int dir_fd = -1;

	named_init(&n);
	if (sandbox)
		return named_open(ak, sandbox, &n, e) < 0 ||
				       print_file(n.dir_fd, NAMED_SYSTEM_LOG ".1", e) < 0 ||
				       print_file(n.dir_fd, NAMED_SYSTEM_LOG, e) < 0
			       ? -1
			       : 0;
	if (statedir_path(ak, ".", &dir, e) < 0)
		return -1;
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return print_file(dir_fd, DAEMON_LOG ".1", e) < 0 || print_file(dir_fd, DAEMON_LOG, e) < 0
		       ? -1
		       : 0;
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = {
		.usage = "logs NAME [ID] [-f]", .options = &options, .min = 0, .max = 2
	};
	CLEANUP(logs_done) struct logs l;
	struct flags flags = { 0 };
	unsigned count = 0;
	char *words[3];

	logs_init(&l);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	*ret_status = 0;
	if (flags.is_system)
		return show_system(context->ak, count ? words[0] : NULL, e);
	if (count == 0)
		return err_set(e, ERR_INVALID, "missing argument NAME: agentkernel logs NAME");
	if (logs_open(context->ak, words[0], words[1], &l, e) < 0 || print(&l, e) < 0)
		return -1;
	return flags.follows ? follow(&l, context->ak, words[0], e) : 0;
}

const struct cli_command cmd_logs = {
	.name = "logs",
	.summary = "show what a detached command has written",
	.usage = "NAME [ID] [-f] | --system [NAME]",
	.text = "The last two megabytes are kept, also after the command or the sandbox has "
		"ended.\n"
		"--system shows when a sandbox was started, frozen and stopped, why it ended, and "
		"what\n"
		"its supervisor could not do.",
	.examples = examples,
	.options = &options,
	.run = run,
};
