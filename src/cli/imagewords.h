#pragma once
/* imagewords - common parts of the `image` commands: options, and requests to the image helper. */
#include "cli/cli.h"
#include "cli/words.h"
#include "image/tool.h"

#define IMAGEWORDS_MAX (TOOL_REFERENCES_MAX + 2) /* plus a file and NULL */

struct imagewords_flags {
	bool is_json, is_quiet, is_all, is_dry;
	const char *name;
};

/* The arguments that a command takes. */
enum imagewords_shape {
	IMAGEWORDS_NOTHING,
	IMAGEWORDS_REFERENCES,
	IMAGEWORDS_REFERENCE_FILE, /* or docker's order, if unambiguous */
	IMAGEWORDS_REFERENCES_FILE,
	IMAGEWORDS_FILE, /* with --name */
};

struct imagewords_command {
	const char *operation; /* the helper's */
	enum imagewords_shape shape;
	struct words_rule rule;
};

/* --json and --quiet */
extern const struct opts_table imagewords_options;

/* Parses options and words, in any order, and runs the helper. */
ERR_CHECKED int imagewords_run(const struct imagewords_command *c,
			       const struct cli_context *context, char **argv, int *ret_status,
			       struct err *e);

/* Rows that several commands share. */
#define IMAGEWORDS_JSON                                                                            \
	{                                                                                          \
		"Options", "json", 0, NULL, "machine-readable output",                             \
			.kind = OPT_FLAG, .offset = offsetof(struct imagewords_flags, is_json)     \
	}
#define IMAGEWORDS_QUIET                                                                           \
	{                                                                                          \
		NULL, "quiet", 'q', NULL, "no progress, only the result",                          \
			.kind = OPT_FLAG, .offset = offsetof(struct imagewords_flags, is_quiet)    \
	}
#define IMAGEWORDS_NAME                                                                            \
	{                                                                                          \
		NULL, "name", 'n', "REF", "what to call the image",                                \
			.kind = OPT_TEXT, .offset = offsetof(struct imagewords_flags, name)        \
	}
