#pragma once
/*
 * order - what a supervisor tells a serving init (sandbox/serve.h), and what that answers.
 *
 * Frames (base/frame.h) whose body is a struct; a command's texts follow it: the working directory,
 * the arguments, the variables, each ended by a NUL. Both ends are one program, so the struct
 * travels as it is. The same body comes to the supervisor from whoever asks for a command, so
 * reading it is strict.
 */
#include "base/buf.h"
#include "base/frame.h"
#include "base/err.h"
#include "policy/policy.h"
#include "sandbox/limitfiles.h"

#include <stdint.h>
#include <sys/types.h>

#define ORDER_WORDS_MAX 65536u /* arguments and variables, each */

enum order_kind {
	ORDER_START = 1, /* struct order_command; descriptors below */
	ORDER_SIGNAL,    /* struct order_signal */
	ORDER_ATTACH,    /* struct order_signal's id; one descriptor: where to report */
	ORDER_DETACH,    /* as above, none */
	ORDER_LIMITS,    /* struct order_limits */
	ORDER_USAGE,     /* nothing; answered by an EVENT_USAGE */
	ORDER_FREEZE,    /* struct order_freeze: every process stops, where there is no freezer */
	ORDER_THAW,      /* nothing */
	ORDER_PLACES,    /* the first, to one that waits for it: sandbox/placement.h */

	EVENT_STARTED, /* struct order_event */
	EVENT_ENDED,
	EVENT_USAGE,  /* struct order_usage */
	EVENT_FROZEN, /* struct order_frozen, once nothing moves any more */
};

enum order_flags {
	ORDER_TTY = 1 << 0,          /* a terminal of its own */
	ORDER_DETACHED = 1 << 1,     /* nobody waits: output goes to the log */
	ORDER_CAPABILITIES = 1 << 2, /* as far as the profile has any */
	ORDER_AWAITED = 1 << 3,      /* detached, but its terminal is attached to next */
};

/*
 * Descriptors of ORDER_START: the report's socket first, then
 *   the three streams             attached, without a terminal
 *   nothing                       attached, with a terminal: the master comes by the report's
 * socket stdin and the two log files   detached
 */
#define ORDER_START_DESCRIPTORS_MAX 4u

struct order_command {
	uint32_t id;
	uint32_t flags;
	uint32_t uid, gid;
	uint32_t groups[POLICY_GROUPS_MAX];
	uint32_t group_count;
	uint32_t seccomp_variant; /* by the supervisor */
	uint64_t timeout_ms;      /* 0: none */
	uint16_t rows, columns;   /* of the terminal; 0: unknown */
	uint32_t argc, envc;
};

#define ORDER_ALL 0u /* instead of an id: every process */

struct order_signal {
	uint32_t id;
	int32_t number;
	uint32_t is_for_group; /* as a terminal's would; else the command alone */
};

struct order_limits {
	uint64_t memory_bytes, cpu_ms, pids_count; /* to watch; 0: none */
	struct limitfiles_figures shown;
};

struct order_event {
	uint32_t id;
	int32_t pid; /* inside */
	int32_t wait_status;
	uint32_t has_timed_out;
};

struct order_usage {
	uint64_t memory_bytes, cpu_us, pids_count;
};

struct order_freeze {
	uint32_t number; /* of this freeze: an answer may come late */
};

struct order_frozen {
	uint32_t number;
	uint32_t is_still; /* 0: a process does not stop */
};

FRAME_STRUCT(struct order_command, 304);
FRAME_STRUCT(struct order_signal, 12);
FRAME_STRUCT(struct order_limits, 184);
FRAME_STRUCT(struct order_event, 16);
FRAME_STRUCT(struct order_usage, 24);
FRAME_STRUCT(struct order_freeze, 4);
FRAME_STRUCT(struct order_frozen, 8);

/* A command with its texts, read back; argv and envp end in NULL and borrow from `texts`. */
struct order_texts {
	char *workdir;
	char **argv, **envp;
	char *texts;
};

void order_format_command(const struct order_command *c, const char *workdir, char *const *argv,
			  char *const *envp, struct buf *out);
/* Checks every count and text. Free with order_texts_done(). */
ERR_CHECKED int order_parse_command(const char *bytes, size_t len, struct order_command *ret,
				    struct order_texts *ret_texts, struct err *e);
void order_texts_done(struct order_texts *t); /* may run twice, and on a zeroed struct */
