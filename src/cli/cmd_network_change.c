/* cmd_network_change - agentkernel network allow, block, reset: changes rules at once. */
#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "ops/op_network.h"

static const char *const examples[] = {
	"agentkernel network allow otter '*.example.org:443'",
	"from now on, also in a running sandbox",
	"agentkernel network block otter ads.example.com",
	"connections to it that are open close at once",
	NULL,
};

static int change(const struct cli_context *context, char **argv, enum reconfigure_rules what,
		  const struct words_rule *rule, int *ret_status, struct err *e)
{
	struct op_network_change_args args = { 0 };
	char *words[WORDS_MAX + 1];
	unsigned count = 0;

	if (words_read(rule, argv, NULL, NULL, words, &count, e) < 0)
		return -1;
	args.name = words[0];
	args.allow = what == RECONFIGURE_ALLOW ? words + 1 : NULL;
	args.block = what == RECONFIGURE_BLOCK ? words + 1 : NULL;
	args.resets = what == RECONFIGURE_RESET;
	*ret_status = 0;
	return op_network_change(context->ak, &args, &cli_events, e);
}

static int run_allow(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "network allow NAME PATTERN|CIDR...",
					 .min = 2,
					 .max = WORDS_MAX };

	return change(context, argv, RECONFIGURE_ALLOW, &rule, ret_status, e);
}

static int run_block(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "network block NAME PATTERN|CIDR...",
					 .min = 2,
					 .max = WORDS_MAX };

	return change(context, argv, RECONFIGURE_BLOCK, &rule, ret_status, e);
}

static int run_reset(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "network reset NAME", .min = 1, .max = 1 };

	return change(context, argv, RECONFIGURE_RESET, &rule, ret_status, e);
}

const struct cli_command cmd_network_allow = {
	.name = "network allow",
	.summary = "allow a sandbox to connect to more hosts, at once",
	.usage = "NAME PATTERN|CIDR...",
	.examples = examples,
	.run = run_allow,
};

const struct cli_command cmd_network_block = {
	.name = "network block",
	.summary = "block hosts for a sandbox, at once; open connections close",
	.usage = "NAME PATTERN|CIDR...",
	.run = run_block,
};

const struct cli_command cmd_network_reset = {
	.name = "network reset",
	.summary = "restore the network rules a sandbox was created with",
	.usage = "NAME",
	.run = run_reset,
};
