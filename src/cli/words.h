#pragma once
/* words - parses commands whose arguments stand before, between and after the options. */
#include "cli/opts.h"

#define WORDS_MAX 16384u

struct words_rule {
	const char *usage; /* "sandbox start NAME...", for errors */
	const struct opts_table *options;
	unsigned min, max;
	bool ends_options; /* options end after the `min`th word: `exec NAME ls -l` */
};

/* `settings` as for opts_parse(). Words are borrowed from argv; `ret` has room for max + 1 and ends
 * in NULL. */
ERR_CHECKED int words_read(const struct words_rule *rule, char **argv, void *flags,
			   struct settings *settings, char **ret, unsigned *ret_count,
			   struct err *e);

/*
 * The words after "--", which is removed; NULL: there are none. A "--" that comes first separates
 * nothing: `create -- NAME`.
 */
char **words_cut_command(char **argv);
