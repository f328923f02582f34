#pragma once
/*
 * dockerfile - parses a Dockerfile into instructions, as BuildKit reads it.
 *
 * Directives (syntax, escape, check), comments, continued lines, flags, JSON forms and
 * here-documents. What the words mean, and their variables, is build/plan's.
 *
 * Hostile input: the document. Sizes are limited; an error names line, column and instruction, and
 * what would be right.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define DOCKERFILE_MAX_BYTES (4u << 20)
#define DOCKERFILE_INSTRUCTIONS_MAX 4096u
#define DOCKERFILE_WORDS_MAX 4096u /* of one instruction */
#define DOCKERFILE_HEREDOCS_MAX 64u
#define DOCKERFILE_NAME_MAX_BYTES 200u /* of the document, in messages */

struct dockerfile_word {
	char *text; /* may contain NULs, from JSON */
	size_t len;
};

struct dockerfile_heredoc {
	char *name;
	char *content;
	unsigned fd;   /* before the "<<"; 0: none given */
	bool expands;  /* the name was not quoted */
	bool is_chomp; /* "<<-": tabs before the lines go */
};

struct dockerfile_instruction {
	char *keyword;                 /* in lower case */
	unsigned line, end_line;       /* from 1 */
	unsigned column, words_column; /* of the keyword, and of what follows it; from 1 */
	char **flags;                  /* "--name=value"; NULL-ended, may be NULL */
	struct dockerfile_word *words; /* ENV and LABEL: name, value, "=" or "" each */
	unsigned word_count;
	char *rest;   /* the text after the flags, as it stands */
	bool is_json; /* the words were a JSON array */
	struct dockerfile_heredoc *heredocs;
	unsigned heredoc_count;
	struct dockerfile_instruction *sub; /* of ONBUILD; NULL: none */
};

struct dockerfile {
	char *name; /* for messages */
	char escape;
	char *syntax, *check; /* directives; NULL: none */
	struct dockerfile_instruction *list;
	unsigned count;
};

/* `name` is that of the file, for messages. */
ERR_CHECKED int dockerfile_parse(const char *name, const char *bytes, size_t len,
				 struct dockerfile *ret, struct err *e);
void dockerfile_done(struct dockerfile *d); /* may run twice, and on a zeroed struct */

/* One instruction by itself, for ONBUILD of an image: `name` says where it is from. */
ERR_CHECKED int dockerfile_parse_line(const char *name, const char *line, struct dockerfile *ret,
				      struct err *e);

/* "NAME:LINE:COLUMN: KEYWORD: " before what `fmt` says. Returns -1. */
int dockerfile_err(const char *name, const struct dockerfile_instruction *i, enum err_code code,
		   struct err *e, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same before an error that is set already. */
int dockerfile_err_wrap(const char *name, const struct dockerfile_instruction *i, struct err *e);

/* Parses a JSON array of texts. 0: it is one; 1: it is not JSON; -1: not of texts alone. */
ERR_CHECKED int dockerfile_parse_json(const char *text, struct dockerfile_word **ret,
				      unsigned *ret_count, struct err *e);
