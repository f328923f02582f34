#pragma once
/*
 * auditline - one line of the audit log: an event as JSON, and back.
 *
 * docs/design/audit.md has the format. The writer produces complete lines of bounded length for any
 * event; the reader accepts only such lines. No system calls.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define AUDITLINE_MAX_BYTES 4096u /* with its newline; longer texts are shortened in the middle */

/* Types of events. auditline.c has one row for each. */
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
	AUDITLINE_NETWORK,   /* rules changed */
	AUDITLINE_LIMIT,     /* a limit was reached */
	AUDITLINE_DENIED,    /* refused by the policy */
	AUDITLINE_PROTECTED, /* a workspace file was moved to the quarantine, or a change refused */
	AUDITLINE_END,       /* a sandbox ended by itself, or a command ended */
	AUDITLINE_GC,
	AUDITLINE_BUILD, /* an image was built, committed or pushed */

	AUDITLINE_TYPE_COUNT
};

const char *auditline_type_word(enum auditline_type type);
ERR_CHECKED int auditline_parse_type(const char *text, enum auditline_type *ret, struct err *e);

#define AUDITLINE_RESULT_OK "ok"

/* An event. Texts are borrowed; NULL texts are not written. */
struct auditline {
	uint64_t time_ms; /* since 1970 */
	uint32_t uid;     /* the actor: */
	uint32_t pid;
	const char *program;
	const char *sandbox; /* this and the next two may be NULL */
	const char *id; /* of the sandbox with that name; NULL: none, or not visible to the owner */
	const char *owner; /* see named/named: owner of the sandbox, or of a request for a
			    * missing one */
	enum auditline_type type;
	const char *what;   /* text, or NULL */
	char *const *argv;  /* a command instead of `what`, NULL-ended; or NULL */
	const char *result; /* AUDITLINE_RESULT_OK, or an error message */
	const char *detail; /* may be NULL */
	bool is_cut;        /* set by the reader: some text was shortened */
};

void auditline_format(const struct auditline *a, struct buf *out);

/*
 * Parses a line without its newline, in place. `words` has room for AUDITLINE_WORDS_MAX arguments
 * of the command. False: not a valid line.
 */
#define AUDITLINE_WORDS_MAX (AUDITLINE_MAX_BYTES / 3 + 1) /* `"",` is the shortest word */
bool auditline_parse(char *line, size_t len, char *words[AUDITLINE_WORDS_MAX],
		     struct auditline *ret);
