#pragma once
/*
 * frame - messages between our own processes on this machine: a kind, bytes, descriptors.
 *
 * Over SOCK_SEQPACKET, where a message arrives complete or not at all. Each starts with a magic
 * number, a version and its own length; a mismatch is refused as garbage. A body too large for a
 * socket is sent in a sealed memory file, as one more descriptor.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the messages and all structs in them: raise it when one changes (see FRAME_STRUCT). */
#define FRAME_VERSION 2u
#define FRAME_BODY_MAX_BYTES (8u << 20)
#define FRAME_DESCRIPTORS_MAX 8u

/*
 * Declared next to each struct that is sent as it is in memory: asserts its size, so that a change
 * is a reminder to raise FRAME_VERSION. Members have fixed widths.
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

/* Returns -errno: -EPIPE if the peer is gone, -EAGAIN if the socket's queue is full. */
int frame_send(int socket_fd, uint32_t kind, const void *body, size_t len, const int *fds,
	       unsigned fd_count);

/* Never blocks, whatever the peer did to the socket. A small body, and one descriptor or -1. */
int frame_send_now(int socket_fd, uint32_t kind, const void *body, size_t len, int fd);

enum frame_flags { FRAME_WAIT = 0, FRAME_NO_WAIT = 1 };

/*
 * Returns 1 with a frame, 0 if the peer is gone. -EAGAIN: none available. -EPROTO: garbage;
 * -EPROTONOSUPPORT: another version.
 */
int frame_receive(int socket_fd, enum frame_flags flags, struct frame *ret);
/* True for a temporary failure that changed nothing: -EAGAIN, or the kernel has no memory. */
bool frame_may_pass(int r);
void frame_done(struct frame *f); /* closes descriptors that were not taken; may run twice */
