#pragma once
/*
 * auditline - one line of the audit log: an event as JSON, and back.
 *
 * docs/design/audit.md has the format. The writer gives whole lines of bounded length whatever
 * the event holds; the reader takes such lines and no others. Pure code.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define AUDITLINE_MAX_BYTES 4096u /* with its newline; longer texts are cut in their middle */

/* What happens to sandboxes. One row each in auditline.c. */
enum auditline_type {
	AUDITLINE_CREATE,
	AUDITLINE_START,
	AUDITLINE_STOP,
	AUDITLINE_RESTART,
	AUDITLINE_PAUSE,
	AUDITLINE_RESUME,
	AUDITLINE_REMOVE,
	AUDITLINE_EXEC,
	AUDITLINE_KILL,
	AUDITLINE_ATTACH,
	AUDITLINE_FILE, /* written or removed from outside */
	AUDITLINE_CHECKPOINT,
	AUDITLINE_RESTORE,
	AUDITLINE_FORK,
	AUDITLINE_UPDATE,
	AUDITLINE_NETWORK,   /* rules */
	AUDITLINE_LIMIT,     /* reached */
	AUDITLINE_DENIED,    /* by the policy */
	AUDITLINE_PROTECTED, /* something in a workspace was moved to the quarantine, or refused */
	AUDITLINE_END,       /* of a sandbox by itself, or of a command */
	AUDITLINE_GC,

	AUDITLINE_TYPE_COUNT
};

const char *auditline_type_word(enum auditline_type type);
ERR_CHECKED int auditline_parse_type(const char *text, enum auditline_type *ret, struct err *e);

#define AUDITLINE_RESULT_OK "ok"

/* An event. Borrowed texts; of those that may be NULL nothing is written then. */
struct auditline {
	uint64_t time_ms; /* since 1970 */
	uint32_t uid;     /* who: */
	uint32_t pid;
	const char *program;
	const char *sandbox; /* may be NULL, as the next two */
	const char *id; /* which one of that name; NULL: there was none, or none of the owner's */
	const char *owner; /* named/named: whose it is, or who asked for one that is not there */
	enum auditline_type type;
	const char *what;   /* words, or NULL */
	char *const *argv;  /* instead of `what`: a command, ended by NULL; or NULL */
	const char *result; /* AUDITLINE_RESULT_OK, or what went wrong */
	const char *detail; /* may be NULL */
	bool is_cut;        /* some text was longer; set by the reader */
};

void auditline_format(const struct auditline *a, struct buf *out);

/*
 * Takes a line without its newline apart, in its own bytes. Words of a command go to `words`, which
 * has room for AUDITLINE_WORDS_MAX. False: not such a line.
 */
#define AUDITLINE_WORDS_MAX (AUDITLINE_MAX_BYTES / 3 + 1) /* `"",` is the shortest word */
bool auditline_parse(char *line, size_t len, char *words[AUDITLINE_WORDS_MAX],
		     struct auditline *ret);
