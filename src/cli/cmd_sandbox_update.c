/* cmd_sandbox_update - agentkernel sandbox update: other limits, at once. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "engine/lifecycle.h"

static const char *const examples[] = {
	"agentkernel sandbox update otter --memory 4G --cpus 2",
	"new limits, for a running sandbox at once",
	NULL,
};

#define LIMIT(field_) .kind = OPT_SETTING, .field = (field_)

static const struct opt rows[] = {
	{ "Limits", "memory", 0, "SIZE", "memory of the whole sandbox: 512M, 2GiB",
	  LIMIT(POLICY_MEMORY) },
	{ NULL, "cpus", 0, "N", "processors: 1, 0.5", LIMIT(POLICY_CPUS) },
	{ NULL, "pids", 0, "N", "processes and threads", LIMIT(POLICY_PIDS) },
	{ NULL, "disk", 0, "SIZE", "what is written; it was created with one: 10G",
	  LIMIT(POLICY_DISK) },
	{ NULL, "io-read", 0, "RATE", "reading from disks: 10MB/s", LIMIT(POLICY_IO_READ) },
	{ NULL, "io-write", 0, "RATE", "writing to disks", LIMIT(POLICY_IO_WRITE) },
	{ NULL, "bandwidth", 0, "RATE", "of the network, each way: 1MB/s",
	  LIMIT(POLICY_BANDWIDTH) },
	{ NULL, "timeout", 0, "DURATION", "of each command from now on", LIMIT(POLICY_TIMEOUT) },
	{ NULL, "cpu-time", 0, "DURATION", "processor time of the whole sandbox",
	  LIMIT(POLICY_CPU_TIME) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(opts_settings_done) struct opts_settings settings = { 0 };
	const struct words_rule rule = {
		.usage = "sandbox update NAME [limits]", .options = &options, .min = 1, .max = 1
	};
	unsigned count = 0;
	bool is_later = false;
	char *words[2];

	if (words_read(&rule, argv, NULL, &settings, words, &count, e) < 0)
		return -1;
	if (settings.count == 0)
		return err_set(e, ERR_INVALID, "no limit to change (see --help)");
	if (lifecycle_update(context->environ_list, words[0], settings.list, settings.count,
			     &is_later, e) < 0)
		return -1;
	if (is_later)
		cli_say("the disk of sandbox '%s' grows at its next start (agentkernel restart %s)",
			words[0], words[0]);
	*ret_status = 0;
	return 0;
}

const struct cli_command cmd_sandbox_update = {
	.name = "sandbox update",
	.summary = "change limits of a sandbox, at once if it runs",
	.usage = "NAME [limits]",
	.examples = examples,
	.options = &options,
	.run = run,
};
