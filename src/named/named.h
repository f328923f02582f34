#pragma once
/*
 * named - one named sandbox: its record, policy and locks.
 *
 * sandboxes/NAME/ in the state directory:
 *
 *   record        its identity: id, image, labels, checkpoint layers, expiry
 *   policy        what it may do, resolved once and applied in full at every start
 *   lock          held by the process that runs or changes it; released when that process dies
 *   run           what its last start created and how it ended (named/namedrun)
 *   disk.N/       what it has written (named/nameddisk); the record has the current N
 *   log/          output of detached commands
 *   rules         the network rules before their first change
 *   notices       messages about the workspace that the user has not seen yet
 *   control.sock  its supervisor's socket, while it is running
 *
 * After a crash, a free lock shows that nobody runs the sandbox. named/nameddir makes and removes
 * the directory; docs/design/named-sandboxes.md describes the files.
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
#define NAMED_LOCK_FILE "lock"
#define NAMED_SYSTEM_LOG "log/system" /* base/logfile: the supervisor's messages */
#define NAMED_NAME_MAX_BYTES AK_NAME_MAX_BYTES
#define NAMED_ID_BYTES AUDIT_ID_BYTES /* hexadecimal digits */
#define NAMED_OWNER_MAX_BYTES AUDIT_OWNER_MAX_BYTES
#define NAMED_LABELS_MAX 64u
#define NAMED_LABEL_MAX_BYTES 512u
#define NAMED_LAYERS_MAX 48u /* stacked checkpoints */
#define NAMED_RECORD_MAX_BYTES (1u << 20)
#define NAMED_TTL_MIN_MS 1000ull
#define NAMED_TTL_MAX_MS (10ull * 366 * 24 * 3600 * 1000)

struct named {
	char name[NAMED_NAME_MAX_BYTES + 1]; /* name of the directory, not in the record */
	char id[NAMED_ID_BYTES + 1];         /* never changes; also its machine-id */
	uint64_t created_s;
	uint64_t expires_s;   /* 0: never */
	char *backend;        /* its name; NULL: native, as in records of earlier builds */
	char *image;          /* as requested, for display */
	char *image_pin;      /* name of the image's pin in the image store; NULL: host */
	char **labels;        /* "key=value", NULL-terminated; or NULL */
	char **layers;        /* checkpoint layers, highest first; as above */
	char *origin;         /* "checkpoint ID", "fork of NAME"; NULL: from its image */
	uint64_t disk_number; /* of its directory disk.N */
	bool has_disk_limit;  /* --disk was given and is enforced */
	char *init;           /* shell script for the first start, until it succeeds; or NULL */
	char *owner;          /* key of its creator (http/keys), or a single call; NULL: the user */
	uint64_t checkpoint_every_ms; /* see named/checkpointinterval; 0: none */
	uint64_t checkpoint_keep;     /* how many of these */
	char **public_ports;          /* whose URLs need no key; or NULL */
	char *creator; /* the server that created it (named_work_for()); NULL: a command */

	int dir_fd, lock_fd; /* -1: not open */
	int change_fd;       /* -1: outside named_begin_change() */
	bool has_lock;       /* this process holds the lock */
	bool is_damaged;     /* opened without its record */
};

void named_init(struct named *n);
void named_done(struct named *n); /* may run twice */

/* "[a-z0-9]([a-z0-9_.-]*[a-z0-9])?", up to 63 characters. */
ERR_CHECKED int named_check_name(const char *name, struct err *e);
ERR_CHECKED int named_check_label(const char *label, struct err *e);

/*
 * Sets the owner that this process works for. A process of the user (the default) sees every
 * sandbox. A server's worker sees only the sandboxes of the owner that the server names; for NULL,
 * the administrator, all but those of a single call. An invisible sandbox is ERR_NOT_FOUND, with
 * the same message as a missing one. New sandboxes get that owner.
 */
#define NAMED_CALL_OWNER "call:" /* prefix for one call; nobody else sees it */
#define NAMED_CREATOR_BYTES AK_CREATOR_BYTES
/* `creator` identifies the server's options: they are not checked again for its sandboxes. */
void named_work_for(struct ak *ak, const char *owner, const char *creator);
const char *named_owner(const struct ak *ak);   /* NULL: none */
const char *named_creator(const struct ak *ak); /* NULL: none */
bool named_is_visible(const struct ak *ak, const char *owner);
/* From now on, a new sandbox that takes over the name of `n` is treated as missing. */
void named_pin(struct ak *ak, const struct named *n);

/*
 * Opens the directory and reads the record. ERR_NOT_FOUND if there is none, or if it is not
 * visible. named_open_any() ignores visibility, for callers that remove what is not in use;
 * named_open_any_in() finds it in the directory of nameddir_find(), for callers that open many.
 */
ERR_CHECKED int named_open_any_in(int all_fd, const char *name, struct named *ret, struct err *e);
ERR_CHECKED int named_open_any(const struct ak *ak, const char *name, struct named *ret,
			       struct err *e);
ERR_CHECKED int named_open(const struct ak *ak, const char *name, struct named *ret, struct err *e);

/* Looks up the sandbox's id and owner for the audit log. */
void named_identify(const struct ak *ak, const char *name, struct audit_identity *ret);

/* Opens only the directory, to remove a sandbox whose record is unreadable. */
ERR_CHECKED int named_open_damaged(const struct ak *ak, const char *name, struct named *ret,
				   struct err *e);
ERR_CHECKED int named_load_policy(const struct named *n, struct policy *ret, struct err *e);

/*
 * Serializes writers of the record and the policy, whether the sandbox is running or not, and reads
 * the record again. Hold it briefly and wait for nothing; to hold both, take the lock first.
 */
ERR_CHECKED int named_begin_change(struct named *n, struct err *e);
void named_end_change(struct named *n); /* may run twice */
/* Reads the record again, for callers that know that nobody replaces the disk meanwhile. */
ERR_CHECKED int named_read_again(struct named *n, struct err *e);

/* Replaces the policy or the record atomically; between begin and end. */
ERR_CHECKED int named_save_policy(const struct named *n, const struct policy *p, struct err *e);
ERR_CHECKED int named_save(const struct named *n, struct err *e);

/*
 * Takes the lock that a process needs to run or change it; ERR_BUSY if another process has it.
 * Reads the record again unless damaged, so strings borrowed from *n are freed, and decisions that
 * depend on the record must be made afterwards.
 */
ERR_CHECKED int named_lock(struct named *n, struct err *e);
/* The same, waiting at most wait_ms for the other process. */
ERR_CHECKED int named_lock_within(struct named *n, unsigned wait_ms, struct err *e);
/* Takes the lock of one that no other process can know yet. */
ERR_CHECKED int named_lock_new(struct named *n, struct err *e);
void named_unlock(struct named *n); /* may run twice */
/* False: the sandbox or its directory was removed since it was opened. */
bool named_is_there(const struct named *n);
/* Is it locked by any process, including ours? True if unknown, so that nothing is removed. */
bool named_is_locked(const struct named *n);
/* Likewise; sets ret_build to the build of its supervisor, "" if not known or not locked. */
bool named_is_locked_by(const struct named *n, char ret_build[BUILDID_MAX_BYTES]);

/* Is its time (--ttl) over? */
bool named_is_expired(const struct named *n);

/* A supervisor writes its build into the lock file, because older builds do not read that. */
void named_note_build(const struct named *n);

void named_random_id(char out[NAMED_ID_BYTES + 1]);
