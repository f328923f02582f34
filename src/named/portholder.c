/*
 * portholder - holds the published ports of sleeping sandboxes; see portholder.h.
 *
 * Theory of operation. A client connects to the socket in DIR (named/control's, with its checks of
 * who may connect), sends one message per port, and waits for each answer, so a client that returns
 * knows that its ports are held. The process serves one client at a time and gives it
 * CLIENT_WAIT_MS for each message. A lock on DIR/lock makes it the only one; a client that finds no
 * process starts one, by executing this program again: a copy of a supervisor would keep its
 * memory.
 *
 * A held socket that becomes readable starts its sandbox in a child process. Until that has ended
 * the sandbox's sockets are not watched. If it fails, the waiting connections are reset, and the
 * next try comes after a growing delay.
 *
 * Hostile input: none. Whoever connects to a published port is accepted only to be reset.
 */
#include "named/portholder.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/closeothers.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/mem.h"
#include "base/title.h"
#include "engine/published.h"
#include "named/control.h"
#include "named/lifecycle.h"
#include "named/named.h"
#include "state/ak.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIR "ports"
#define LOCK_FILE "lock"
#define CLIENT_WAIT_MS 2000
#define START_WAIT_MS 3000u /* for a new process to listen */
#define START_LOOK_US 2000
#define BACKOFF_FIRST_MS 100u
#define BACKOFF_MAX_MS 10000u
#define RESETS_MAX 4096u /* of one sandbox's waiting connections */
#define EXIT_GONE 2      /* of a child: there is no such sandbox */

enum { FRAME_GIVE = 1, FRAME_TAKE, FRAME_DROP, FRAME_PORT, FRAME_END };

/* A port, with its socket; in FRAME_TAKE and FRAME_DROP the id alone counts. */
struct portholder_port {
	char name[NAMED_NAME_MAX_BYTES + 1];
	char id[NAMED_ID_BYTES + 1];
	char spec[PUBLISH_TEXT_MAX_BYTES]; /* as in the policy */
	uint16_t port;
};
FRAME_STRUCT(struct portholder_port, 180);

static struct portholder_port describe(const struct named *n)
{
	struct portholder_port p = { .port = 0 };

	(void)snprintf(p.name, sizeof(p.name), "%s", n->name);
	(void)snprintf(p.id, sizeof(p.id), "%s", n->id);
	return p;
}

/* ---- clients ---- */

static int open_dir(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;

	if (statedir_path(ak, DIR, &path, e) < 0)
		return -1;
	*ret_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return *ret_fd < 0 ? err_sys(e, errno, "open %s", path) : 0;
}

static int make_dir(const struct ak *ak, int *ret_fd, struct err *e)
{
	cleanup_free char *path = NULL;

	if (statedir_make_path(ak, DIR, &path, e) < 0)
		return -1;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "create %s", path);
	return open_dir(ak, ret_fd, e);
}

static int connect_to_it(int dir_fd, int *ret_fd, struct err *e)
{
	const struct timeval patience = { .tv_sec = CLIENT_WAIT_MS / 1000 };

	if (control_connect(dir_fd, "ports", ret_fd, e) < 0)
		return -1;
	(void)setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return 0;
}

/* Executes this program in a process that no caller waits for. */
static int start_it(struct err *e)
{
	char *argv[] = { (char *)"agentkernel", (char *)PORTHOLDER_COMMAND, NULL };
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, errno, "start the process that holds ports");
	if (pid == 0) {
		int none[] = { 0, 1, 2 };
		sigset_t empty;

		sigemptyset(&empty);
		(void)sigprocmask(SIG_SETMASK, &empty, NULL);
		(void)closeothers_but(none, COUNT_OF(none));
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		(void)execve("/proc/self/exe", argv, environ);
		_exit(1);
	}
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return 0;
}

static int reach(const struct ak *ak, int *ret_fd, struct err *e)
{
	uint64_t end_ms = clock_now_ms() + START_WAIT_MS;
	cleanup_fd int dir_fd = -1;

	if (make_dir(ak, &dir_fd, e) < 0)
		return -1;
	if (connect_to_it(dir_fd, ret_fd, e) == 0)
		return 0;
	if (e->code != ERR_NOT_FOUND || start_it(e) < 0)
		return -1;
	while (connect_to_it(dir_fd, ret_fd, e) < 0) {
		if (e->code != ERR_NOT_FOUND || clock_now_ms() >= end_ms)
			return -1;
		(void)usleep(START_LOOK_US);
	}
	return 0;
}

/* Sends one message and waits for its answer. */
static int ask(int fd, uint32_t kind, const struct portholder_port *body, int port_fd,
	       struct frame *ret, struct err *e)
{
	int r = frame_send(fd, kind, body, sizeof(*body), &port_fd, port_fd >= 0 ? 1 : 0);

	if (r == 0)
		r = frame_receive(fd, FRAME_WAIT, ret);
	if (r < 0)
		return err_sys(e, -r, "hand a port over");
	return r == 1 ? 0 : err_set(e, ERR_LIMIT, "the process that holds ports takes no more");
}

int portholder_give(const struct ak *ak, const struct named *n, const struct published *ports,
		    struct err *e)
{
	struct portholder_port body = describe(n);
	cleanup_fd int fd = -1;

	for (unsigned i = 0; i < ports->count; i++) {
		const struct published_port *p = &ports->ports[i];
		CLEANUP(frame_done) struct frame answer = { 0 };

		if (!p->is_kept)
			continue;
		if (fd < 0 && reach(ak, &fd, e) < 0)
			return -1;
		(void)publish_format(&p->spec, body.spec);
		body.port = p->port;
		if (ask(fd, FRAME_GIVE, &body, p->listen_fd, &answer, e) < 0)
			return -1;
	}
	return 0;
}

static void add_taken(struct published *ret, struct frame *f)
{
	struct published_port port = { .is_kept = true, .listen_fd = -1 };
	struct portholder_port body;
	struct err ignored;

	if (f->len != sizeof(body) || f->fd_count != 1)
		return;
	memcpy(&body, f->bytes, sizeof(body));
	body.spec[sizeof(body.spec) - 1] = '\0';
	if (publish_parse(body.spec, &port.spec, &ignored) < 0)
		return;
	port.port = body.port;
	port.listen_fd = take_fd(&f->fds[0]);
	published_adopt(ret, &port);
}

void portholder_take(const struct ak *ak, const struct named *n, struct published *ret)
{
	const struct portholder_port body = describe(n);
	cleanup_fd int dir_fd = -1;
	cleanup_fd int fd = -1;
	struct err ignored;
	struct frame f;
	bool is_over = false;

	if (open_dir(ak, &dir_fd, &ignored) < 0 || connect_to_it(dir_fd, &fd, &ignored) < 0 ||
	    frame_send(fd, FRAME_TAKE, &body, sizeof(body), NULL, 0) < 0)
		return;
	while (!is_over && frame_receive(fd, FRAME_WAIT, &f) == 1) {
		is_over = f.kind != FRAME_PORT;
		if (!is_over)
			add_taken(ret, &f);
		frame_done(&f);
	}
}

void portholder_drop(const struct ak *ak, const struct named *n)
{
	const struct portholder_port body = describe(n);
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int dir_fd = -1;
	cleanup_fd int fd = -1;
	struct err ignored;

	if (open_dir(ak, &dir_fd, &ignored) == 0 && connect_to_it(dir_fd, &fd, &ignored) == 0)
		(void)!ask(fd, FRAME_DROP, &body, -1, &answer, &ignored);
}

int portholder_change(const struct ak *ak, const struct named *n, char *const *texts, struct err *e)
{
	CLEANUP(published_done) struct published ports;

	published_init(&ports);
	portholder_take(ak, n, &ports);
	published_keep_only(&ports, texts);
	if (published_open(&ports, texts, e) < 0)
		return -1;
	return portholder_give(ak, n, &ports, e);
}

/* ---- the process ---- */

struct sleeper {
	char name[NAMED_NAME_MAX_BYTES + 1];
	char id[NAMED_ID_BYTES + 1];
	struct published ports;
	pid_t pid; /* of the child that starts it; 0: none */
	unsigned failures;
	uint64_t not_before_ms;
};

struct holder {
	const struct ak *ak;
	int listen_fd, signal_fd;
	struct sleeper *sleepers;
	unsigned count, port_count, waking;
	struct pollfd *polled;
	unsigned *polled_sleeper; /* whose socket each is */
	unsigned polled_capacity;
};

static struct sleeper *find(struct holder *h, const char *id)
{
	for (unsigned i = 0; i < h->count; i++)
		if (strcmp(h->sleepers[i].id, id) == 0)
			return &h->sleepers[i];
	return NULL;
}

static void forget(struct holder *h, struct sleeper *s)
{
	h->port_count -= s->ports.count;
	h->waking -= s->pid != 0;
	published_done(&s->ports);
	*s = h->sleepers[--h->count];
}

static struct sleeper *add(struct holder *h, const struct portholder_port *p)
{
	struct sleeper *s;

	if (h->count == PORTHOLDER_SANDBOXES_MAX)
		return NULL;
	h->sleepers = mem_grow(h->sleepers, h->count + 1, sizeof(*h->sleepers));
	s = &h->sleepers[h->count++];
	*s = (struct sleeper){ .pid = 0 };
	memcpy(s->name, p->name, sizeof(s->name));
	memcpy(s->id, p->id, sizeof(s->id));
	published_init(&s->ports);
	return s;
}

static bool give(struct holder *h, const struct portholder_port *body, struct frame *f)
{
	struct sleeper *s = find(h, body->id);
	unsigned before = s ? s->ports.count : 0;

	if (f->fd_count != 1 || h->port_count == PORTHOLDER_PORTS_MAX)
		return false;
	if (!s)
		s = add(h, body);
	if (!s)
		return false;
	add_taken(&s->ports, f);
	h->port_count += s->ports.count - before;
	return true;
}

static bool give_back(struct holder *h, const struct portholder_port *body, int client_fd)
{
	struct sleeper *s = find(h, body->id);
	struct portholder_port row = *body;

	for (unsigned i = 0; s && i < s->ports.count; i++) {
		const struct published_port *p = &s->ports.ports[i];

		(void)publish_format(&p->spec, row.spec);
		row.port = p->port;
		if (frame_send(client_fd, FRAME_PORT, &row, sizeof(row), &p->listen_fd, 1) < 0)
			return false;
	}
	if (s)
		forget(h, s);
	return true;
}

static bool serve_one(struct holder *h, int client_fd)
{
	CLEANUP(frame_done) struct frame f = { 0 };
	struct portholder_port body;
	struct sleeper *s;

	if (frame_receive(client_fd, FRAME_WAIT, &f) != 1 || f.len != sizeof(body))
		return false;
	memcpy(&body, f.bytes, sizeof(body));
	body.name[sizeof(body.name) - 1] = body.id[sizeof(body.id) - 1] = '\0';
	if (f.kind == FRAME_GIVE && !give(h, &body, &f))
		return false;
	if (f.kind == FRAME_TAKE && !give_back(h, &body, client_fd))
		return false;
	s = f.kind == FRAME_DROP ? find(h, body.id) : NULL;
	if (s)
		forget(h, s);
	return frame_send(client_fd, FRAME_END, NULL, 0, NULL, 0) == 0;
}

static void on_client(struct holder *h)
{
	const struct timeval patience = { .tv_sec = CLIENT_WAIT_MS / 1000 };
	cleanup_fd int fd = control_accept(h->listen_fd);

	if (fd < 0)
		return;
	(void)fcntl(fd, F_SETFL, O_RDWR);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (serve_one(h, fd))
		continue;
}

/* ---- waking ---- */

/* In the child. A sandbox of that name with another id is not the one that slept. */
static _Noreturn void wake(const struct holder *h, const struct sleeper *s)
{
	CLEANUP(named_done) struct named n;
	struct err e = { 0 };
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	named_init(&n);
	if (named_open_any(h->ak, s->name, &n, &e) < 0 || strcmp(n.id, s->id) != 0)
		_exit(e.code == ERR_NONE || e.code == ERR_NOT_FOUND ? EXIT_GONE : 1);
	_exit(lifecycle_start(h->ak, s->name, &e) < 0);
}

static void start_waking(struct holder *h, struct sleeper *s)
{
	pid_t pid;

	if (s->pid || h->waking == PORTHOLDER_WAKES_MAX)
		return;
	pid = fork();
	if (pid == 0)
		wake(h, s);
	if (pid < 0) {
		s->not_before_ms = clock_now_ms() + BACKOFF_FIRST_MS;
		return;
	}
	s->pid = pid;
	h->waking++;
}

static void reset_clients(const struct sleeper *s)
{
	static const struct linger at_once = { .l_onoff = 1 };

	for (unsigned i = 0; i < s->ports.count; i++)
		for (unsigned n = 0; n < RESETS_MAX; n++) {
			int fd = accept4(s->ports.ports[i].listen_fd, NULL, NULL, SOCK_CLOEXEC);

			if (fd < 0)
				break;
			(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
			(void)close(fd);
		}
}

static void on_child(struct holder *h, pid_t pid, int status)
{
	struct sleeper *s = NULL;
	uint64_t wait_ms = BACKOFF_FIRST_MS;

	for (unsigned i = 0; i < h->count && !s; i++)
		if (h->sleepers[i].pid == pid)
			s = &h->sleepers[i];
	if (!s)
		return; /* its sockets were taken: it runs */
	s->pid = 0;
	h->waking--;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_GONE) {
		forget(h, s);
		return;
	}
	for (unsigned i = 0; i < s->failures && wait_ms < BACKOFF_MAX_MS; i++)
		wait_ms *= 2;
	s->failures++;
	s->not_before_ms = clock_now_ms() + wait_ms;
	if (s->failures > 1) /* the first may have met the end of the last run */
		reset_clients(s);
}

static void on_signal(struct holder *h)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	(void)!read(h->signal_fd, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		on_child(h, pid, status);
}

/* ---- the loop ---- */

enum { SLOT_CLIENTS, SLOT_SIGNAL, SLOT_FIRST_PORT };

static unsigned watch(struct holder *h, int *ret_wait_ms)
{
	unsigned wanted = h->port_count + SLOT_FIRST_PORT, used = SLOT_FIRST_PORT;
	uint64_t now_ms = clock_now_ms();

	*ret_wait_ms = -1;
	if (wanted > h->polled_capacity) {
		h->polled = mem_grow(h->polled, wanted, sizeof(*h->polled));
		h->polled_sleeper = mem_grow(h->polled_sleeper, wanted, sizeof(*h->polled_sleeper));
		h->polled_capacity = wanted;
	}
	h->polled[SLOT_CLIENTS] = (struct pollfd){ .fd = h->listen_fd, .events = POLLIN };
	h->polled[SLOT_SIGNAL] = (struct pollfd){ .fd = h->signal_fd, .events = POLLIN };
	for (unsigned i = 0; i < h->count; i++) {
		const struct sleeper *s = &h->sleepers[i];

		if (s->pid || h->waking == PORTHOLDER_WAKES_MAX)
			continue; /* SIGCHLD comes first */
		if (now_ms < s->not_before_ms) {
			int left_ms = (int)(s->not_before_ms - now_ms);

			*ret_wait_ms =
				*ret_wait_ms < 0 || left_ms < *ret_wait_ms ? left_ms : *ret_wait_ms;
			continue;
		}
		for (unsigned p = 0; p < s->ports.count; p++) {
			h->polled_sleeper[used] = i;
			h->polled[used++] = (struct pollfd){ .fd = s->ports.ports[p].listen_fd,
							     .events = POLLIN };
		}
	}
	return used;
}

static void serve(struct holder *h)
{
	/* at the start there is nothing yet, but a client */
	for (bool is_new = true; is_new || h->count > 0; is_new = false) {
		int wait_ms = 0;
		unsigned used = watch(h, &wait_ms);

		if (is_new)
			wait_ms = CLIENT_WAIT_MS;
		if (poll(h->polled, used, wait_ms) < 0 && errno != EINTR)
			return;
		for (unsigned i = SLOT_FIRST_PORT; i < used; i++)
			if (h->polled[i].revents)
				start_waking(h, &h->sleepers[h->polled_sleeper[i]]);
		/* these two change the list of sleepers */
		if (h->polled[SLOT_SIGNAL].revents)
			on_signal(h);
		if (h->polled[SLOT_CLIENTS].revents)
			on_client(h);
	}
}

static int open_all(struct holder *h, int *ret_dir_fd, int *ret_lock_fd, struct err *e)
{
	struct rlimit limit;
	sigset_t children;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &children, NULL) < 0)
		return err_sys(e, errno, "hold back signals");
	h->signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (make_dir(h->ak, ret_dir_fd, e) < 0)
		return -1;
	*ret_lock_fd =
		openat(*ret_dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (*ret_lock_fd < 0 || flock(*ret_lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, errno, "lock the directory of ports");
	return control_listen(*ret_dir_fd, &h->listen_fd, e);
}

int portholder_main(const struct ak *ak)
{
	struct holder h = { .ak = ak, .listen_fd = -1, .signal_fd = -1 };
	cleanup_fd int dir_fd = -1;
	cleanup_fd int lock_fd = -1;
	struct err e = { 0 };

	title_set(TITLE_PORT_HOLDER, NULL);
	(void)file_leave_streams();
	(void)!chdir("/");
	if (open_all(&h, &dir_fd, &lock_fd, &e) < 0)
		return 1;
	serve(&h);
	(void)unlinkat(dir_fd, CONTROL_SOCKET, 0);
	cleanup_closep(&h.listen_fd);
	cleanup_closep(&h.signal_fd);
	free(h.sleepers);
	free(h.polled);
	free(h.polled_sleeper);
	return 0;
}
