#pragma once
/*
 * audit - the log of actions on sandboxes, one line per event in the state directory.
 *
 * Any number of processes write concurrently: a line is one write() to a file opened with O_APPEND.
 * At AUDIT_MAX_BYTES the file is renamed to AUDIT_OLD_FILE, replacing the previous one; a lock
 * ensures that this happens once and that no line goes to a renamed file. docs/design/audit.md has
 * the format.
 */
#include "state/ak.h"
#include "state/auditline.h"

#define AUDIT_FILE "audit.jsonl"
#define AUDIT_OLD_FILE "audit.jsonl.1"
#define AUDIT_MAX_BYTES (8u << 20)

/* The process that acted. NULL in an event: the parent of this process. */
struct audit_actor {
	uint32_t uid;
	uint32_t pid;
	const char *program;
};

/* The program that started this process, looked up in advance. */
#define AUDIT_PROGRAM_MAX_BYTES 32 /* the kernel's names have 15 bytes */
struct audit_caller {
	struct audit_actor actor; /* borrows from .program */
	char program[AUDIT_PROGRAM_MAX_BYTES];
};
void audit_find_caller(struct audit_caller *ret);
/* Likewise for another process of ours, whose parent made the request. */
void audit_find_caller_of(uint32_t uid, uint32_t pid, struct audit_caller *ret);

/*
 * Sets the actor for later events without one; copied. For a supervisor, which outlives the process
 * that started it and then has an unrelated parent.
 */
void audit_work_for(const struct audit_caller *caller);

/* "exit status 3", "killed by signal 9"; NULL for success. */
#define AUDIT_END_MAX_BYTES 48
const char *audit_format_end(int wait_status, char out[AUDIT_END_MAX_BYTES]);

/* Which sandbox an event is about: its name may mean another one later. */
#define AUDIT_ID_BYTES AK_ID_BYTES
#define AUDIT_OWNER_MAX_BYTES AK_OWNER_MAX_BYTES
struct audit_identity {
	char id[AUDIT_ID_BYTES + 1];           /* "": none visible to the caller */
	char owner[AUDIT_OWNER_MAX_BYTES + 1]; /* "": the user */
};
void audit_set_identity(struct audit_identity *ret, const char *id, const char *owner);

/* Who knows which sandbox a name means (named/named): called for events that do not say so. */
typedef void audit_identify_fn(const struct ak *ak, const char *name, struct audit_identity *ret);
void audit_identify_by(audit_identify_fn *identify);

struct audit_event {
	enum auditline_type type;
	const struct audit_actor *actor;
	const char *sandbox;              /* NULL: none */
	const struct audit_identity *who; /* NULL: the sandbox that has the name now */
	const char *what;                 /* text, or NULL */
	char *const *argv;                /* a command instead of `what`; or NULL */
	const char *result;               /* NULL: success */
	const char *detail;               /* NULL: none */
};

/*
 * Appends a line; some ten system calls. Returns -errno on failure: the action goes on, but the
 * user should be told once.
 */
int audit_write(const struct ak *ak, const struct audit_event *event);
/* errno of the last line that this process could not write; 0: none was lost. */
int audit_lost_error(void);
