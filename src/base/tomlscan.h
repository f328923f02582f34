#pragma once
/*
 * tomlscan - a forward-only position in a TOML document; for toml*.c only.
 *
 * Call tomlscan_check() first: it guarantees that the document is UTF-8 and has no control
 * characters except tabs and line ends ("\n", "\r\n"), and so no NUL, which here means the end.
 * Everything else only moves forward and always knows its line and column.
 */
#include "base/toml.h"

struct tomlscan {
	const char *begin; /* of the document, including a byte order mark */
	const char *at;
	const char *end;
	const char *name;
	struct toml_where where; /* position of `at` */
};

/* A position for later error messages. */
struct tomlscan_mark {
	const char *at;
	struct toml_where where;
};

void tomlscan_init(struct tomlscan *s, const char *bytes, size_t len, const char *name);
ERR_CHECKED int tomlscan_check(const struct tomlscan *s, struct err *e);

static inline char tomlscan_peek(const struct tomlscan *s)
{
	return s->at < s->end ? *s->at : '\0';
}

bool tomlscan_is(const struct tomlscan *s, const char *text); /* does it follow? */
bool tomlscan_take(struct tomlscan *s, const char *text);     /* likewise, and skips it */
void tomlscan_skip(struct tomlscan *s, size_t len);           /* at most to the end */

void tomlscan_skip_blank(struct tomlscan *s);   /* spaces and tabs */
bool tomlscan_take_newline(struct tomlscan *s); /* "\n" or "\r\n" */
void tomlscan_skip_comment(struct tomlscan *s); /* if there is one */
void tomlscan_skip_lines(struct tomlscan *s);   /* blanks, comments and line ends */

struct tomlscan_mark tomlscan_mark(const struct tomlscan *s);
struct toml_span tomlscan_span(const struct tomlscan *s, const char *from); /* up to `at` */

/*
 * ERR_INVALID with "NAME:LINE:COLUMN: words: 'text'", where the text is between the mark and the
 * current position, or the next word if that is empty. Both return -1.
 */
int tomlscan_err(const struct tomlscan *s, struct tomlscan_mark from, struct err *e,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int tomlscan_err_limit(const struct tomlscan *s, struct tomlscan_mark from, struct err *e,
		       const char *words); /* likewise with ERR_LIMIT */

/* Sets "NAME:LINE:COLUMN: words" with control characters replaced. Returns -1. */
int tomlscan_say(const char *name, struct toml_where where, enum err_code code, const char *words,
		 struct err *e);
