#pragma once
/*
 * run - runs one command in a new sandbox that leaves nothing behind.
 *
 * The calling process is the supervisor: it prepares, starts the child, waits for it and cleans up.
 * No daemon is involved and nothing is written to disk.
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
	struct images *image; /* policy->image, opened; NULL: the host's files */
	struct rootspec_image *root; /* instead of the image's: with a directory on top that stays */
	char *const *argv;
	enum streams_tty tty;
	bool is_captured; /* stdout and stderr go into the result */
	int lifeline_fd;  /* end everything when its other end closes; 0: none */
	/* its published ports are open; NULL: nobody wants to know */
	void (*on_published)(void *context, const struct published *ports);
	void *context;
};

enum run_end {
	RUN_EXITED,        /* .exit_code is the command's */
	RUN_SIGNALLED,     /* by .signal_number */
	RUN_TIMED_OUT,     /* the deadline passed */
	RUN_OUT_OF_CPU,    /* --cpu-time is used up */
	RUN_OUT_OF_MEMORY, /* killed at the memory limit */
	RUN_OUT_OF_PIDS,   /* ended because it had too many processes */
	RUN_SANDBOX_ENDED  /* with the whole sandbox, for unknown reasons */
};

struct run_result {
	enum run_end end;
	int exit_code;     /* exit status of `run`: the command's, 124, 128+n */
	int signal_number; /* 0 if it exited */
	bool was_warm;     /* it ran in a sandbox from the pool */
	bool has_oom;      /* a process was killed at the memory limit, perhaps not the command */
	uint64_t reached_pids;       /* the limit, if it was reached; or 0 */
	uint64_t reached_disk_bytes; /* the limit, if it was reached and the command failed; or 0 */
	uint64_t duration_ms;
	uint64_t cpu_ms;
	uint64_t peak_memory_bytes;
	struct buf output[2];              /* captured stdout and stderr */
	struct gatekeeper_denial *denials; /* connections that the network policy denied */
	unsigned denial_count;
	unsigned gate_deaths;     /* unexpected ends of the gate */
	bool has_outdated_daemon; /* a daemon of another build, which was not used */
	char *gate_trouble;       /* why the gate failed, if known; or NULL */
	char **notices; /* about the workspace (workspace/newnames), NULL-terminated; or NULL */
};

/* Sets `end`, exit code and signal from the outcome. The caller sets has_oom before. */
struct supervise_outcome;
void run_judge(const struct supervise_outcome *outcome, struct run_result *r);

/* Fills a zeroed result. It may have notices even after a failure. */
ERR_CHECKED int run_command(const struct run_options *o, struct run_result *ret, struct err *e);
void run_result_done(struct run_result *r);

/* How the limits of `p` would be enforced for this caller: "cgroup v1", "rlimits and watching". */
const char *run_limits_by(const struct policy *p);
