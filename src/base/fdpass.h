#pragma once
/*
 * fdpass - passes descriptors over a unix socket.
 *
 * Functions return -errno without a message, like the rest of base.
 */
#define FDPASS_MAX 8

int fdpass_send(int socket_fd, const int *fds, unsigned count);

/*
 * Closes *fd and sets it to -1 without waiting for the kernel to finish: for inotify, whose last
 * close takes several milliseconds. Effective from Linux 6.8 on; before, it takes as long as
 * close().
 */
void fdpass_close_later(int *fd);

/*
 * Receives the descriptors of one fdpass_send(): *ret_count of them, close-on-exec, owned by the
 * caller. -EPIPE: the peer closed the socket without sending any.
 */
int fdpass_receive(int socket_fd, int ret_fds[FDPASS_MAX], unsigned *ret_count);
