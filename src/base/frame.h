#pragma once
/*
 * frame - messages between our own processes on this machine: a kind, some bytes, descriptors.
 *
 * Over SOCK_SEQPACKET, where a message arrives whole or not at all. Each starts with a magic
 * number, a version and its own length; what does not fit is refused as garbage. A body larger
 * than a socket takes travels in a sealed memory file, as one more descriptor.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the messages and of every struct in them: to be raised when one changes (see FRAME_STRUCT). */
#define FRAME_VERSION 2u
#define FRAME_BODY_MAX_BYTES (8u << 20)
#define FRAME_DESCRIPTORS_MAX 8u

/*
 * Beside each struct that is sent as it is: its size is written down, so that whoever changes it is
 * reminded of FRAME_VERSION. Members have fixed widths.
 */
#define FRAME_STRUCT(type, bytes)                                                                  \
	_Static_assert(sizeof(type) == (bytes), "a message has changed: raise FRAME_VERSION")

struct frame {
	uint32_t kind;
	char *bytes; /* followed by a NUL that does not count */
	size_t len;
	int fds[FRAME_DESCRIPTORS_MAX]; /* -1: taken */
	unsigned fd_count;
};

/* -errno. A peer that is gone is -EPIPE, a socket whose queue is full -EAGAIN. */
int frame_send(int socket_fd, uint32_t kind, const void *body, size_t len, const int *fds,
	       unsigned fd_count);

enum frame_flags { FRAME_WAIT = 0, FRAME_NO_WAIT = 1 };

/*
 * 1 with a frame, 0 when the other side has gone. -EAGAIN: none there. -EPROTO: garbage;
 * -EPROTONOSUPPORT: another version.
 */
int frame_receive(int socket_fd, enum frame_flags flags, struct frame *ret);
/* Nothing has come or gone, and may the next time: -EAGAIN, or the kernel has no memory for it. */
bool frame_may_pass(int r);
void frame_done(struct frame *f); /* closes what was not taken; may run twice */
