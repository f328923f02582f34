#pragma once
/*
 * claim - a sandbox that was built before anybody asked for it: how the daemon is spoken to.
 *
 * The daemon (pool/daemon) keeps sandboxes ready, each with a process of its own (pool/warm).
 * Whoever wants one sends what it must be, to the byte: the build of the
 * program, its own surroundings (pool/surroundings), the resolved policy, less what belongs to
 * the command, and the layers of its image. If there is one, two sockets come back: to that
 * sandbox's process, for signals and for how it ended, and to its init, for the command itself, so
 * that nobody else has to be woken. If there is none, or no daemon, the caller builds its own and
 * nobody is told.
 *
 * Directories of the host are not part of the key: a sandbox that will show some waits without
 * them, and gets them from whoever claims it (sandbox/placement), checked as at any start. Two
 * things cannot wait ready: a home directory, around which the root is built, and a private clone
 * of a workspace.
 */
#include "base/buf.h"
#include "base/err.h"
#include "named/control.h"
#include "policy/policy.h"

#include <stdbool.h>

struct ak;

struct images;

#define CLAIM_STATUS_TABLE "table"
#define CLAIM_SOCKET "daemon.sock"
#define CLAIM_COMMAND_ID 1u  /* the only one it ever runs */
#define CLAIM_ANSWER_MS 100u /* until the daemon answers; then a sandbox is built as without it */
#define CLAIM_KEY_MAX_BYTES (256u << 10)
#define CLAIM_DENIALS_MAX_BYTES (64u << 10)

enum claim_kind {
	CLAIM_TAKE = 300, /* cgroups (pool/surroundings), a NUL, a key; answered with struct
			     claim_answer, two sockets and perhaps a user namespace */
	CLAIM_PREWARM,    /* struct claim_count, then a key */
	CLAIM_STATUS,     /* CLAIM_STATUS_TABLE, or nothing for JSON; answered with a text */
	CLAIM_STOP,

	CLAIM_READY, /* from a sandbox's process: struct claim_answer, its init's socket, perhaps a
			namespace */
	CLAIM_END,   /* from the client, when its command has ended: struct claim_end, denials */
};

struct claim_count {
	uint32_t count;
};

/* What a client has to know of its sandbox. */
struct claim_answer {
	uint32_t idmap_kind, host_uid, host_gid; /* of the sandbox's ids: sandbox/idmap.h */
	uint32_t filter;                         /* for a command whose streams are no files */
	uint32_t filter_for_file_streams;        /* for one that has such a stream */
};

/* One that is ours. */
struct claim {
	bool is_other_build;     /* there is none: the daemon is of another build */
	bool awaits_places;      /* it has to be sent what it shows of the host */
	int process_fd, init_fd; /* -1: not open */
	int owner_ns_fd;         /* maps the files of this very user (sandbox/idmap.h); -1: none */
	struct claim_answer answer;
};
void claim_done(struct claim *c); /* may run twice */

/* What `run` would know at the end; each denial follows as "HOST\0PORT\0REASON\0FIX\0". */
struct claim_end {
	uint64_t cpu_us, peak_memory_bytes, oom_kill_count, pids_refused_count;
	uint32_t has_memory, limit, gate_deaths, denial_count;
	uint32_t is_stuck; /* a process inside does not end: the kernel holds it */
};

/* Why such a sandbox cannot wait ready; NULL: it can. */
const char *claim_find_obstacle(const struct policy *p);
/* False: such a sandbox cannot wait ready, or this process cannot be compared
 * (pool/surroundings). */
bool claim_format_key(const struct policy *p, const struct images *image, struct buf *out);
/* Its parts, borrowed. */
struct claim_key {
	const char *build;        /* base/buildid: a daemon of another build has other sandboxes */
	const char *surroundings; /* pool/surroundings */
	const char *places;       /* "yes": it gets directories of the host when it is claimed */
	const char *layers, *policy;
	size_t policy_len;
};
ERR_CHECKED int claim_split_key(const char *key, size_t len, struct claim_key *ret, struct err *e);
/* And its policy; *ret_key borrows from the key. */
ERR_CHECKED int claim_parse_key(const char *key, size_t len, struct policy *ret,
				struct claim_key *ret_key, struct err *e);

/* To the daemon of this user; ERR_NOT_FOUND when there is none. */
ERR_CHECKED int claim_connect(const struct ak *ak, int *ret_fd, struct err *e);

/* A sandbox for that policy; false when there is none to be had. */
bool claim_take(const struct ak *ak, const struct policy *p, const struct images *image,
		struct claim *ret);
