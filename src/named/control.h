#pragma once
/*
 * control - how a named sandbox's supervisor is spoken to.
 *
 * A socket in the sandbox's own directory, base/frame.h's messages, one request a message; only the
 * sandbox's owner and the host's root are listened to. docs/design/named-sandboxes.md describes it.
 * A connection is also a life: closing it ends an attached command, lets go of a terminal and thaws
 * what it froze.
 */
#include "base/err.h"
#include "base/frame.h"
#include "sandbox/order.h"

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_SOCKET "control.sock"
#define CONTROL_TEXT_MAX_BYTES 200 /* of a command line, for showing */
#define CONTROL_TASKS_MAX 512u
#define CONTROL_WORDS_MAX_BYTES (16u << 10) /* of an argument list that is remembered */
#define CONTROL_CONNECT_MS 5000u /* until a supervisor takes a connection or a message */
#define CONTROL_ANSWER_MS 10000u /* until it answers: silence is an error, with words */
#define CONTROL_STILL_MS 60000u  /* the same where it waits for processes to stand still */
#define CONTROL_PROBE_MS 2000u   /* when somebody waits for us to give up */

enum control_kind {
	/* requests */
	CONTROL_EXEC = 100, /* order_format_command()'s; descriptors: report, and streams if any */
	CONTROL_SIGNAL,     /* struct order_signal; id ORDER_ALL: this connection's own command */
	CONTROL_ATTACH, /* struct order_signal's id; ORDER_ALL: the login shell, if there is one */
	CONTROL_PS,
	CONTROL_STOP, /* struct control_stop; the connection ends when all has ended */
	CONTROL_PAUSE,
	CONTROL_RESUME,
	CONTROL_FREEZE, /* as pause, until this connection ends */
	CONTROL_STATS,
	CONTROL_FILES,   /* answered with descriptors: the root, its user and mount namespaces */
	CONTROL_RELOAD,  /* the policy has changed on disk */
	CONTROL_INFO,    /* struct control_info */
	CONTROL_DISK,    /* answered with a descriptor: the directory that holds "upper" */
	CONTROL_NOTICES, /* answered with texts, each ended by a NUL: since the connection began */
	CONTROL_COMMAND, /* a command's id; answered with struct control_command and its words */

	/* answers */
	CONTROL_OK = 200,
	CONTROL_FAILED, /* struct err */
};

struct control_stop {
	uint64_t timeout_ms;
};

struct control_task {
	uint32_t id;
	int32_t pid;    /* inside; 0: ended */
	uint32_t flags; /* ORDER_TTY, ORDER_DETACHED */
	uint32_t uid;
	int32_t wait_status; /* once it has ended */
	uint32_t has_timed_out;
	uint64_t started_ms, ended_ms; /* since 1970 */
	char text[CONTROL_TEXT_MAX_BYTES];
};

/* Followed by the argument list, each word ended by a NUL. */
struct control_command {
	int32_t pid;     /* inside, also after its end; 0: not started */
	uint32_t is_cut; /* words beyond CONTROL_WORDS_MAX_BYTES are missing */
};

struct control_stats {
	uint32_t has_memory, has_cpu, has_pids, has_io;
	uint64_t memory_bytes, peak_memory_bytes, memory_limit_bytes;
	uint64_t oom_kill_count;
	uint64_t cpu_us, pids_count, pids_limit;
	uint64_t pids_refused_count; /* since this connection began */
	uint64_t read_bytes, written_bytes;
	uint64_t sent_bytes, received_bytes;
	uint64_t time_us; /* when it was measured, on a clock that does not jump */
};

struct control_info {
	uint32_t host_gid, switches_ids;
	uint32_t is_paused, task_count;
};

FRAME_STRUCT(struct control_stop, 8);
FRAME_STRUCT(struct control_task, 240);
FRAME_STRUCT(struct control_command, 8);
FRAME_STRUCT(struct control_stats, 120);
FRAME_STRUCT(struct control_info, 16);
FRAME_STRUCT(struct err, 520); /* CONTROL_FAILED */

/* To the supervisor of the sandbox whose directory this is; ERR_NOT_FOUND when none runs. */
ERR_CHECKED int control_connect(int dir_fd, const char *name, int *ret_fd, struct err *e);

/* Ends a supervisor that does not answer, and its sandbox with it. */
ERR_CHECKED int control_kill(int dir_fd, const char *name, struct err *e);
/* Asks the supervisor at the other end to stop in the way that every build understands: SIGTERM. */
ERR_CHECKED int control_terminate(int socket_fd, struct err *e);

/* The supervisor's side: a listening socket in the directory. */
ERR_CHECKED int control_listen(int dir_fd, int *ret_fd, struct err *e);
/* A client, checked; -1 when there is none or it is not to be listened to. */
int control_accept(int listen_fd);

/*
 * Sends and waits for the answer. A CONTROL_FAILED becomes this call's failure, and so does
 * silence: ERR_TIMEOUT, with the supervisor's process and what to do about it. A supervisor of a
 * build that speaks another version is ERR_UNSUPPORTED, in words.
 */
ERR_CHECKED int control_ask(int socket_fd, uint32_t kind, const void *body, size_t len,
			    struct frame *ret, struct err *e);
/* The same, where only success matters. */
ERR_CHECKED int control_do(int socket_fd, uint32_t kind, const void *body, size_t len,
			   struct err *e);

/* Waits for an answer to what was sent before, so long at most. */
ERR_CHECKED int control_wait(int socket_fd, unsigned timeout_ms, struct frame *ret, struct err *e);

/* What a failure of frame_receive() from a supervisor means. */
int control_explain(int socket_fd, int r, struct err *e);

/* Does the supervisor answer at all? By a connection of its own; CONTROL_PROBE_MS at most. */
ERR_CHECKED int control_probe(int dir_fd, const char *name, struct err *e);

void control_fail(int socket_fd, const struct err *e); /* the supervisor's "no" */
void control_answer(int socket_fd, const void *body, size_t len);
