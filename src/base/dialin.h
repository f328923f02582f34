#pragma once
/*
 * dialin - a connection into a sandbox: requested outside, made by its init, handed out.
 *
 * Connections from outside get in no other way. A process outside that holds the sandbox's dial
 * socket sends a target and one end of a socket pair; init makes a socket inside, starts to connect
 * it and sends it back over that pair. init never waits: the descriptor arrives while the
 * connection may still be in progress, and the receiver waits for it (POLLOUT, then SO_ERROR).
 * Several processes may send requests on one dial socket, because each request has its own place
 * for the answer.
 *
 * The server inside sees a connection from a loopback address and nothing of the client.
 */
#include "base/err.h"
#include "base/frame.h"

#include <stdbool.h>
#include <stdint.h>

enum dialin_family {
	DIALIN_IPV4 = 1, /* 127.0.0.1 */
	DIALIN_IPV6,     /* ::1 */
};

struct dialin_target {
	uint16_t family; /* enum dialin_family */
	uint16_t port;
};

struct dialin_answer {
	int32_t error; /* an errno; 0: one descriptor comes with it */
};

FRAME_STRUCT(struct dialin_target, 4);
FRAME_STRUCT(struct dialin_answer, 4);

/*
 * What a process that holds a dial socket also tells the supervisor, on the connection over which
 * it got that socket (named/control.h): the sandbox is kept awake from HOLD to RELEASE or to the
 * end of the connection. HOLD wakes a sleeping one, and is answered; RELEASE is not.
 */
enum dialin_hold {
	DIALIN_HOLD = 118,
	DIALIN_RELEASE = 119,
	DIALIN_HELD = 200,
	DIALIN_FAILED = 201, /* struct err */
};

/* Never blocks. Returns -errno; the answer arrives on *ret_answer_fd, which the caller closes. */
int dialin_ask(int dial_fd, const struct dialin_target *target, int *ret_answer_fd);

/*
 * Never blocks. Returns 0 and a non-blocking socket, or -errno: -EAGAIN if there is no answer yet,
 * -EPIPE if init is gone.
 */
int dialin_take(int answer_fd, int *ret_fd);

/* In init: answers the requests that have arrived. False: the other end is closed for good. */
bool dialin_answer_all(int dial_fd);
