#pragma once
/*
 * order - messages between a supervisor and a serving init (sandbox/serve.h).
 *
 * Frames (base/frame.h) whose body is a struct; a command's texts follow it: working directory,
 * arguments, environment variables, each ended by a NUL. Both ends are the same program, so the
 * struct is sent as it is in memory. Clients send the same body to the supervisor, so the parser is
 * strict.
 */
#include "base/buf.h"
#include "base/frame.h"
#include "base/err.h"
#include "policy/policy.h"
#include "host/limitfiles.h"

#include <stdint.h>
#include <sys/types.h>

#define ORDER_WORDS_MAX 65536u /* arguments and variables, each */

enum order_kind {
	ORDER_START = 1, /* struct order_command; descriptors see below */
	ORDER_SIGNAL,    /* struct order_signal */
	ORDER_ATTACH,    /* the id of a struct order_signal; one descriptor to report to */
	ORDER_DETACH,    /* like ORDER_ATTACH, without a descriptor */
	ORDER_LIMITS,    /* struct order_limits */
	ORDER_USAGE,     /* no body; init answers with EVENT_USAGE */
	ORDER_FREEZE,    /* struct order_freeze: stop every process, on hosts without a freezer */
	ORDER_THAW,      /* no body */
	ORDER_INPUT,     /* like ORDER_ATTACH: its input is sent back, its output still logged */
	ORDER_END_INPUT, /* the id of a struct order_signal: end of file */
	ORDER_PLACES,    /* the first order to a warm sandbox: sandbox/placement.h */

	EVENT_STARTED, /* struct order_event */
	EVENT_ENDED,
	EVENT_USAGE,  /* struct order_usage */
	EVENT_FROZEN, /* struct order_frozen, once all processes have stopped */
};

enum order_flags {
	ORDER_TTY = 1 << 0,          /* allocate a terminal for the command */
	ORDER_DETACHED = 1 << 1,     /* no client waits: output goes to the log */
	ORDER_CAPABILITIES = 1 << 2, /* limited to those of the profile */
	ORDER_STDIN = 1 << 4,   /* detached, without a terminal: its input comes by ORDER_INPUT */
	ORDER_AWAITED = 1 << 3, /* detached, but a client will attach to its terminal next */
};

/*
 * Descriptors of ORDER_START: the socket for reports first, then
 *   the three streams             attached, without a terminal
 *   nothing                       attached, with a terminal (init sends the master)
 *   stdin and the two log files   detached
 */
#define ORDER_START_DESCRIPTORS_MAX 4u

struct order_command {
	uint32_t id;
	uint32_t flags;
	uint32_t uid, gid;
	uint32_t groups[POLICY_GROUPS_MAX];
	uint32_t group_count;
	uint32_t seccomp_variant; /* set by the supervisor */
	uint64_t timeout_ms;      /* 0: none */
	uint16_t rows, columns;   /* of the terminal; 0: unknown */
	uint32_t argc, envc;
};

#define ORDER_ALL 0u /* instead of an id: all processes */

struct order_signal {
	uint32_t id;
	int32_t number;
	uint32_t is_for_group; /* to the process group, as from a terminal; else to the command */
};

struct order_limits {
	uint64_t memory_bytes, cpu_ms, pids_count; /* limits that init watches; 0: none */
	struct limitfiles_figures shown;
};

struct order_event {
	uint32_t id;
	int32_t pid; /* inside the sandbox's pid namespace */
	int32_t wait_status;
	uint32_t has_timed_out;
};

struct order_usage {
	uint64_t memory_bytes, cpu_us, pids_count;
};

struct order_freeze {
	uint32_t number; /* of this freeze order, since an answer may arrive late */
};

struct order_frozen {
	uint32_t number;
	uint32_t is_still; /* 0: some process did not stop */
};

FRAME_STRUCT(struct order_command, 304);
FRAME_STRUCT(struct order_signal, 12);
FRAME_STRUCT(struct order_limits, 184);
FRAME_STRUCT(struct order_event, 16);
FRAME_STRUCT(struct order_usage, 24);
FRAME_STRUCT(struct order_freeze, 4);
FRAME_STRUCT(struct order_frozen, 8);

/* A parsed command's texts; argv and envp end in NULL and point into `texts`. */
struct order_texts {
	char *workdir;
	char **argv, **envp;
	char *texts;
};

void order_format_command(const struct order_command *c, const char *workdir, char *const *argv,
			  char *const *envp, struct buf *out);
/* Validates every count and text. Free *ret_texts with order_texts_done(). */
ERR_CHECKED int order_parse_command(const char *bytes, size_t len, struct order_command *ret,
				    struct order_texts *ret_texts, struct err *e);
void order_texts_done(struct order_texts *t); /* may run twice, and on a zeroed struct */
