#pragma once
/*
 * call - one operation that a worker process (worker/worker) carries out, from start to result.
 *
 * Never blocks: the owner polls the descriptors of call_poll() and passes the events to
 * call_on_ready(). A call is over when its worker has closed the result or has ended; background
 * processes of a sandbox may keep the output open longer, but nobody waits for them.
 *
 * A server ignores SIGCHLD, so that the kernel reaps its workers; a program that may not do so (the
 * library's) sets .reaps.
 */
#include "base/buf.h"
#include "base/err.h"
#include "rpc/arguments.h"
#include "rpc/output.h"

#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CALL_POLL_MAX 6u
#define CALL_NOTES_MAX_BYTES (64u << 10)
#define CALL_KILL_AFTER_MS 3000u /* from cancelling to killing a worker process */
/* For operations that only read or end something. Their workers normally give up earlier. */
#define CALL_DEADLINE_MS 120000u

/* Common to all calls of a server. */
struct call_options {
	const char *launcher;      /* the program agentkernel */
	char *const *environ_list; /* for the workers */
	const struct buf *rows;    /* of every request: "ceiling", "config" */
	bool reaps;                /* waits for the end of its workers */
};

enum call_stream { CALL_INPUT, CALL_STDOUT, CALL_STDERR, CALL_RESULT, CALL_NOTES };

struct call {
	const struct operation *operation;
	struct arguments arguments;
	int pid_fd, lifeline_fd;
	int fds[5];      /* by enum call_stream */
	int handover_fd; /* descriptors of the result, for its owner to receive at the end; -1 */
	size_t input_done;
	struct output output[2]; /* stdout, stderr */
	struct buf result, notes;
	uint64_t shown_max_bytes; /* of both streams together; 0: OUTPUT_SHOWN_MAX_BYTES of each */
	uint64_t started_ms;
	uint64_t deadline_ms; /* 0: none */
	uint64_t kill_at_ms;  /* 0: not cancelled */
	bool is_cancelled, is_over;
	bool is_late;        /* cancelled by its deadline */
	bool reaps;          /* from call_options */
	bool has_more_input; /* its owner adds some: call_add_input(), until call_end_input() */

	/* Called with each piece of output; may be NULL. */
	void (*on_output)(void *context, enum call_stream stream, const char *bytes, size_t len);
	void *context;
};

void call_init(struct call *c);
void call_done(struct call *c); /* kills the worker process; may run twice */

/* Takes ownership of the arguments. */
ERR_CHECKED int call_start(struct call *c, const struct call_options *o,
			   const struct operation *operation, struct arguments *arguments,
			   struct err *e);

unsigned call_poll(const struct call *c, struct pollfd polled[CALL_POLL_MAX]);
/* `polled` as call_poll() left it, after poll(). */
void call_on_ready(struct call *c, const struct pollfd *polled, unsigned count);
/*
 * Cancels a call after its deadline, and kills a cancelled worker that does not end. Returns
 * milliseconds until the next call of this function; -1: not needed.
 */
int call_on_time(struct call *c, uint64_t now_ms);

/* Adds input; call_unsent_input() tells the owner when to pause. */
void call_add_input(struct call *c, const char *bytes, size_t len);
void call_end_input(struct call *c);
size_t call_unsent_input(const struct call *c);

/* Ends the sandbox, and with it the worker process. */
void call_cancel(struct call *c);

/* True if the result shows less than the command printed. */
bool call_is_cut(const struct call *c);
/*
 * After its end: the worker process's object, with stdout and stderr if it ran a command. A failure
 * is an object with "error". Suggestions to the caller name operations (rpc/hints). A new
 * reference.
 */
json_t *call_take_result(struct call *c);
