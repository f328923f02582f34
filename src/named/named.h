#pragma once
/*
 * named - a sandbox with a name, as it lies on disk.
 *
 * sandboxes/NAME/ in the state directory:
 *
 *   record        who it is: id, image, labels, checkpoint layers, when it expires
 *   policy        what it may do, resolved once and applied in full at every start
 *   lock          held by whoever runs or changes it; the kernel lets go when that process dies
 *   run           what its last start made and how it ended: written before anything is made
 *   disk.N/       what it has written (sandbox/imageroot); the record says which N counts
 *   log/          output of detached commands
 *   control.sock  its supervisor, while it runs
 *
 * It appears and disappears by one rename: it is made in sandboxes/.making, and removed by moving
 * it to sandboxes/.trash first. Whatever a crash leaves is in one of these two, or tells by its
 * lock that nobody runs it. docs/design/named-sandboxes.md describes the files.
 */
#include "base/buf.h"
#include "base/buildid.h"
#include "base/err.h"
#include "state/audit.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

#define NAMED_DIR "sandboxes"
#define NAMED_NAME_MAX_BYTES AK_NAME_MAX_BYTES
#define NAMED_ID_BYTES AUDIT_ID_BYTES /* hexadecimal digits */
#define NAMED_OWNER_MAX_BYTES AUDIT_OWNER_MAX_BYTES
#define NAMED_LABELS_MAX 64u
#define NAMED_LABEL_MAX_BYTES 512u
#define NAMED_LAYERS_MAX 48u /* checkpoints below each other */
#define NAMED_RECORD_MAX_BYTES (1u << 20)
#define NAMED_TTL_MIN_MS 1000ull
#define NAMED_TTL_MAX_MS (10ull * 366 * 24 * 3600 * 1000)

enum named_state {
	NAMED_CREATED,
	NAMED_RUNNING,
	NAMED_PAUSED,
	NAMED_STOPPED,

	NAMED_STATE_COUNT
};

struct named {
	char name[NAMED_NAME_MAX_BYTES + 1]; /* of the directory, not in the record */
	char id[NAMED_ID_BYTES + 1];         /* its own for ever; also its machine-id */
	uint64_t created_s;
	uint64_t expires_s;   /* 0: never */
	char *image;          /* as it was asked for, for showing */
	char *image_pin;      /* the name under which the image store keeps its image; NULL: host */
	char **labels;        /* "key=value", ended by NULL; or NULL */
	char **layers;        /* checkpoint layers, highest first; as above */
	char *origin;         /* "checkpoint ID", "fork of NAME"; NULL: made from its image */
	uint64_t disk_number; /* of its directory disk.N */
	bool has_disk_limit;  /* --disk was asked for and is enforced */
	char *init;    /* still to be run inside, by a shell, before anything else; or NULL */
	char *owner;   /* the key that made it (http/keys), or the one call; NULL: the user */
	char *creator; /* which server's callers made it (named_work_for()); NULL: the user, by a
			  command */

	int dir_fd, lock_fd; /* -1: not open */
	int change_fd;       /* -1: no named_begin_change() */
	bool has_lock;       /* we are the one */
	bool is_damaged;     /* opened without its record */
};

/* What the last start made and how it ended. */
struct named_run {
	uint64_t state; /* enum named_state */
	uint64_t supervisor_pid, init_pid;
	uint64_t started_s, ended_s;
	uint32_t host_gid;     /* what the sandbox's group 0 is outside */
	uint32_t switches_ids; /* commands may run as other users */
	char *reason;          /* why it ended, NULL: it was asked to */
	char **cgroups;        /* paths */
};

void named_init(struct named *n);
void named_done(struct named *n); /* may run twice */
void named_run_done(struct named_run *r);

/* "[a-z0-9]([a-z0-9_.-]*[a-z0-9])?", up to 63 characters. */
ERR_CHECKED int named_check_name(const char *name, struct err *e);
ERR_CHECKED int named_check_label(const char *label, struct err *e);

/*
 * For whom this process works. A process of the user's (the default) sees every sandbox. One that
 * carries out a call for a face works for the owner that the face names, and sees only what that
 * owner has made; for NULL, the face's administrator, all but what belongs to a single call. What
 * it does not see is not there: ERR_NOT_FOUND, with the same words. What it makes has that owner.
 */
#define NAMED_CALL_OWNER "call:" /* of one call; nobody else sees it */
#define NAMED_CREATOR_BYTES AK_CREATOR_BYTES
/* `creator` stands for the options of that server: what was judged by them once is not judged
 * again. */
void named_work_for(struct ak *ak, const char *owner, const char *creator);
const char *named_owner(const struct ak *ak);   /* NULL: none */
const char *named_creator(const struct ak *ak); /* NULL: none */
bool named_is_visible(const struct ak *ak, const char *owner);
/* From now on its name means this one: another that takes its place is not there. */
void named_pin(struct ak *ak, const struct named *n);

/*
 * Its directory and record. ERR_NOT_FOUND when there is none, or none that is visible;
 * named_open_any() is for those who have to know of all: what they do not see they would remove.
 */
ERR_CHECKED int named_open_any(const struct ak *ak, const char *name, struct named *ret,
			       struct err *e);
ERR_CHECKED int named_open(const struct ak *ak, const char *name, struct named *ret, struct err *e);

/* Which sandbox a name means now, for the audit log. */
void named_identify(const struct ak *ak, const char *name, struct audit_identity *ret);

/* Its directory alone, for removing one whose record cannot be read. */
ERR_CHECKED int named_open_damaged(const struct ak *ak, const char *name, struct named *ret,
				   struct err *e);
ERR_CHECKED int named_load_policy(const struct named *n, struct policy *ret, struct err *e);

/*
 * One who writes the record or the policy after the other, whoever runs the sandbox; reads the
 * record again. The caller holds it briefly and waits for nothing: whoever needs both takes the
 * lock first.
 */
ERR_CHECKED int named_begin_change(struct named *n, struct err *e);
void named_end_change(struct named *n); /* may run twice */
/* The record once more, for who knows by other means that nobody replaces the disk meanwhile. */
ERR_CHECKED int named_read_again(struct named *n, struct err *e);

/* Replaces the policy or the record, atomically; between begin and end. */
ERR_CHECKED int named_save_policy(const struct named *n, const struct policy *p, struct err *e);
ERR_CHECKED int named_save(const struct named *n, struct err *e);

/*
 * The network rules it was created with: kept once, before the first change; and back, in place of
 * *rules.
 */
struct egress;
ERR_CHECKED int named_keep_rules(const struct named *n, const struct egress *rules, struct err *e);
ERR_CHECKED int named_restore_rules(const struct named *n, struct egress *rules, struct err *e);

/*
 * A new one: *n has what it is to be, its id and time are chosen here. Afterwards it is open and
 * locked. ERR_EXISTS when the name is taken.
 */
ERR_CHECKED int named_create(const struct ak *ak, struct named *n, const struct policy *p,
			     struct err *e);

#define NAMED_DISK_NAME_MAX_BYTES 32
void named_format_disk(uint64_t number, char out[NAMED_DISK_NAME_MAX_BYTES]);

/*
 * Stands on these layers from now on, with nothing written on top, all at once: before it, it is as
 * it was. The caller has the lock.
 */
ERR_CHECKED int named_replace_disk(struct named *n, char *const *layers, struct err *e);
/*
 * What it has written; *ret_fd is -1 for one that was never started. Its supervisor is asked, or,
 * where there is none and the disk has to be mounted, the lock is taken.
 */
ERR_CHECKED int named_open_upper(struct named *n, int *ret_fd, struct err *e);
/* What a replacement that died has left; the caller has the lock. */
void named_sweep_disks(const struct named *n);

/*
 * Becomes the one who runs or changes it; ERR_BUSY when another is. What was read before may not be
 * true any more, so the record is read again (but of a damaged one): texts of *n that the caller
 * has borrowed are gone, and what it decides from the record it decides afterwards.
 */
ERR_CHECKED int named_lock(struct named *n, struct err *e);
/* The same, but waits for the other to finish, so long at most. */
ERR_CHECKED int named_lock_within(struct named *n, unsigned wait_ms, struct err *e);
void named_unlock(struct named *n); /* may run twice */
/* False: it was removed, or its directory deleted, since it was opened. */
bool named_is_there(const struct named *n);
/* By anyone, us included. Where nobody can tell, somebody has it: nothing is removed then. */
bool named_is_locked(const struct named *n);

/* ERR_NOT_FOUND: never started. */
ERR_CHECKED int named_load_run(const struct named *n, struct named_run *ret, struct err *e);
ERR_CHECKED int named_save_run(const struct named *n, const struct named_run *r, struct err *e);
/* The processes of that run, once they are known: only these are added to the file. */
ERR_CHECKED int named_add_processes(const struct named *n, const struct named_run *r,
				    struct err *e);

/*
 * Which build runs it: the supervisor writes that into the lock it holds, which older builds do not
 * read. "" where it is not known.
 */
void named_note_build(const struct named *n);
void named_read_build(const struct named *n, char out[BUILDID_MAX_BYTES]);

/*
 * Kills the process that the file names as its supervisor, if that process has the sandbox's lock
 * open: a number in a file may be another's by now. ERR_NOT_FOUND where it is none.
 */
ERR_CHECKED int named_kill_supervisor(const struct named *n, struct err *e);

/*
 * What its supervisor had to say about the workspace and nobody was told yet (workspace/newnames):
 * texts, each ended by a NUL; and back as a list, once. A failure leaves *ret alone.
 */
#define NAMED_SYSTEM_LOG "log/system" /* base/logfile: what its supervisor tells an operator */
#define NAMED_NOTICES_MAX_BYTES (256u << 10)
ERR_CHECKED int named_save_notices(const struct named *n, const struct buf *texts, struct err *e);
void named_take_notices(const struct named *n, char ***ret);

/* What it is now: the lock knows better than the file. *ret_reason is r's or static; may be NULL.
 */
enum named_state named_judge(const struct named *n, const struct named_run *r,
			     const char **ret_reason);
const char *named_state_word(enum named_state state);

/*
 * Out of sight at once; the caller has the lock. What is left lies in the trash, and
 * named_sweep_trash() removes it. On a full disk, where there is no room to move it, it is removed
 * where it lies; a crash on the way leaves a damaged sandbox, which can be removed again.
 */
ERR_CHECKED int named_trash(const struct ak *ak, const struct named *n, struct err *e);

/*
 * Removes what lies in the trash, and what creations that died have left. Ids that others still
 * work on stay.
 */
ERR_CHECKED int named_sweep_trash(const struct ak *ak, unsigned *ret_count, struct err *e);

/* Names of all, sorted; free with keyrows_list_free(). */
ERR_CHECKED int named_list(const struct ak *ak, char ***ret, struct err *e);

/* sandboxes/, made where it is missing; the caller's to close. */
ERR_CHECKED int named_open_all(const struct ak *ak, int *ret_fd, struct err *e);

void named_random_id(char out[NAMED_ID_BYTES + 1]);
