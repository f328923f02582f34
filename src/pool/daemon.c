/*
 * daemon - keeps sandboxes ready; see daemon.h.
 *
 * Theory of operation. One poll loop over the listening socket, clients that have not said yet what
 * they want, and the channels of the processes that keep one sandbox each (pool/pools). A claim is
 * answered at once: the client's connection goes to a process that has said it is ready, or is
 * refused.
 *
 * The lock on daemon.lock shows that a daemon is running, so the socket that a killed one left does
 * not matter.
 */
#include "pool/daemon.h"

#include "base/buf.h"
#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/logfile.h"
#include "base/mem.h"
#include "base/title.h"
#include "host/cgroup.h"
#include "named/namedgc.h"
#include "pool/claim.h"
#include "pool/pools.h"
#include "pool/poolstatus.h"
#include "pool/surroundings.h"
#include "state/statedir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 128
#define STATUS_MAX_BYTES (256u << 10)

struct client {
	int fd;
};

struct pool_daemon {
	const struct daemon_options *options;
	int lock_fd, listen_fd, signal_fd;
	struct pools pools;
	struct poolstatus_daemon status;
	struct client clients[DAEMON_CLIENTS_MAX];
	unsigned client_count;
	bool is_over;
	struct buf surroundings, cgroups;
	struct logfile log;
	int dir_fd; /* of the state directory, for the log */
};

/* ---- requests ---- */

static void refuse(int fd, enum err_code code, const char *words)
{
	struct err e = { 0 };

	(void)err_set(&e, code, "%s", words);
	control_fail(fd, &e);
}

/* Refuses another build, whose sandboxes would differ from ours. */
static int check_build(const char *build, struct err *e)
{
	return strcmp(build, buildid_get()) == 0
		       ? 0
		       : err_set(e, ERR_UNSUPPORTED,
				 "the daemon is of build %s, this program of build %.16s "
				 "('agentkernel daemon restart' renews it)",
				 buildid_get(), build);
}

/* Do processes in these cgroups have the same limits as we do? True for the same cgroups. */
static bool has_our_limits(const struct pool_daemon *k, const char *cgroups)
{
	cleanup_buf struct buf ours;
	cleanup_buf struct buf theirs;

	buf_init(&ours, BUF_TEXT_MAX_BYTES);
	buf_init(&theirs, BUF_TEXT_MAX_BYTES);
	if (strcmp(cgroups, buf_text(&k->cgroups)) == 0)
		return true;
	surroundings_format_limits(buf_text(&k->cgroups), &ours);
	surroundings_format_limits(cgroups, &theirs);
	return !ours.is_cut && !theirs.is_cut && strcmp(buf_text(&ours), buf_text(&theirs)) == 0;
}

static void on_take(struct pool_daemon *k, int fd, const struct frame *f)
{
	size_t cgroups_len = strnlen(f->bytes, f->len);
	size_t before = cgroups_len < f->len ? cgroups_len + 1 : f->len;
	const char *bytes = f->bytes + before;
	size_t len = f->len - before;
	struct pools_pool *p = pools_find(&k->pools, bytes, len);
	struct claim_key key;
	struct err e = { 0 };

	if (claim_split_key(bytes, len, &key, &e) < 0 || check_build(key.build, &e) < 0) {
		control_fail(fd, &e);
		return;
	}
	if (strcmp(key.surroundings, buf_text(&k->surroundings)) != 0 ||
	    !has_our_limits(k, f->bytes)) {
		k->status.strangers++;
		refuse(fd, ERR_NOT_FOUND,
		       "other limits, groups, priorities or cgroups than the daemon's");
		return;
	}
	if (!p && k->options->min_warm > 0)
		p = pools_add(&k->pools, bytes, len, k->options->min_warm, &e);
	if (!p) {
		refuse(fd, ERR_NOT_FOUND, "no such pool");
		return;
	}
	p->last_used_ms = clock_now_ms();
	if (pools_give(&k->pools, p, fd)) {
		p->hits++;
		return;
	}
	p->misses++;
	refuse(fd, ERR_NOT_FOUND, "none is ready");
}

static void on_prewarm(struct pool_daemon *k, int fd, const struct frame *f)
{
	struct claim_count body;
	struct claim_key key;
	struct pools_pool *p;
	struct err e = { 0 };

	if (f->len <= sizeof(body)) {
		refuse(fd, ERR_INVALID, "half a request");
		return;
	}
	memcpy(&body, f->bytes, sizeof(body));
	if (claim_split_key(f->bytes + sizeof(body), f->len - sizeof(body), &key, &e) < 0 ||
	    check_build(key.build, &e) < 0) {
		control_fail(fd, &e);
		return;
	}
	if (body.count > k->options->max_warm)
		body.count = k->options->max_warm;
	p = pools_find(&k->pools, f->bytes + sizeof(body), f->len - sizeof(body));
	if (!p)
		p = pools_add(&k->pools, f->bytes + sizeof(body), f->len - sizeof(body), body.count,
			      &e);
	if (!p) {
		control_fail(fd, &e);
		return;
	}
	p->min_warm = body.count;
	p->last_used_ms = clock_now_ms();
	control_answer(fd, NULL, 0);
}

static void on_status(struct pool_daemon *k, int fd, const struct frame *f)
{
	cleanup_buf struct buf out;

	buf_init(&out, STATUS_MAX_BYTES);
	if (f->len == strlen(CLAIM_STATUS_TABLE) &&
	    memcmp(f->bytes, CLAIM_STATUS_TABLE, f->len) == 0)
		poolstatus_format_table(&k->pools, &k->status, &out);
	else
		poolstatus_format_json(&k->pools, &k->status, &out);
	control_answer(fd, out.bytes, out.len);
}

/* False: close the connection. */
static bool on_client(struct pool_daemon *k, int fd)
{
	CLEANUP(frame_done) struct frame f = { 0 };
	int r = frame_receive(fd, FRAME_NO_WAIT, &f);

	if (frame_may_pass(r))
		return true;
	if (r == -EPROTONOSUPPORT) /* the peer understands only the version in this answer */
		refuse(fd, ERR_UNSUPPORTED, "another version");
	if (r <= 0)
		return false;
	switch (f.kind) {
	case CLAIM_TAKE:
		on_take(k, fd, &f);
		return false;
	case CLAIM_PREWARM:
		on_prewarm(k, fd, &f);
		return true;
	case CLAIM_STATUS:
		on_status(k, fd, &f);
		return true;
	case CLAIM_STOP:
		k->is_over = true;
		return true; /* the client waits until we close its connection at exit */
	}
	refuse(fd, ERR_UNSUPPORTED, "the daemon knows no such request");
	return false;
}

static void on_connection(struct pool_daemon *k)
{
	int fd = control_accept(k->listen_fd);

	if (fd < 0)
		return;
	if (k->client_count == DAEMON_CLIENTS_MAX) {
		refuse(fd, ERR_LIMIT, "too many clients");
		(void)close(fd);
		return;
	}
	/* a client sends its claim right after connecting: often it has arrived by now */
	if (on_client(k, fd))
		k->clients[k->client_count++] = (struct client){ .fd = fd };
	else
		(void)close(fd);
}

/* ---- the loop ---- */

enum { SLOT_LISTEN, SLOT_SIGNAL, SLOT_FIRST };

static unsigned fill(struct pool_daemon *k, struct pollfd *polled)
{
	unsigned count = SLOT_FIRST;

	polled[SLOT_LISTEN] = (struct pollfd){ .fd = k->listen_fd, .events = POLLIN };
	polled[SLOT_SIGNAL] = (struct pollfd){ .fd = k->signal_fd, .events = POLLIN };
	for (unsigned i = 0; i < k->client_count; i++)
		polled[count++] = (struct pollfd){ .fd = k->clients[i].fd, .events = POLLIN };
	for (unsigned i = 0; i < k->pools.count; i++)
		for (unsigned j = 0; j < k->pools.list[i]->waiting_count; j++)
			polled[count++] =
				(struct pollfd){ .fd = k->pools.list[i]->waiting[j].channel_fd,
						 .events = POLLIN };
	return count;
}

static bool is_polled(const struct pollfd *polled, unsigned from, unsigned count, int fd)
{
	for (unsigned i = from; i < count; i++)
		if (polled[i].fd == fd)
			return polled[i].revents != 0;
	return false;
}

static void turn(struct pool_daemon *k, struct pollfd *polled, unsigned wait_ms)
{
	unsigned count = fill(k, polled), clients = k->client_count;

	if (poll(polled, count, (int)wait_ms) < 0)
		return;
	/* clients first, because they wait */
	for (unsigned i = clients; i-- > 0;) {
		if (!polled[SLOT_FIRST + i].revents || on_client(k, k->clients[i].fd))
			continue;
		(void)close(k->clients[i].fd);
		k->clients[i] = k->clients[--k->client_count];
	}
	if (polled[SLOT_LISTEN].revents)
		on_connection(k);
	for (unsigned i = 0; i < k->pools.count; i++)
		for (unsigned j = k->pools.list[i]->waiting_count; j-- > 0;)
			if (is_polled(polled, SLOT_FIRST + clients, count,
				      k->pools.list[i]->waiting[j].channel_fd))
				pools_on_channel(&k->pools, k->pools.list[i], j);
	if (polled[SLOT_SIGNAL].revents) {
		struct signalfd_siginfo info;

		while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			k->is_over = k->is_over || info.ssi_signo != SIGCHLD;
	}
	pools_reap(&k->pools);
}

/*
 * Removes expired sandboxes that are not running, and empty cgroups of killed runs, which nobody
 * else may clean up. In a child, because removing takes time.
 */
static void sweep(struct pool_daemon *k)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };
	struct err ignored;
	pid_t pid = fork();

	if (pid != 0)
		return;
	cleanup_closep(&k->listen_fd);
	cgroup_sweep();
	if (inventory_list(k->options->ak, &list, &ignored) == 0)
		namedgc_sweep_expired(k->options->ak, &list);
	_exit(0);
}

static void serve(struct pool_daemon *k)
{
	struct pollfd *polled =
		mem_alloc((SLOT_FIRST + DAEMON_CLIENTS_MAX + POOLS_WARM_MAX + POOLS_BUILDING_MAX) *
			  sizeof(*polled));
	uint64_t next_age_ms = 0, next_sweep_ms = 0;

	while (!k->is_over) {
		if (clock_now_ms() >= next_sweep_ms) {
			sweep(k);
			next_sweep_ms = clock_now_ms() + DAEMON_SWEEP_MS;
		}
		if (clock_now_ms() >= next_age_ms) {
			pools_age(&k->pools);
			next_age_ms = clock_now_ms() + POOLS_LOOK_MS;
		}
		turn(k, polled, pools_fill(&k->pools));
	}
	free(polled);
}

/* ---- start and end ---- */

static int take_lock(struct pool_daemon *k, struct err *e)
{
	cleanup_free char *path = NULL;

	if (statedir_make_path(k->options->ak, DAEMON_LOCK, &path, e) < 0)
		return -1;
	k->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->lock_fd < 0)
		return err_sys(e, errno, "open '%s'", path);
	if (flock(k->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_EXISTS, "a daemon is already running");
	return 0;
}

static int open_socket(struct pool_daemon *k, struct err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_free char *path = NULL;
	cleanup_fd int dir_fd = -1;

	if (k->options->listen_fd >= 0) {
		k->listen_fd = k->options->listen_fd;
		return 0;
	}
	if (statedir_make_path(k->options->ak, CLAIM_SOCKET, &path, e) < 0)
		return -1;
	(void)unlink(path); /* left by a killed daemon: we hold the lock */
	*strrchr(path, '/') = '\0';
	dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" CLAIM_SOCKET,
		       dir_fd);
	k->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (k->listen_fd < 0 ||
	    bind(k->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(k->listen_fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen");
	return 0;
}

static int open_signals(struct pool_daemon *k, struct err *e)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return k->signal_fd < 0 ? err_sys(e, errno, "wait for signals") : 0;
}

static void unlink_socket(const struct pool_daemon *k)
{
	cleanup_free char *path = NULL;
	struct err ignored;

	if (k->options->listen_fd < 0 &&
	    statedir_path(k->options->ak, CLAIM_SOCKET, &path, &ignored) == 0)
		(void)unlink(path);
}

static void open_log(struct pool_daemon *k)
{
	cleanup_free char *dir = NULL;
	struct err ignored;

	if (statedir_path(k->options->ak, ".", &dir, &ignored) == 0)
		k->dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	logfile_init(&k->log, k->dir_fd, DAEMON_LOG);
}

static void pool_daemon_done(struct pool_daemon *k)
{
	logfile_done(&k->log);
	cleanup_closep(&k->dir_fd);
	pools_done(&k->pools);
	for (unsigned i = 0; i < k->client_count; i++)
		(void)close(k->clients[i].fd);
	buf_done(&k->surroundings);
	buf_done(&k->cgroups);
	cleanup_closep(&k->listen_fd);
	cleanup_closep(&k->signal_fd);
	cleanup_closep(&k->lock_fd);
}

int daemon_serve(const struct daemon_options *o, struct err *e)
{
	CLEANUP(pool_daemon_done)
	struct pool_daemon k = { .options = o,
				 .lock_fd = -1,
				 .listen_fd = -1,
				 .signal_fd = -1,
				 .dir_fd = -1,
				 .log.fd = -1,
				 .status.started_ms = clock_now_ms() };

	pools_init(&k.pools, o->ak, &k.log);
	buf_init(&k.surroundings, BUF_TEXT_MAX_BYTES);
	buf_init(&k.cgroups, BUF_TEXT_MAX_BYTES);
	surroundings_format_cgroups(&k.cgroups);
	/* surroundings that cannot be compared match no client */
	if (!surroundings_format(&k.surroundings))
		buf_add_text(&k.surroundings, "?");
	if (take_lock(&k, e) < 0 || open_socket(&k, e) < 0 || open_signals(&k, e) < 0)
		return -1;
	title_set(TITLE_DAEMON, NULL);
	for (unsigned i = 0; i < o->pool_count; i++) {
		struct pools_pool *p = pools_add(&k.pools, o->pools[i].key, o->pools[i].key_len,
						 o->pools[i].min_warm, e);

		if (!p)
			return -1;
		p->is_permanent = true;
	}
	if (o->ready_fd >= 0)
		(void)close(o->ready_fd);
	open_log(&k);
	logfile_say(&k.log, "started: build %s, %u pools", buildid_get(), k.pools.count);
	serve(&k);
	logfile_say(&k.log, "ended: %" PRIu64 " sandboxes were given away", k.pools.given);
	unlink_socket(&k);
	return 0;
}
