#pragma once
/*
 * audit - who did what to which sandbox, one line an event in the state directory.
 *
 * Any number of processes write at the same time: a line is one write() to a file that is opened
 * for appending. At AUDIT_MAX_BYTES the file becomes AUDIT_OLD_FILE, whose lines are lost; a lock
 * makes sure that this happens once and that no line goes into a file that has been moved away.
 * docs/design/audit.md has the format.
 */
#include "state/ak.h"
#include "state/auditline.h"

#define AUDIT_FILE "audit.jsonl"
#define AUDIT_OLD_FILE "audit.jsonl.1"
#define AUDIT_MAX_BYTES (8u << 20)

/* Who did it. NULL in an event: who has started this process. */
struct audit_actor {
	uint32_t uid;
	uint32_t pid;
	const char *program;
};

/* The program that has started this process, looked up ahead of time. */
#define AUDIT_PROGRAM_MAX_BYTES 32 /* the kernel's names have 15 */
struct audit_caller {
	struct audit_actor actor; /* borrows from the next */
	char program[AUDIT_PROGRAM_MAX_BYTES];
};
void audit_find_caller(struct audit_caller *ret);
/* The same for another process of ours, whose parent asked for something. */
void audit_find_caller_of(uint32_t uid, uint32_t pid, struct audit_caller *ret);

/*
 * A supervisor outlives who started it, and its parent is then nobody who asked for anything: from
 * now on events without an actor are the acts of this one. Copied.
 */
void audit_work_for(const struct audit_caller *caller);

/* "exit status 3", "killed by signal 9"; NULL: it went well. */
#define AUDIT_END_MAX_BYTES 48
const char *audit_format_end(int wait_status, char out[AUDIT_END_MAX_BYTES]);

/* Which sandbox an event is about: its name may mean another one later. */
#define AUDIT_ID_BYTES AK_ID_BYTES
#define AUDIT_OWNER_MAX_BYTES AK_OWNER_MAX_BYTES
struct audit_identity {
	char id[AUDIT_ID_BYTES + 1];           /* "": none that is visible */
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
	const struct audit_identity *who; /* which sandbox; NULL: what its name means now */
	const char *what;                 /* words, or NULL */
	char *const *argv;                /* instead: a command; or NULL */
	const char *result;               /* NULL: it went well */
	const char *detail;               /* NULL: none */
};

/*
 * Some ten system calls. -errno when the line could not be written: the act that it is about goes
 * on, but somebody should be told once.
 */
int audit_write(const struct ak *ak, const struct audit_event *event);
/* errno of the last line that this process could not write; 0: none was lost. */
int audit_lost_error(void);
