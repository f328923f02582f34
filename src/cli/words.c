/* words - parses commands with arguments and options; see words.h. */
#include "cli/words.h"

#include <string.h>

static int missing(const struct words_rule *rule, struct err *e)
{
	return err_set(e, ERR_INVALID, "missing argument (usage: agentkernel %s)", rule->usage);
}

int words_read(const struct words_rule *rule, char **argv, void *flags, struct settings *settings,
	       char **ret, unsigned *ret_count, struct err *e)
{
	static const struct opts_table none = { 0 };
	char **rest = argv;
	unsigned count = 0;

	for (;;) {
		int used = 0;

		if ((!rule->ends_options || count < rule->min) &&
		    opts_parse(rule->options ? rule->options : &none, rest, flags, settings, &used,
			       e) < 0)
			return -1;
		rest += used;
		if (!*rest)
			break;
		if (count == rule->max)
			return err_set(e, ERR_INVALID,
				       "unexpected argument '%s' (usage: agentkernel %s)", *rest,
				       rule->usage);
		ret[count++] = *rest++;
	}
	ret[count] = NULL;
	*ret_count = count;
	return count < rule->min ? missing(rule, e) : 0;
}

char **words_cut_command(char **argv)
{
	for (argv += *argv != NULL; *argv; argv++) {
		if (strcmp(*argv, "--") != 0)
			continue;
		*argv = NULL;
		return argv[1] ? argv + 1 : NULL;
	}
	return NULL;
}
