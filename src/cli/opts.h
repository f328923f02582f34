#pragma once
/*
 * opts - parses command lines by tables.
 *
 * A command declares its options once, as rows; the parser, --help, the man page and the shell
 * completions use the same rows. Options end at the first word that is not one, or at "--", so
 * options of the command inside are never parsed as ours.
 */
#include "base/err.h"
#include "policy/settings.h"

#include <stdbool.h>
#include <stddef.h>

enum opt_kind {
	OPT_FLAG,         /* sets the bool at .offset */
	OPT_TEXT,         /* sets the const char * at .offset */
	OPT_LIST,         /* adds to the struct opts_list at .offset */
	OPT_SETTING,      /* adds a policy setting for .field */
	OPT_SETTING_FILE, /* adds one setting per line of a file */
	OPT_DIR_SETTING,  /* as OPT_SETTING; the next word is the value if it is clearly a directory
			   */
	OPT_JSON_FILE,    /* as OPT_TEXT; the next word is the value if it ends in .json, else it is "" */
	OPT_SETTING_OFF,  /* adds a policy setting without a text */
};

struct opt {
	const char *group; /* heading in --help; NULL: as the row before */
	const char *name;  /* without the dashes */
	char letter;       /* 0: none */
	const char *value; /* name of the value in --help; NULL: takes none */
	const char *help;
	enum opt_kind kind;
	size_t offset;
	enum policy_field field;
	const char *fixed;       /* OPT_SETTING without a value: its text */
	enum policy_layer layer; /* of a setting */
};

#define OPTS_LIST_MAX 64u
struct opts_list {
	const char *texts[OPTS_LIST_MAX + 1]; /* NULL-terminated; borrowed from argv */
	unsigned count;
};

#define OPTS_FILE_MAX_BYTES (1u << 20)

struct opts_table {
	const struct opt *rows;
	size_t count;
};

/*
 * Reads options from argv (which starts after the command's own name) into the struct at `out`
 * and into `settings` (NULL for a table without policy fields). *ret_used is the index of the first
 * word that is not an option.
 */
ERR_CHECKED int opts_parse(const struct opts_table *table, char **argv, void *out,
			   struct settings *settings, int *ret_used, struct err *e);

/* Is --help or -h among our own options? `table` may be NULL. */
bool opts_ask_for_help(const struct opts_table *table, char **argv);

/* May its value be left out? */
bool opts_has_optional_value(const struct opt *o);

/* Does a heading come before this row? */
bool opts_begins_group(const struct opts_table *table, size_t index);

struct buf;
void opts_format_help(const struct opts_table *table, struct buf *out);
