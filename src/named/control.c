/*
 * control - messages between clients and a named sandbox's supervisor; see control.h.
 *
 * A socket path is limited to 108 bytes, but a state directory's path may be longer: the socket is
 * addressed through the descriptor of its directory.
 */
#include "named/control.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 64

static void name_socket(int dir_fd, struct sockaddr_un *ret)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET,
		       dir_fd);
}

int control_connect(int dir_fd, const char *name, int *ret_fd, struct err *e)
{
	const struct timeval patience = { .tv_sec = CONTROL_CONNECT_MS / 1000 };
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un address;

	if (fd < 0)
		return err_sys(e, errno, "create a socket");
	/* also limits connect(), which blocks when the backlog of a hanging supervisor is full */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	name_socket(dir_fd, &address);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == EAGAIN)
			return err_set(e, ERR_TIMEOUT,
				       "the supervisor of sandbox '%s' takes no connections: it is "
				       "stopped or hangs ('agentkernel stop -f %s' ends it)",
				       name, name);
		if (errno == ENOENT || errno == ECONNREFUSED)
			return err_set(e, ERR_NOT_FOUND,
				       "sandbox '%s' is not running (agentkernel start %s)", name,
				       name);
		return err_sys(e, errno, "speak to the supervisor of sandbox '%s'", name);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

static pid_t peer_of(int socket_fd)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);

	(void)getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	return peer.pid;
}

/* Signals the peer of the connection, not a pid from a file, which may have been reused. */
static int signal_peer(int socket_fd, int number, struct err *e)
{
	cleanup_fd int pid_fd = (int)syscall(SYS_pidfd_open, peer_of(socket_fd), 0);

	if (pid_fd < 0 || syscall(SYS_pidfd_send_signal, pid_fd, number, NULL, 0) < 0)
		return err_sys(e, errno, "end the supervisor");
	return 0;
}

int control_kill(int dir_fd, const char *name, struct err *e)
{
	cleanup_fd int fd = -1;

	return control_connect(dir_fd, name, &fd, e) < 0 ? -1 : signal_peer(fd, SIGKILL, e);
}

int control_terminate(int socket_fd, struct err *e)
{
	return signal_peer(socket_fd, SIGTERM, e);
}

int control_listen(int dir_fd, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;

	if (fd < 0)
		return err_sys(e, errno, "create a socket");
	name_socket(dir_fd, &address);
	(void)unlinkat(dir_fd, CONTROL_SOCKET, 0); /* left by a killed supervisor */
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen for commands");
	*ret_fd = take_fd(&fd);
	return 0;
}

/*
 * An ordinary user's sandbox runs with that user's id, and sees the socket if the state directory
 * is inside a mount of the sandbox. Its user namespace differs from ours.
 */
static bool is_outside(pid_t pid)
{
	char path[40];
	struct stat own, other;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat("/proc/self/ns/user", &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

int control_accept(int listen_fd)
{
	cleanup_fd int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -1;
	if (peer.uid != geteuid() && peer.uid != 0)
		return -1;
	if (peer.uid != 0 && !is_outside(peer.pid))
		return -1;
	return take_fd(&fd);
}

/* If the answer cannot be sent, closes the connection, so that the client does not wait for it. */
static void say(int socket_fd, uint32_t kind, const void *body, size_t len)
{
	if (frame_send(socket_fd, kind, body, len, NULL, 0) < 0)
		(void)shutdown(socket_fd, SHUT_RDWR);
}

void control_fail(int socket_fd, const struct err *e)
{
	say(socket_fd, CONTROL_FAILED, e, sizeof(*e));
}

void control_answer(int socket_fd, const void *body, size_t len)
{
	say(socket_fd, CONTROL_OK, body, len);
}

/* The peer is the listening process: the supervisor or the daemon. */
static int say_silent(int socket_fd, unsigned timeout_ms, struct err *e)
{
	int pid = (int)peer_of(socket_fd);
	char path[40], state[256] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	(void)file_read_line(AT_FDCWD, path, state, sizeof(state));
	if (strstr(state, ") T ") || strstr(state, ") t "))
		return err_set(e, ERR_TIMEOUT,
			       "the supervisor, process %d, is stopped ('kill -CONT %d' lets it go "
			       "on; 'agentkernel stop -f' ends the sandbox)",
			       pid, pid);
	return err_set(e, ERR_TIMEOUT,
		       "the supervisor, process %d, has not answered for %u s ('agentkernel stop "
		       "-f' ends the sandbox)",
		       pid, timeout_ms / 1000);
}

/* 1: readable, 0: timed out, -1: error. */
static int await(int socket_fd, unsigned timeout_ms)
{
	uint64_t end_ms = clock_now_ms() + timeout_ms;
	struct pollfd polled = { .fd = socket_fd, .events = POLLIN };
	uint64_t now_ms;
	int r;

	do {
		now_ms = clock_now_ms();
		r = poll(&polled, 1, now_ms < end_ms ? (int)(end_ms - now_ms) : 0);
	} while (r < 0 && errno == EINTR);
	return r;
}

int control_explain(int socket_fd, int r, struct err *e)
{
	if (r == -EPROTONOSUPPORT)
		return err_set(e, ERR_UNSUPPORTED,
			       "the supervisor, process %d, was started by another build of "
			       "agentkernel, whose messages this one does not know ('agentkernel "
			       "restart' ends the sandbox's processes and starts it with this one)",
			       (int)peer_of(socket_fd));
	if (r == 0)
		return err_set(e, ERR_SYSTEM, "the supervisor gave no answer");
	return err_sys(e, -r, "read the supervisor's answer");
}

int control_wait(int socket_fd, unsigned timeout_ms, struct frame *ret, struct err *e)
{
	int r = await(socket_fd, timeout_ms);

	if (r == 0)
		return say_silent(socket_fd, timeout_ms, e);
	r = frame_receive(socket_fd, FRAME_WAIT, ret);
	if (r != 1)
		return control_explain(socket_fd, r, e);
	if (ret->kind == CONTROL_OK)
		return 0;
	if (ret->kind == CONTROL_FAILED && ret->len == sizeof(*e)) {
		memcpy(e, ret->bytes, sizeof(*e));
		err_sanitize(e);
	} else {
		(void)err_set(e, ERR_REMOTE, "the supervisor gave a strange answer");
	}
	frame_done(ret);
	return -1;
}

int control_ask(int socket_fd, uint32_t kind, const void *body, size_t len, struct frame *ret,
		struct err *e)
{
	int r = frame_send(socket_fd, kind, body, len, NULL, 0);

	if (r == -EAGAIN)
		return say_silent(socket_fd, CONTROL_CONNECT_MS, e);
	if (r < 0 && r != -EPIPE) /* the supervisor may have sent the reason before it closed */
		return err_sys(e, -r, "ask the supervisor");
	return control_wait(socket_fd,
			    kind == CONTROL_PAUSE || kind == CONTROL_FREEZE ? CONTROL_STILL_MS
									    : CONTROL_ANSWER_MS,
			    ret, e);
}

int control_probe(int dir_fd, const char *name, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int fd = -1;
	int r;

	if (control_connect(dir_fd, name, &fd, e) < 0)
		return -1;
	r = frame_send(fd, CONTROL_INFO, NULL, 0, NULL, 0);
	if (r < 0)
		return err_sys(e, -r, "ask the supervisor");
	return control_wait(fd, CONTROL_PROBE_MS, &answer, e);
}

int control_do(int socket_fd, uint32_t kind, const void *body, size_t len, struct err *e)
{
	CLEANUP(frame_done) struct frame answer = { 0 };

	return control_ask(socket_fd, kind, body, len, &answer, e);
}
