/* cmd_cp - agentkernel cp: copies files into and out of a sandbox. */
#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/words.h"
#include "named/filecopy.h"
#include "named/named.h"
#include "ops/op_file.h"

#include <string.h>
#include <stdlib.h>

static const char *const examples[] = {
	"agentkernel cp report.py otter:/root/",
	"a file into a directory of the sandbox",
	"agentkernel cp otter:/root/out ./results",
	"a tree out of it",
	"tar c src | agentkernel cp - otter:/build",
	"an archive from stdin; 'cp otter:/build -' writes one",
	NULL,
};

struct flags {
	bool keeps_owners, follows;
};

static const struct opt rows[] = {
	{ "Options", "archive", 'a', NULL, "keep owners and groups, by number", .kind = OPT_FLAG,
	  .offset = offsetof(struct flags, keeps_owners) },
	{ NULL, "follow-link", 'L', NULL, "copy what a link leads to, if the source is one",
	  .kind = OPT_FLAG, .offset = offsetof(struct flags, follows) },
};
static const struct opts_table options = { rows, COUNT_OF(rows) };

/* Splits "NAME:/path"; false: a path of this machine. The caller frees the parts. */
static bool split(const char *word, char **ret_name, char **ret_path)
{
	const char *colon = strchr(word, ':');
	struct err ignored;
	char *name;

	if (!colon || word[0] == '.' || word[0] == '/' || word[0] == '-')
		return false;
	name = mem_dup_bytes(word, (size_t)(colon - word));
	if (named_check_name(name, &ignored) < 0) {
		free(name);
		return false;
	}
	*ret_name = name;
	*ret_path = colon[1] == '/' ? mem_dup(colon + 1) : mem_format("/%s", colon + 1);
	return true;
}

static int copy(const struct cli_context *context, const char *from, const char *to, unsigned flags,
		struct err *e)
{
	cleanup_free char *from_name = NULL, *from_path = NULL, *to_name = NULL, *to_path = NULL;
	bool is_out = split(from, &from_name, &from_path);
	bool is_in = split(to, &to_name, &to_path);
	const struct op_copy_args args = { .name = is_out ? from_name : to_name,
					   .inside = is_out ? from_path : to_path,
					   .outside = is_out ? to : from,
					   .is_out = is_out,
					   .flags = flags };

	if (is_out == is_in)
		return err_set(e, ERR_INVALID,
			       is_out ? "one side has to be of this machine (copy twice)"
				      : "one side has to be NAME:/path of a sandbox");
	return op_copy(context->ak, &args, &cli_events, e);
}

static int run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	const struct words_rule rule = { .usage = "cp SRC DST (one of them NAME:/path)",
					 .options = &options,
					 .min = 2,
					 .max = 2 };
	struct flags flags = { 0 };
	unsigned count = 0;
	char *words[3];

	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	*ret_status = 0;
	return copy(context, words[0], words[1],
		    (flags.keeps_owners ? FILECOPY_OWNERS : 0) |
			    (flags.follows ? FILECOPY_FOLLOW : 0),
		    e);
}

const struct cli_command cmd_cp = {
	.name = "cp",
	.summary = "copy files and trees into and out of a sandbox",
	.usage = "[options] SRC DST",
	.text = "One side is NAME:/path, the other a path of this machine or \"-\" for a tar "
		"archive "
		"on\n"
		"stdin or stdout. What comes in belongs to the sandbox's user, what goes out to "
		"you,\n"
		"unless -a keeps the numbers. A target that is a directory gets the source in it; "
		"\"DIR/.\"\n"
		"means what is in DIR. Links are copied as links and never followed on the way. A "
		"path of "
		"the\n"
		"sandbox without a slash at its start begins at its root.",
	.examples = examples,
	.options = &options,
	.run = run,
};
