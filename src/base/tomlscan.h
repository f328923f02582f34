#pragma once
/*
 * tomlscan - a place in a TOML document that moves forward; for toml*.c only.
 *
 * tomlscan_check() comes first: after it the document is known to be UTF-8, to hold no control
 * characters but tabs and the ends of lines ("\n", "\r\n"), and so no NUL, which here means the
 * end. Everything after it only moves forward and knows its line and column at any time.
 */
#include "base/toml.h"

struct tomlscan {
	const char *begin; /* of the document, a byte order mark too */
	const char *at;
	const char *end;
	const char *name;
	struct toml_where where; /* of `at` */
};

/* A place to complain about later. */
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

bool tomlscan_is(const struct tomlscan *s, const char *text); /* is it what follows? */
bool tomlscan_take(struct tomlscan *s, const char *text);     /* ... and skip it */
void tomlscan_skip(struct tomlscan *s, size_t len);           /* no more than is left */

void tomlscan_skip_blank(struct tomlscan *s);   /* spaces and tabs */
bool tomlscan_take_newline(struct tomlscan *s); /* "\n" or "\r\n" */
void tomlscan_skip_comment(struct tomlscan *s); /* if there is one */
void tomlscan_skip_lines(struct tomlscan *s);   /* blanks, comments and ends of lines */

struct tomlscan_mark tomlscan_mark(const struct tomlscan *s);
struct toml_span tomlscan_span(const struct tomlscan *s, const char *from); /* until now */

/*
 * ERR_INVALID with "NAME:LINE:COLUMN: words: 'text'", where the text is what lies between the mark
 * and now, or the next word if that is nothing. Both return -1.
 */
int tomlscan_err(const struct tomlscan *s, struct tomlscan_mark from, struct err *e,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
int tomlscan_err_limit(const struct tomlscan *s, struct tomlscan_mark from, struct err *e,
		       const char *words); /* the same with ERR_LIMIT */

/* "NAME:LINE:COLUMN: words", with control characters made harmless. Returns -1. */
int tomlscan_say(const char *name, struct toml_where where, enum err_code code, const char *words,
		 struct err *e);
