#pragma once
/*
 * control - messages between clients and a named sandbox's supervisor.
 *
 * A socket in the sandbox's own directory, with base/frame.h's messages, one request per message;
 * only the sandbox's owner and the host's root may connect. docs/design/named-sandboxes.md
 * describes the protocol. Some requests last as long as their connection: closing it ends an
 * attached command, detaches from a terminal and ends a freeze.
 */
#include "base/dialin.h"
#include "base/err.h"
#include "base/frame.h"
#include "protocol/order.h"

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_SOCKET "control.sock"
#define CONTROL_TEXT_MAX_BYTES 200 /* of a command line that is shown */
#define CONTROL_TASKS_MAX 512u
#define CONTROL_PORT_MAX_BYTES 80
#define CONTROL_WORDS_MAX_BYTES (16u << 10) /* of a stored argument list */
#define CONTROL_CONNECT_MS 5000u /* until a supervisor accepts a connection or a message */
#define CONTROL_ANSWER_MS 10000u /* until it answers; then ERR_TIMEOUT */
#define CONTROL_STILL_MS 60000u  /* the same for requests that wait until all processes stop */
#define CONTROL_PROBE_MS 2000u   /* for control_probe() */

enum control_kind {
	/* requests */
	CONTROL_EXEC = 100, /* order_format_command()'s; descriptors: report, and streams if any */
	CONTROL_SIGNAL,     /* struct order_signal; id ORDER_ALL: this connection's command */
	CONTROL_ATTACH, /* struct order_signal's id; ORDER_ALL: the login shell, if there is one */
	CONTROL_PS,
	CONTROL_STOP, /* struct control_stop; the connection closes when all processes have ended */
	CONTROL_PAUSE,
	CONTROL_RESUME,
	CONTROL_FREEZE, /* like pause, until this connection closes */
	CONTROL_STATS,
	CONTROL_FILES,   /* answered with descriptors: root, user and mount namespaces */
	CONTROL_RELOAD,  /* the policy has changed on disk */
	CONTROL_INFO,    /* struct control_info */
	CONTROL_DISK,    /* answered with the descriptor of the directory that contains "upper" */
	CONTROL_NOTICES, /* answered with NUL-terminated notices since the connection began */
	CONTROL_COMMAND, /* a command's id; answered with struct control_command and arguments */
	CONTROL_PORTS,   /* answered with a struct control_port for each published port */
	CONTROL_FORWARD, /* a text for publish_parse(): published until this connection closes;
			  * answered with its struct control_port */
	CONTROL_REACH,   /* struct control_reach; wakes it; answered with struct control_reached and
			  * a dial socket (base/dialin.h) */
	CONTROL_HOLD = DIALIN_HOLD,
	CONTROL_RELEASE = DIALIN_RELEASE,
	CONTROL_WAKE,      /* wakes it, as anything does that uses it */
	CONTROL_INPUT,     /* struct order_signal's id; a socket, on which init sends its input */
	CONTROL_END_INPUT, /* struct order_signal's id */
	CONTROL_SERVICES,  /* answered with a struct control_service for each */
	CONTROL_SERVICE_RESTART, /* the name of a service */

	/* answers */
	CONTROL_OK = DIALIN_HELD,
	CONTROL_FAILED = DIALIN_FAILED, /* struct err */
};

#define CONTROL_SERVICE_NAME_BYTES 40

enum control_service_state {
	CONTROL_SERVICE_WAITING,  /* for what it needs, or to be started again */
	CONTROL_SERVICE_STARTING, /* it runs, and its port does not answer yet */
	CONTROL_SERVICE_READY,
	CONTROL_SERVICE_OVER, /* its command has ended, and runs once only */
};

struct control_service {
	char name[CONTROL_SERVICE_NAME_BYTES];
	uint32_t state;   /* enum control_service_state */
	uint32_t task_id; /* of its last start, for its log; 0: none */
	uint32_t port;    /* 0: none */
	uint32_t restarts;
};

struct control_reach {
	uint32_t port; /* 0: the main port */
};

enum control_readiness {
	CONTROL_PORT_UNKNOWN, /* no service can be about to open it */
	CONTROL_PORT_STARTING,
	CONTROL_PORT_READY,
};

struct control_reached {
	uint32_t port;      /* 0: it has no main port */
	uint32_t readiness; /* enum control_readiness */
};

struct control_stop {
	uint64_t timeout_ms;
};

struct control_task {
	uint32_t id;
	int32_t pid;    /* inside the sandbox; 0: ended */
	uint32_t flags; /* ORDER_TTY, ORDER_DETACHED */
	uint32_t uid;
	int32_t wait_status; /* valid after its end */
	uint32_t has_timed_out;
	uint64_t started_ms, ended_ms; /* since 1970 */
	char text[CONTROL_TEXT_MAX_BYTES];
};

/* Followed by the NUL-terminated arguments. */
struct control_command {
	int32_t pid;     /* inside the sandbox, also after its end; 0: not started */
	uint32_t is_cut; /* arguments beyond CONTROL_WORDS_MAX_BYTES are missing */
};

struct control_stats {
	uint32_t has_memory, has_cpu, has_pids, has_io;
	uint64_t memory_bytes, peak_memory_bytes, memory_limit_bytes;
	uint64_t oom_kill_count;
	uint64_t cpu_us, pids_count, pids_limit;
	uint64_t pids_refused_count; /* since this connection began */
	uint64_t read_bytes, written_bytes;
	uint64_t sent_bytes, received_bytes;
	uint64_t time_us; /* time of the measurement, monotonic clock */
};

struct control_port {
	char at[CONTROL_PORT_MAX_BYTES];   /* "127.0.0.1:8080" */
	char spec[CONTROL_PORT_MAX_BYTES]; /* as in the policy */
	uint32_t inner;
	uint32_t is_kept; /* 0: of a `forward` */
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
FRAME_STRUCT(struct control_port, 168);
FRAME_STRUCT(struct control_service, 56);
FRAME_STRUCT(struct control_reach, 4);
FRAME_STRUCT(struct control_reached, 8);
FRAME_STRUCT(struct err, 520); /* CONTROL_FAILED */

/* Connects to the supervisor of the sandbox in dir_fd; ERR_NOT_FOUND if it is not running. */
ERR_CHECKED int control_connect(int dir_fd, const char *name, int *ret_fd, struct err *e);

/* Kills a supervisor that does not answer, and its sandbox with it. */
ERR_CHECKED int control_kill(int dir_fd, const char *name, struct err *e);
/* Asks the supervisor to stop with SIGTERM, which supervisors of every build understand. */
ERR_CHECKED int control_terminate(int socket_fd, struct err *e);

/* The supervisor's side: opens the listening socket in the directory. */
ERR_CHECKED int control_listen(int dir_fd, int *ret_fd, struct err *e);
/* Accepts a client and checks its identity; -1 if there is none or it is not allowed. */
int control_accept(int listen_fd);

/*
 * Sends a request and waits for the answer. CONTROL_FAILED becomes this call's failure. No answer
 * is ERR_TIMEOUT, with the supervisor's pid and what to do. A supervisor of a build with another
 * protocol version is ERR_UNSUPPORTED.
 */
ERR_CHECKED int control_ask(int socket_fd, uint32_t kind, const void *body, size_t len,
			    struct frame *ret, struct err *e);
/* The same without the answer's body. */
ERR_CHECKED int control_do(int socket_fd, uint32_t kind, const void *body, size_t len,
			   struct err *e);

/* Waits for the answer to an earlier request, at most timeout_ms. */
ERR_CHECKED int control_wait(int socket_fd, unsigned timeout_ms, struct frame *ret, struct err *e);

/* Turns a failure `r` of frame_receive() from a supervisor into an error. */
int control_explain(int socket_fd, int r, struct err *e);

/* Checks over a new connection whether the supervisor answers within CONTROL_PROBE_MS. */
ERR_CHECKED int control_probe(int dir_fd, const char *name, struct err *e);

void control_fail(int socket_fd, const struct err *e); /* sends CONTROL_FAILED */
void control_answer(int socket_fd, const void *body, size_t len);
