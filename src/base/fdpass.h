#pragma once
/*
 * fdpass - descriptors through a unix socket.
 *
 * Returns -errno without words, like the rest of base.
 */
#define FDPASS_MAX 8

int fdpass_send(int socket_fd, const int *fds, unsigned count);

/*
 * Closes *fd, which is -1 afterwards, without waiting for the kernel to be done with it: for
 * inotify, whose last close takes several milliseconds. From Linux 6.8 on; before, it takes as long
 * as close().
 */
void fdpass_close_later(int *fd);

/*
 * One fdpass_send()'s worth: *ret_count descriptors, close-on-exec, the caller's to close.
 * -EPIPE: the other side has gone without sending any.
 */
int fdpass_receive(int socket_fd, int ret_fds[FDPASS_MAX], unsigned *ret_count);
