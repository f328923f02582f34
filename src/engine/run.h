#pragma once
/*
 * run - one command in a fresh sandbox that leaves nothing behind.
 *
 * The calling process is the supervisor: it prepares, starts the child, stays with it and
 * cleans up. No daemon is asked and nothing is written to disk.
 */
#include "base/buf.h"
#include "base/err.h"
#include "engine/gatekeeper.h"
#include "engine/images.h"
#include "engine/streams.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

struct run_options {
	const struct policy *policy;
	const struct ak *ak;
	struct images *image; /* policy->image, opened; NULL: the host's */
	char *const *argv;
	enum streams_tty tty;
	bool is_captured; /* stdout and stderr into the result instead of the caller's */
	int lifeline_fd;  /* when its other end is closed, all is over at once; 0: none */
};

enum run_end {
	RUN_EXITED,        /* .exit_code is the command's own */
	RUN_SIGNALLED,     /* by .signal_number */
	RUN_TIMED_OUT,     /* the deadline passed */
	RUN_OUT_OF_CPU,    /* --cpu-time is used up */
	RUN_OUT_OF_MEMORY, /* killed at the memory limit */
	RUN_OUT_OF_PIDS,   /* ended for having more processes than it may */
	RUN_SANDBOX_ENDED  /* with the whole sandbox, and nobody could tell how */
};

struct run_result {
	enum run_end end;
	int exit_code;     /* what `run` exits with: the command's own, 124, 128+n */
	int signal_number; /* 0 when it exited */
	bool was_warm;     /* it ran in a sandbox that waited ready */
	bool has_oom; /* something inside was killed at the memory limit, perhaps not the command */
	uint64_t reached_pids;       /* the limit on processes, if it was; or 0 */
	uint64_t reached_disk_bytes; /* the limit on the disk, if it was and the command failed; or
					0 */
	uint64_t duration_ms;
	uint64_t cpu_ms;
	uint64_t peak_memory_bytes;
	struct buf output[2];              /* captured stdout and stderr */
	struct gatekeeper_denial *denials; /* where it wanted to go and may not */
	unsigned denial_count;
	unsigned gate_deaths;     /* times that the network broke down */
	bool has_outdated_daemon; /* one of another build, which was not used */
	char *gate_trouble;       /* why, if known; or NULL */
	char **notices; /* about the workspace (workspace/newnames), ended by NULL; or NULL */
};

/* From how it ended to what is told: `end`, exit code, signal. has_oom is set before. */
struct supervise_outcome;
void run_judge(const struct supervise_outcome *outcome, struct run_result *r);

/* Into a zeroed result. After a failure it may still have notices. */
ERR_CHECKED int run_command(const struct run_options *o, struct run_result *ret, struct err *e);
void run_result_done(struct run_result *r);

/* How the limits of `p` would be enforced for this caller: "cgroup v1", "rlimits and watching". */
const char *run_limits_by(const struct policy *p);
