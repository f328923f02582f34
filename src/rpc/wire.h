#pragma once
/*
 * wire - the protocol between a server and a worker process: `agentkernel worker` with these
 * descriptors.
 *
 *   0, 1, 2  the command's streams, or 0 the content of a file
 *   3        the request: rows (base/keyrows), see below
 *   4        the result: one JSON object
 *   5        a pipe that closes when the call is cancelled or the server dies: the lifeline
 *   6        contents of files to write first, one after the other
 *   7        agentkernel's own messages for people
 *   8        descriptors of the result (base/fdpass), of an operation that hands some out
 *
 * docs/design/worker.md describes requests and results.
 */

#include <stdint.h>

/*
 * A session (operation sandbox_session) speaks frames on 0 and 1, each a header and .len bytes.
 */
enum wire_stream {
	WIRE_STDIN,  /* to the command */
	WIRE_STDOUT, /* of it; all of a terminal */
	WIRE_STDERR,
	WIRE_EXIT,      /* uint32_t: its exit status; the last frame */
	WIRE_END_STDIN, /* no bytes */
	WIRE_RESIZE,    /* two uint16_t: rows, columns */
	WIRE_SIGNAL,    /* its number, uint32_t */
	WIRE_BEGUN,     /* the command's id, as text: the first frame */
	WIRE_GAP,       /* uint64_t: so many bytes of output are missing here */
};
struct wire_frame {
	uint32_t stream, len;
};
#define WIRE_FRAME_MAX_BYTES (1u << 20)

enum wire_fd {
	WIRE_REQUEST_FD = 3,
	WIRE_RESULT_FD,
	WIRE_LIFELINE_FD,
	WIRE_FILES_FD,
	WIRE_NOTES_FD,
	WIRE_HANDOVER_FD,

	WIRE_FD_COUNT
};

#define WIRE_COMMAND "worker" /* the only argument */

/* Keys of the request's rows. */
#define WIRE_OPERATION "operation"
#define WIRE_FACE "face" /* "library": a program that links libagentkernel; absent: a server */
#define WIRE_CEILING "ceiling"     /* FIELD=TEXT: an option of the server */
#define WIRE_MAXIMUM "maximum"     /* FIELD=TEXT: the maximum for its callers */
#define WIRE_CONFIG "config"       /* a file that replaces the discovered agentkernel.toml */
#define WIRE_NO_CONFIG "no-config" /* "yes" */
#define WIRE_OWNER "owner"         /* owner of sandboxes (named/named); absent: the administrator */
#define WIRE_PARAM "param."        /* a parameter of the operation; repeated for lists */

#define WIRE_REQUEST_MAX_BYTES (32u << 20)
#define WIRE_PARAMS_MAX 16384u
#define WIRE_RESULT_MAX_BYTES (64u << 20)
#define WIRE_GRACE_S 3u /* from the end of the lifeline to the end of the worker */
