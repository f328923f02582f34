/*
 * daemon - keeps sandboxes ready; see daemon.h.
 *
 * Theory of operation. One poll loop over the listening socket, clients that have not said yet what
 * they want, and the channels of the processes that keep one sandbox each (pool/warm). A claim is
 * answered at once: the client's connection goes to a process that has said it is ready, or is
 * refused. Pools are filled when no command that was just handed out is starting or ending
 * (put_off_ms), so that building does not slow those down.
 *
 * The lock on daemon.lock shows that a daemon is running, so the socket that a killed one left does
 * not matter.
 */
#include "pool/daemon.h"

#include "base/buf.h"
#include "base/buildid.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/logfile.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/table.h"
#include "base/title.h"
#include "pool/claim.h"
#include "engine/images.h"
#include "named/namedgc.h"
#include "state/statedir.h"
#include "pool/surroundings.h"
#include "pool/warm.h"
#include "host/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/param.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOCK_FILE "daemon.lock"
#define BACKLOG 128
#define TICK_MS 1000u
#define PAUSE_MS 30u    /* for which a claimed sandbox that runs puts building off */
#define BUSY_MS 5u      /* until a busy machine is looked at again */
#define RETRY_MS 5000u  /* after a sandbox could not be built */
#define BUILDING_MAX 2u /* at once; half the processors, where these are fewer than four */
#define STATUS_MAX_BYTES (256u << 10)
#define END_MAX_MS 10000u
#define END_SOON_MS 1000u
#define END_LOOK_MS 20l

struct waiting {
	pid_t pid;
	int channel_fd;  /* passed to the client */
	int init_fd;     /* passed to the client; -1: not ready */
	int owner_ns_fd; /* passed to the client; -1: none */
	struct claim_answer answer;
	uint64_t since_ms;
};

struct pool {
	char *key;
	size_t key_len;
	struct policy policy;
	struct claim_key parts; /* of .key */
	unsigned min_warm;
	bool is_permanent;
	struct waiting *waiting;
	unsigned waiting_count;
	uint64_t hits, misses, last_used_ms, not_before_ms;
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* why the last build failed; "" */
};

/* A child whose sandbox a client has claimed. */
struct claimed {
	pid_t pid;
	const struct pool *pool; /* NULL: it is gone */
	uint64_t since_ms;
};

struct client {
	int fd;
};

struct pool_daemon {
	const struct daemon_options *options;
	int lock_fd, listen_fd, signal_fd;
	struct pool *pools[DAEMON_POOLS_MAX];
	unsigned pool_count;
	struct client clients[DAEMON_CLIENTS_MAX];
	unsigned client_count;
	uint64_t given, started_ms;
	unsigned processor_count, building_max;
	unsigned in_use; /* children that were claimed */
	struct claimed *claimed;
	uint64_t strangers;     /* claims of processes with other surroundings */
	bool is_over, is_short; /* is_short: of memory */
	struct buf surroundings, cgroups;
	struct logfile log;
	int dir_fd; /* of the state directory, for the log */
};

/* ---- pools ---- */

static void drop_waiting(struct pool *p, unsigned index)
{
	(void)close(p->waiting[index]
			    .channel_fd); /* its process ends, unless a client has the socket */
	cleanup_closep(&p->waiting[index].init_fd);
	cleanup_closep(&p->waiting[index].owner_ns_fd);
	p->waiting[index] = p->waiting[--p->waiting_count];
}

static void pool_free(struct pool *p)
{
	while (p->waiting_count > 0)
		drop_waiting(p, p->waiting_count - 1);
	free(p->waiting);
	policy_done(&p->policy);
	free(p->key);
	free(p);
}

/* Drops a pool; claimed sandboxes of it keep running. */
static void drop_pool(struct pool_daemon *k, unsigned index)
{
	for (unsigned i = 0; i < k->in_use; i++)
		if (k->claimed[i].pool == k->pools[index])
			k->claimed[i].pool = NULL;
	pool_free(k->pools[index]);
	k->pools[index] = k->pools[--k->pool_count];
}

static struct pool *find_pool(struct pool_daemon *k, const char *key, size_t len)
{
	for (unsigned i = 0; i < k->pool_count; i++)
		if (k->pools[i]->key_len == len && memcmp(k->pools[i]->key, key, len) == 0)
			return k->pools[i];
	return NULL;
}

/* Drops the least recently used pool if the table is full. */
static bool make_room(struct pool_daemon *k)
{
	unsigned oldest = DAEMON_POOLS_MAX;

	if (k->pool_count < DAEMON_POOLS_MAX)
		return true;
	for (unsigned i = 0; i < k->pool_count; i++)
		if (!k->pools[i]->is_permanent &&
		    (oldest == DAEMON_POOLS_MAX ||
		     k->pools[i]->last_used_ms < k->pools[oldest]->last_used_ms))
			oldest = i;
	if (oldest == DAEMON_POOLS_MAX)
		return false;
	drop_pool(k, oldest);
	return true;
}

static struct pool *add_pool(struct pool_daemon *k, const char *key, size_t len, unsigned min_warm,
			     struct err *e)
{
	struct pool *p;

	if (len > CLAIM_KEY_MAX_BYTES || !make_room(k)) {
		(void)err_set(e, ERR_LIMIT, "there are %u pools already", DAEMON_POOLS_MAX);
		return NULL;
	}
	p = mem_alloc(sizeof(*p));
	*p = (struct pool){ .min_warm = min_warm, .last_used_ms = clock_now_ms() };
	p->key = mem_dup_bytes(key, len);
	p->key_len = len;
	if (claim_parse_key(p->key, len, &p->policy, &p->parts, e) < 0) {
		pool_free(p);
		return NULL;
	}
	k->pools[k->pool_count++] = p;
	return p;
}

/* ---- filling ---- */

static unsigned count_waiting(const struct pool_daemon *k, bool is_building_only)
{
	unsigned count = 0;

	for (unsigned i = 0; i < k->pool_count; i++)
		for (unsigned j = 0; j < k->pools[i]->waiting_count; j++)
			count += !is_building_only || k->pools[i]->waiting[j].init_fd < 0;
	return count;
}

/* Runs in the child: keeps only the channel open. */
static _Noreturn void be_warm(struct pool_daemon *k, const struct pool *p, int channel_fd)
{
	const struct warm_options o = { .ak = k->options->ak,
					.policy = &p->policy,
					.layers = p->parts.layers,
					.awaits_places = strcmp(p->parts.places, "yes") == 0,
					.channel_fd = 3 };
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* other processes wait for the end of these connections */
	if ((channel_fd != 3 ? dup3(channel_fd, 3, O_CLOEXEC) : fcntl(3, F_SETFD, FD_CLOEXEC)) <
		    0 ||
	    syscall(SYS_close_range, 4, ~0u, 0) < 0)
		_exit(EXIT_FAILURE);
	warm_main(&o);
}

static void start_one(struct pool_daemon *k, struct pool *p)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	pid = fork();
	if (pid == 0)
		be_warm(k, p, ends[1]);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return;
	}
	p->waiting = mem_grow(p->waiting, p->waiting_count + 1, sizeof(*p->waiting));
	p->waiting[p->waiting_count++] = (struct waiting){ .pid = pid,
							   .channel_fd = ends[0],
							   .init_fd = -1,
							   .owner_ns_fd = -1,
							   .since_ms = clock_now_ms() };
}

/* "0.20 0.18 0.12 3/345 8765": three are runnable, and we are one of them. */
static bool has_idle_processor(const struct pool_daemon *k)
{
	char line[128];
	const char *slash;

	if (file_read_line(AT_FDCWD, "/proc/loadavg", line, sizeof(line)) < 0)
		return true;
	slash = strchr(line, '/');
	while (slash && slash > line && slash[-1] != ' ')
		slash--;
	return !slash || strtoul(slash, NULL, 10) <= k->processor_count;
}

static bool wants_more(const struct pool *p, uint64_t now_ms)
{
	return p->waiting_count < p->min_warm && now_ms >= p->not_before_ms;
}

/*
 * Building a sandbox keeps a processor busy for as long as a short command takes with its start and
 * end, and delays that command's mounts, for which the kernel waits until all processors have
 * scheduled. So it is put off while a sandbox that was claimed less than PAUSE_MS ago still runs;
 * returns for how long.
 */
static unsigned pause_ms(const struct pool_daemon *k, uint64_t now_ms)
{
	uint64_t longest_ms = 0;

	for (unsigned i = 0; i < k->in_use; i++) {
		uint64_t end_ms = k->claimed[i].since_ms + PAUSE_MS;

		if (end_ms > now_ms && end_ms - now_ms > longest_ms)
			longest_ms = end_ms - now_ms;
	}
	return (unsigned)longest_ms;
}

/* For how long building one for this pool is put off. An empty pool only waits for an idle
 * processor: the next claim would find nothing. */
static unsigned put_off_ms(const struct pool_daemon *k, const struct pool *p, uint64_t now_ms)
{
	unsigned ms = pause_ms(k, now_ms);

	if (ms == 0 || p->waiting_count > 0)
		return ms;
	return has_idle_processor(k) ? 0 : MIN(ms, BUSY_MS);
}

static bool has_room(const struct pool_daemon *k)
{
	return !k->is_short && count_waiting(k, true) < k->building_max &&
	       count_waiting(k, false) < DAEMON_WARM_MAX;
}

/* Returns when to look again, TICK_MS at most. */
static unsigned fill_pools(struct pool_daemon *k)
{
	uint64_t now_ms = clock_now_ms();
	unsigned next_ms = TICK_MS;

	for (unsigned i = 0; i < k->pool_count; i++)
		while (has_room(k) && wants_more(k->pools[i], now_ms)) {
			unsigned ms = put_off_ms(k, k->pools[i], now_ms);

			next_ms = ms > 0 ? MIN(ms, next_ms) : next_ms;
			if (ms > 0)
				break;
			start_one(k, k->pools[i]);
		}
	return next_ms;
}

/* ---- time ---- */

static bool is_memory_short(void)
{
	cleanup_free char *text = NULL;
	const char *total, *available;
	size_t len = 0;

	if (file_read_at(AT_FDCWD, "/proc/meminfo", 65536, &text, &len) < 0)
		return false;
	total = strstr(text, "MemTotal:");
	available = strstr(text, "MemAvailable:");
	if (!total || !available)
		return false;
	return strtoull(available + strlen("MemAvailable:"), NULL, 10) * 100 <
	       strtoull(total + strlen("MemTotal:"), NULL, 10) * DAEMON_FREE_MIN_PERCENT;
}

static void age(struct pool_daemon *k)
{
	uint64_t now_ms = clock_now_ms();
	bool was_short = k->is_short;

	k->is_short = is_memory_short();
	if (k->is_short != was_short)
		logfile_say(&k->log, k->is_short ? "memory is short: no sandbox waits any more"
						 : "there is memory again");
	for (unsigned i = k->pool_count; i-- > 0;) {
		struct pool *p = k->pools[i];

		for (unsigned j = p->waiting_count; j-- > 0;)
			if (k->is_short || now_ms - p->waiting[j].since_ms > DAEMON_WARM_AGE_MS)
				drop_waiting(p, j);
		if (p->is_permanent || now_ms - p->last_used_ms < DAEMON_IDLE_MS)
			continue;
		drop_pool(k, i);
	}
}

static void reap(struct pool_daemon *k)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (unsigned i = 0; i < k->in_use; i++)
			if (k->claimed[i].pid == pid) {
				k->claimed[i] = k->claimed[--k->in_use];
				break;
			}
}

/* ---- requests ---- */

static void refuse(int fd, enum err_code code, const char *words)
{
	struct err e = { 0 };

	(void)err_set(&e, code, "%s", words);
	control_fail(fd, &e);
}

/* Passes the first sandbox that is ready. The loop drops one that has died meanwhile. */
static bool give(struct pool_daemon *k, struct pool *p, int client_fd)
{
	for (unsigned i = 0; i < p->waiting_count; i++) {
		const struct waiting w = p->waiting[i];
		const int fds[] = { w.channel_fd, w.init_fd, w.owner_ns_fd };

		if (w.init_fd < 0)
			continue;
		if (frame_send(client_fd, CONTROL_OK, &w.answer, sizeof(w.answer), fds,
			       w.owner_ns_fd >= 0 ? 3 : 2) < 0)
			return true; /* the client is gone, or notices when its socket is closed */
		drop_waiting(p, i);
		k->claimed = mem_grow(k->claimed, k->in_use + 1, sizeof(*k->claimed));
		k->claimed[k->in_use++] = (struct claimed){ w.pid, p, clock_now_ms() };
		k->given++;
		return true;
	}
	return false;
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
	struct pool *p = find_pool(k, bytes, len);
	struct claim_key key;
	struct err e = { 0 };

	if (claim_split_key(bytes, len, &key, &e) < 0 || check_build(key.build, &e) < 0) {
		control_fail(fd, &e);
		return;
	}
	if (strcmp(key.surroundings, buf_text(&k->surroundings)) != 0 ||
	    !has_our_limits(k, f->bytes)) {
		k->strangers++;
		refuse(fd, ERR_NOT_FOUND,
		       "other limits, groups, priorities or cgroups than the daemon's");
		return;
	}
	if (!p && k->options->min_warm > 0)
		p = add_pool(k, bytes, len, k->options->min_warm, &e);
	if (!p) {
		refuse(fd, ERR_NOT_FOUND, "no such pool");
		return;
	}
	p->last_used_ms = clock_now_ms();
	if (give(k, p, fd)) {
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
	struct pool *p;
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
	p = find_pool(k, f->bytes + sizeof(body), f->len - sizeof(body));
	if (!p)
		p = add_pool(k, f->bytes + sizeof(body), f->len - sizeof(body), body.count, &e);
	if (!p) {
		control_fail(fd, &e);
		return;
	}
	p->min_warm = body.count;
	p->last_used_ms = clock_now_ms();
	control_answer(fd, NULL, 0);
}

/* ---- status ---- */

/* A pool's row in the status. */
struct figures {
	const char *agent, *image, *profile;
	bool has_places;
	unsigned warm, building, in_use;
	const char *why; /* why it has fewer than min_warm; NULL: it has enough */
};

static const char *find_reason(const struct pool_daemon *k, const struct pool *p, unsigned building)
{
	if (p->waiting_count - building >= p->min_warm)
		return NULL;
	if (k->is_short)
		return "memory is short";
	if (p->trouble[0])
		return p->trouble;
	return building || count_waiting(k, false) < DAEMON_WARM_MAX
		       ? "being filled"
		       : "the most that may wait are there";
}

static struct figures look_at(const struct pool_daemon *k, const struct pool *p)
{
	struct figures f = { .agent = mode_get(p->policy.mode)->name,
			     .image = p->policy.image,
			     .profile = profile_get(p->policy.profile)->name,
			     .has_places = strcmp(p->parts.places, "yes") == 0 };

	for (unsigned i = 0; i < p->waiting_count; i++)
		*(p->waiting[i].init_fd >= 0 ? &f.warm : &f.building) += 1;
	for (unsigned i = 0; i < k->in_use; i++)
		f.in_use += k->claimed[i].pool == p;
	f.why = find_reason(k, p, f.building);
	return f;
}

static void format_pool(struct json *j, const struct pool_daemon *k, const struct pool *p)
{
	const struct figures f = look_at(k, p);

	json_open_object(j, NULL);
	json_add_text(j, "image", f.image);
	json_add_text(j, "profile", f.profile);
	json_add_text(j, "mode", f.agent);
	json_add_bool(j, "workspace", f.has_places);
	json_add_number(j, "warm", f.warm);
	json_add_number(j, "building", f.building);
	json_add_number(j, "min_warm", p->min_warm);
	json_add_number(j, "in_use", f.in_use);
	json_add_number(j, "hits", (int64_t)p->hits);
	json_add_number(j, "misses", (int64_t)p->misses);
	json_add_text(j, "trouble", p->trouble[0] ? p->trouble : NULL);
	json_add_text(j, "why_not_full", f.why);
	json_close_object(j);
}

static void format_json(const struct pool_daemon *k, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_number(&j, "pid", getpid());
	json_add_text(&j, "build", buildid_get());
	json_add_number(&j, "uptime_ms", (int64_t)(clock_now_ms() - k->started_ms));
	json_add_number(&j, "in_use", k->in_use);
	json_add_number(&j, "given", (int64_t)k->given);
	json_add_number(&j, "strangers", (int64_t)k->strangers);
	json_add_bool(&j, "memory_short", k->is_short);
	json_open_array(&j, "pools");
	for (unsigned i = 0; i < k->pool_count; i++)
		format_pool(&j, k, k->pools[i]);
	json_close_array(&j);
	json_close_object(&j);
}

static void add_row(struct table *t, const struct pool_daemon *k, const struct pool *p)
{
	const struct figures f = look_at(k, p);
	cleanup_free char *agent = mem_format("%s%s", f.agent, f.has_places ? " + workspace" : "");
	cleanup_free char *warm = mem_format("%u of %u", f.warm, p->min_warm);
	cleanup_free char *in_use = mem_format("%u", f.in_use);
	cleanup_free char *hits = mem_format("%" PRIu64, p->hits);
	cleanup_free char *misses = mem_format("%" PRIu64, p->misses);

	table_add_row(t, (const char *const[]){ agent, f.image, f.profile, warm, in_use, hits,
						misses, f.why ? f.why : "-" });
}

/* Formats a line about the daemon and a table of its pools. */
static void format_table(const struct pool_daemon *k, struct buf *out)
{
	CLEANUP(table_freep) struct table *t = table_new(8);
	char uptime[PARSE_FORMAT_MAX_BYTES];

	buf_addf(out, "pid %d, build %s, up %s, %u in use, %" PRIu64 " given\n", (int)getpid(),
		 buildid_get(),
		 parse_format_duration((clock_now_ms() - k->started_ms) / 1000 * 1000, uptime),
		 k->in_use, k->given);
	table_add_row(t, (const char *const[]){ "AGENT", "IMAGE", "PROFILE", "WARM", "IN USE",
						"HITS", "MISSES", "WHY NOT FULL" });
	for (unsigned i = 0; i < k->pool_count; i++)
		add_row(t, k, k->pools[i]);
	table_format(t, out);
	if (k->strangers)
		buf_addf(out,
			 "%" PRIu64
			 " runs had other limits, groups, priorities or cgroups than the "
			 "daemon, and built their own\n",
			 k->strangers);
}

static void on_status(struct pool_daemon *k, int fd, const struct frame *f)
{
	cleanup_buf struct buf out;

	buf_init(&out, STATUS_MAX_BYTES);
	if (f->len == strlen(CLAIM_STATUS_TABLE) &&
	    memcmp(f->bytes, CLAIM_STATUS_TABLE, f->len) == 0)
		format_table(k, &out);
	else
		format_json(k, &out);
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

/* ---- messages of sandboxes ---- */

static void on_channel(struct pool_daemon *k, struct pool *p, unsigned index)
{
	CLEANUP(frame_done) struct frame f = { 0 };
	int r = frame_receive(p->waiting[index].channel_fd, FRAME_NO_WAIT, &f);
	struct err e;

	if (frame_may_pass(r))
		return;
	if (r == 1 && f.kind == CLAIM_READY && (f.fd_count == 1 || f.fd_count == 2) &&
	    f.len == sizeof(p->waiting[index].answer)) {
		memcpy(&p->waiting[index].answer, f.bytes, f.len);
		p->waiting[index].init_fd = take_fd(&f.fds[0]);
		if (f.fd_count == 2)
			p->waiting[index].owner_ns_fd = take_fd(&f.fds[1]);
		p->trouble[0] = '\0';
		return;
	}
	if (r == 1 && f.kind == CONTROL_FAILED && f.len == sizeof(e)) {
		memcpy(&e, f.bytes, sizeof(e));
		err_sanitize(&e);
		(void)snprintf(p->trouble, sizeof(p->trouble), "%s", e.msg);
	}
	logfile_say(&k->log, "a sandbox of image %s has gone before it was used: %s",
		    p->policy.image, p->trouble[0] ? p->trouble : "it gave no reason");
	p->not_before_ms = clock_now_ms() + RETRY_MS;
	drop_waiting(p, index);
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
	for (unsigned i = 0; i < k->pool_count; i++)
		for (unsigned j = 0; j < k->pools[i]->waiting_count; j++)
			polled[count++] = (struct pollfd){ .fd = k->pools[i]->waiting[j].channel_fd,
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
	for (unsigned i = 0; i < k->pool_count; i++)
		for (unsigned j = k->pools[i]->waiting_count; j-- > 0;)
			if (is_polled(polled, SLOT_FIRST + clients, count,
				      k->pools[i]->waiting[j].channel_fd))
				on_channel(k, k->pools[i], j);
	if (polled[SLOT_SIGNAL].revents) {
		struct signalfd_siginfo info;

		while (read(k->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			k->is_over = k->is_over || info.ssi_signo != SIGCHLD;
	}
	reap(k);
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
		mem_alloc((SLOT_FIRST + DAEMON_CLIENTS_MAX + DAEMON_WARM_MAX + BUILDING_MAX) *
			  sizeof(*polled));
	uint64_t next_age_ms = 0, next_sweep_ms = 0;

	while (!k->is_over) {
		if (clock_now_ms() >= next_sweep_ms) {
			sweep(k);
			next_sweep_ms = clock_now_ms() + DAEMON_SWEEP_MS;
		}
		if (clock_now_ms() >= next_age_ms) {
			age(k);
			next_age_ms = clock_now_ms() + TICK_MS;
		}
		turn(k, polled, fill_pools(k));
	}
	free(polled);
}

/* ---- start and end ---- */

static int take_lock(struct pool_daemon *k, struct err *e)
{
	cleanup_free char *path = NULL;

	if (statedir_make_path(k->options->ak, LOCK_FILE, &path, e) < 0)
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

static void keeper_done(struct pool_daemon *k)
{
	logfile_done(&k->log);
	cleanup_closep(&k->dir_fd);
	for (unsigned i = 0; i < k->pool_count; i++)
		pool_free(k->pools[i]);
	for (unsigned i = 0; i < k->client_count; i++)
		(void)close(k->clients[i].fd);
	free(k->claimed);
	buf_done(&k->surroundings);
	buf_done(&k->cgroups);
	cleanup_closep(&k->listen_fd);
	cleanup_closep(&k->signal_fd);
	cleanup_closep(&k->lock_fd);
}

int daemon_serve(const struct daemon_options *o, struct err *e)
{
	CLEANUP(keeper_done)
	struct pool_daemon k = { .options = o,
				 .lock_fd = -1,
				 .listen_fd = -1,
				 .signal_fd = -1,
				 .dir_fd = -1,
				 .log.fd = -1,
				 .started_ms = clock_now_ms(),
				 .processor_count = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) };

	k.building_max = k.processor_count < 2 * BUILDING_MAX ? 1 : BUILDING_MAX;
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
		struct pool *p =
			add_pool(&k, o->pools[i].key, o->pools[i].key_len, o->pools[i].min_warm, e);

		if (!p)
			return -1;
		p->is_permanent = true;
	}
	if (o->ready_fd >= 0)
		(void)close(o->ready_fd);
	open_log(&k);
	logfile_say(&k.log, "started: build %s, %u pools", buildid_get(), k.pool_count);
	serve(&k);
	logfile_say(&k.log, "ended: %" PRIu64 " sandboxes were given away", k.given);
	unlink_socket(&k);
	return 0;
}

/* ---- the client's side ---- */

/* Explains errors of a daemon with another protocol; a refused build explains itself. */
static int explain(struct err *e)
{
	bool is_unheard = e->code == ERR_SYSTEM && e->sys == 0; /* an older daemon only closes */

	if (is_unheard || (e->code == ERR_UNSUPPORTED && !strstr(e->msg, "daemon restart")))
		(void)err_set(e, ERR_UNSUPPORTED,
			      "the daemon is of another build of agentkernel, and no run uses it "
			      "('agentkernel daemon restart' renews it)");
	return -1;
}

int daemon_ask_status(const struct ak *ak, bool is_json, char **ret_text, struct err *e)
{
	const char *form = is_json ? "" : CLAIM_STATUS_TABLE;
	CLEANUP(frame_done) struct frame answer = { 0 };
	cleanup_fd int fd = -1;

	if (claim_connect(ak, &fd, e) < 0 ||
	    control_ask(fd, CLAIM_STATUS, form, strlen(form), &answer, e) < 0)
		return explain(e);
	*ret_text = mem_dup_bytes(answer.bytes, answer.len);
	return 0;
}

/* Waits until the daemon's lock is free. */
static int await_end(const struct ak *ak, unsigned max_ms, struct err *e)
{
	const struct timespec pause = { .tv_nsec = END_LOOK_MS * 1000000l };
	uint64_t end_ms = clock_now_ms() + max_ms;
	cleanup_free char *path = NULL;
	cleanup_fd int fd = -1;

	if (statedir_path(ak, LOCK_FILE, &path, e) < 0)
		return -1;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (clock_now_ms() >= end_ms)
			return err_set(e, ERR_TIMEOUT, "the daemon does not end");
		(void)nanosleep(&pause, NULL);
	}
	return 0;
}

int daemon_ask_stop(const struct ak *ak, struct err *e)
{
	cleanup_fd int fd = -1;
	struct frame ignored;
	int r;

	if (claim_connect(ak, &fd, e) < 0)
		return -1;
	r = frame_send(fd, CLAIM_STOP, NULL, 0, NULL, 0);
	if (r < 0)
		return err_sys(e, -r, "ask the daemon");
	while (frame_receive(fd, FRAME_WAIT, &ignored) == 1)
		frame_done(&ignored);
	if (await_end(ak, END_SOON_MS, e) == 0)
		return 0;
	/* another build did not understand the request, but handles SIGTERM */
	return control_terminate(fd, e) < 0 ? -1 : await_end(ak, END_MAX_MS, e);
}

int daemon_ask_prewarm(const struct ak *ak, const struct policy *p, const struct images *image,
		       unsigned count, struct err *e)
{
	const struct claim_count body = { count };
	cleanup_fd int fd = -1;
	cleanup_buf struct buf request;

	buf_init(&request, CLAIM_KEY_MAX_BYTES);
	buf_add(&request, &body, sizeof(body));
	if (claim_find_obstacle(p))
		return err_set(e, ERR_UNSUPPORTED, "such a sandbox cannot wait ready: %s",
			       claim_find_obstacle(p));
	if (!claim_format_key(p, image, &request))
		return err_set(e, ERR_UNSUPPORTED,
			       "the daemon cannot know whether its sandboxes are as this process's "
			       "would be: a filter of system calls restricts this process");
	if (claim_connect(ak, &fd, e) < 0)
		return -1;
	return control_do(fd, CLAIM_PREWARM, request.bytes, request.len, e) < 0 ? explain(e) : 0;
}
