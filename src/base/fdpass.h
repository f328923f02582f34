#pragma once
/*
 * fdpass - descriptors through a unix socket.
 *
 * Returns -errno without words, like the rest of base.
 */
#define FDPASS_MAX 8

int fdpass_send(int socket_fd, const int *fds, unsigned count);

/*
 * One fdpass_send()'s worth: *ret_count descriptors, close-on-exec, the caller's to close.
 * -EPIPE: the other side has gone without sending any.
 */
int fdpass_receive(int socket_fd, int ret_fds[FDPASS_MAX], unsigned *ret_count);
