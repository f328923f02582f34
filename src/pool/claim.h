#pragma once
/*
 * claim - requests a sandbox that the daemon built in advance.
 *
 * The daemon (pool/daemon) keeps sandboxes ready, each with a process of its own (pool/warm). A
 * client sends the exact key of the sandbox that it needs: the program's build, the client's
 * surroundings (pool/surroundings), the resolved policy without the command's own settings, and the
 * layers of its image. If there is a match, the daemon returns two sockets: one to that sandbox's
 * process, for signals and for how it ended, and one to its init, for the command itself, so that
 * no other process has to wake up. If there is none, or no daemon, the caller silently builds its
 * own.
 *
 * Directories of the host are not part of the key: a sandbox that will show some waits without
 * them, and its client sends them (sandbox/placement), checked as at any start. Two kinds cannot be
 * pooled: sandboxes with a home directory, because the root is built around it, and private clones
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
#define CLAIM_COMMAND_ID 1u  /* it runs only one */
#define CLAIM_ANSWER_MS 100u /* then the client builds its own sandbox */
#define CLAIM_KEY_MAX_BYTES (256u << 10)
#define CLAIM_DENIALS_MAX_BYTES (64u << 10)

enum claim_kind {
	CLAIM_TAKE = 300, /* cgroups (pool/surroundings), a NUL, a key; answered with struct
			     claim_answer, two sockets and perhaps a user namespace */
	CLAIM_PREWARM,    /* struct claim_count, then a key */
	CLAIM_STATUS,     /* CLAIM_STATUS_TABLE, or nothing for JSON; answered with a text */
	CLAIM_STOP,

	CLAIM_READY, /* from a sandbox's process: struct claim_answer, init's socket, perhaps a
			namespace */
	CLAIM_END, /* from the client after its command: answered with struct claim_end, denials */
};

struct claim_count {
	uint32_t count;
};

/* What a client must know about its sandbox. */
struct claim_answer {
	uint32_t idmap_kind, host_uid, host_gid; /* host/idmap.h */
	uint32_t filter;                         /* for a command without a file as stream */
	uint32_t filter_for_file_streams;        /* for a command with such a stream */
};

/* A claimed sandbox. */
struct claim {
	bool is_other_build;     /* claim failed: the daemon is of another build */
	bool awaits_places;      /* the client must send the directories */
	int process_fd, init_fd; /* -1: not open */
	int owner_ns_fd;         /* maps this user's files (host/idmap.h); -1: none */
	struct claim_answer answer;
};
void claim_done(struct claim *c); /* may run twice */

/* The results that `run` would have; each denial follows as "HOST\0PORT\0REASON\0FIX\0". */
struct claim_end {
	uint64_t cpu_us, peak_memory_bytes, oom_kill_count, pids_refused_count;
	uint32_t has_memory, limit, gate_deaths, denial_count;
	uint32_t is_stuck; /* the kernel does not end a process inside */
};

/* Why such a sandbox cannot be pooled; NULL: it can. */
const char *claim_find_obstacle(const struct policy *p);
/* False: it cannot be pooled, or this process cannot be compared (pool/surroundings). */
bool claim_format_key(const struct policy *p, const struct images *image, struct buf *out);
/* The parts of a key, borrowed. */
struct claim_key {
	const char *build;        /* base/buildid: sandboxes of other builds differ */
	const char *surroundings; /* pool/surroundings */
	const char *places;       /* "yes": its client sends directories of the host */
	const char *layers, *policy;
	size_t policy_len;
};
ERR_CHECKED int claim_split_key(const char *key, size_t len, struct claim_key *ret, struct err *e);
/* The same with the policy parsed; *ret_key borrows from the key. */
ERR_CHECKED int claim_parse_key(const char *key, size_t len, struct policy *ret,
				struct claim_key *ret_key, struct err *e);

/* Connects to this user's daemon; ERR_NOT_FOUND if there is none. */
ERR_CHECKED int claim_connect(const struct ak *ak, int *ret_fd, struct err *e);

/* Claims a sandbox for the policy; false if none is available. */
bool claim_take(const struct ak *ak, const struct policy *p, const struct images *image,
		struct claim *ret);
