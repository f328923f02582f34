/*
 * pools - sandboxes that wait ready; see pools.h.
 *
 * Theory of operation. Pools are filled when no command that was just handed out is starting or
 * ending (put_off_ms), so that building does not slow those down. A pool whose sandbox could not be
 * built waits RETRY_MS before the next try. Channels are closed to end a waiting sandbox; the
 * channel of a claimed one is its client's.
 *
 * Hostile input: none; the children run our code, before any command of a sandbox has started.
 */
#include "pool/pools.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/logfile.h"
#include "base/mem.h"
#include "named/control.h"
#include "pool/warm.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAUSE_MS 30u   /* for which a claimed sandbox that runs puts building off */
#define BUSY_MS 5u     /* until a busy machine is looked at again */
#define RETRY_MS 5000u /* after a sandbox could not be built */

void pools_init(struct pools *all, const struct ak *ak, struct logfile *log)
{
	*all = (struct pools){ .ak = ak,
			       .log = log,
			       .processor_count = (unsigned)sysconf(_SC_NPROCESSORS_ONLN) };
	all->building_max = all->processor_count < 2 * POOLS_BUILDING_MAX ? 1 : POOLS_BUILDING_MAX;
}

static void drop_waiting(struct pools_pool *p, unsigned index)
{
	(void)close(p->waiting[index]
			    .channel_fd); /* its process ends, unless a client has the socket */
	cleanup_closep(&p->waiting[index].init_fd);
	cleanup_closep(&p->waiting[index].owner_ns_fd);
	p->waiting[index] = p->waiting[--p->waiting_count];
}

static void pool_free(struct pools_pool *p)
{
	while (p->waiting_count > 0)
		drop_waiting(p, p->waiting_count - 1);
	free(p->waiting);
	policy_done(&p->policy);
	free(p->key);
	free(p);
}

void pools_done(struct pools *all)
{
	for (unsigned i = 0; i < all->count; i++)
		pool_free(all->list[i]);
	all->count = 0;
	free(all->claimed);
	all->claimed = NULL;
}

/* Drops a pool; claimed sandboxes of it keep running. */
static void drop_pool(struct pools *all, unsigned index)
{
	for (unsigned i = 0; i < all->in_use; i++)
		if (all->claimed[i].pool == all->list[index])
			all->claimed[i].pool = NULL;
	pool_free(all->list[index]);
	all->list[index] = all->list[--all->count];
}

struct pools_pool *pools_find(struct pools *all, const char *key, size_t len)
{
	for (unsigned i = 0; i < all->count; i++)
		if (all->list[i]->key_len == len && memcmp(all->list[i]->key, key, len) == 0)
			return all->list[i];
	return NULL;
}

/* Drops the least recently used pool if the table is full. */
static bool make_room(struct pools *all)
{
	unsigned oldest = POOLS_MAX;

	if (all->count < POOLS_MAX)
		return true;
	for (unsigned i = 0; i < all->count; i++)
		if (!all->list[i]->is_permanent &&
		    (oldest == POOLS_MAX ||
		     all->list[i]->last_used_ms < all->list[oldest]->last_used_ms))
			oldest = i;
	if (oldest == POOLS_MAX)
		return false;
	drop_pool(all, oldest);
	return true;
}

struct pools_pool *pools_add(struct pools *all, const char *key, size_t len, unsigned min_warm,
			     struct err *e)
{
	struct pools_pool *p;

	if (len > CLAIM_KEY_MAX_BYTES || !make_room(all)) {
		(void)err_set(e, ERR_LIMIT, "there are %u pools already", POOLS_MAX);
		return NULL;
	}
	p = mem_alloc(sizeof(*p));
	*p = (struct pools_pool){ .min_warm = min_warm, .last_used_ms = clock_now_ms() };
	p->key = mem_dup_bytes(key, len);
	p->key_len = len;
	if (claim_parse_key(p->key, len, &p->policy, &p->parts, e) < 0) {
		pool_free(p);
		return NULL;
	}
	all->list[all->count++] = p;
	return p;
}

/* ---- filling ---- */

unsigned pools_count_waiting(const struct pools *all, bool is_building_only)
{
	unsigned count = 0;

	for (unsigned i = 0; i < all->count; i++)
		for (unsigned j = 0; j < all->list[i]->waiting_count; j++)
			count += !is_building_only || all->list[i]->waiting[j].init_fd < 0;
	return count;
}

/* Runs in the child: keeps only the channel open. */
static _Noreturn void be_warm(struct pools *all, const struct pools_pool *p, int channel_fd)
{
	const struct warm_options o = { .ak = all->ak,
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

static void start_one(struct pools *all, struct pools_pool *p)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	pid = fork();
	if (pid == 0)
		be_warm(all, p, ends[1]);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return;
	}
	p->waiting = mem_grow(p->waiting, p->waiting_count + 1, sizeof(*p->waiting));
	p->waiting[p->waiting_count++] = (struct pools_waiting){ .pid = pid,
								 .channel_fd = ends[0],
								 .init_fd = -1,
								 .owner_ns_fd = -1,
								 .since_ms = clock_now_ms() };
}

/* "0.20 0.18 0.12 3/345 8765": three are runnable, and we are one of them. */
static bool has_idle_processor(const struct pools *all)
{
	char line[128];
	const char *slash;

	if (file_read_line(AT_FDCWD, "/proc/loadavg", line, sizeof(line)) < 0)
		return true;
	slash = strchr(line, '/');
	while (slash && slash > line && slash[-1] != ' ')
		slash--;
	return !slash || strtoul(slash, NULL, 10) <= all->processor_count;
}

static bool wants_more(const struct pools_pool *p, uint64_t now_ms)
{
	return p->waiting_count < p->min_warm && now_ms >= p->not_before_ms;
}

/*
 * Building a sandbox keeps a processor busy for as long as a short command takes with its start and
 * end, and delays that command's mounts, for which the kernel waits until all processors have
 * scheduled. So it is put off while a sandbox that was claimed less than PAUSE_MS ago still runs;
 * returns for how long.
 */
static unsigned pause_ms(const struct pools *all, uint64_t now_ms)
{
	uint64_t longest_ms = 0;

	for (unsigned i = 0; i < all->in_use; i++) {
		uint64_t end_ms = all->claimed[i].since_ms + PAUSE_MS;

		if (end_ms > now_ms && end_ms - now_ms > longest_ms)
			longest_ms = end_ms - now_ms;
	}
	return (unsigned)longest_ms;
}

/* For how long building one for this pool is put off. An empty pool only waits for an idle
 * processor: the next claim would find nothing. */
static unsigned put_off_ms(const struct pools *all, const struct pools_pool *p, uint64_t now_ms)
{
	unsigned ms = pause_ms(all, now_ms);

	if (ms == 0 || p->waiting_count > 0)
		return ms;
	return has_idle_processor(all) ? 0 : MIN(ms, BUSY_MS);
}

static bool has_room(const struct pools *all)
{
	return !all->is_short && pools_count_waiting(all, true) < all->building_max &&
	       pools_count_waiting(all, false) < POOLS_WARM_MAX;
}

/* Returns when to look again, POOLS_LOOK_MS at most. */
unsigned pools_fill(struct pools *all)
{
	uint64_t now_ms = clock_now_ms();
	unsigned next_ms = POOLS_LOOK_MS;

	for (unsigned i = 0; i < all->count; i++)
		while (has_room(all) && wants_more(all->list[i], now_ms)) {
			unsigned ms = put_off_ms(all, all->list[i], now_ms);

			next_ms = ms > 0 ? MIN(ms, next_ms) : next_ms;
			if (ms > 0)
				break;
			start_one(all, all->list[i]);
		}
	return next_ms;
}

/* ---- ageing ---- */

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
	       strtoull(total + strlen("MemTotal:"), NULL, 10) * POOLS_FREE_MIN_PERCENT;
}

void pools_age(struct pools *all)
{
	uint64_t now_ms = clock_now_ms();
	bool was_short = all->is_short;

	all->is_short = is_memory_short();
	if (all->is_short != was_short)
		logfile_say(all->log, all->is_short ? "memory is short: no sandbox waits any more"
						    : "there is memory again");
	for (unsigned i = all->count; i-- > 0;) {
		struct pools_pool *p = all->list[i];

		for (unsigned j = p->waiting_count; j-- > 0;)
			if (all->is_short || now_ms - p->waiting[j].since_ms > POOLS_WARM_AGE_MS)
				drop_waiting(p, j);
		if (p->is_permanent || now_ms - p->last_used_ms < POOLS_IDLE_MS)
			continue;
		drop_pool(all, i);
	}
}

void pools_reap(struct pools *all)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (unsigned i = 0; i < all->in_use; i++)
			if (all->claimed[i].pid == pid) {
				all->claimed[i] = all->claimed[--all->in_use];
				break;
			}
}

/* ---- sandboxes that are ready ---- */

void pools_on_channel(struct pools *all, struct pools_pool *p, unsigned index)
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
	logfile_say(all->log, "a sandbox of image %s has gone before it was used: %s",
		    p->policy.image, p->trouble[0] ? p->trouble : "it gave no reason");
	p->not_before_ms = clock_now_ms() + RETRY_MS;
	drop_waiting(p, index);
}

/* Passes the first sandbox that is ready. The loop drops one that has died meanwhile. */
bool pools_give(struct pools *all, struct pools_pool *p, int client_fd)
{
	for (unsigned i = 0; i < p->waiting_count; i++) {
		const struct pools_waiting w = p->waiting[i];
		const int fds[] = { w.channel_fd, w.init_fd, w.owner_ns_fd };

		if (w.init_fd < 0)
			continue;
		if (frame_send(client_fd, CONTROL_OK, &w.answer, sizeof(w.answer), fds,
			       w.owner_ns_fd >= 0 ? 3 : 2) < 0)
			return true; /* the client is gone, or notices when its socket is closed */
		drop_waiting(p, i);
		all->claimed = mem_grow(all->claimed, all->in_use + 1, sizeof(*all->claimed));
		all->claimed[all->in_use++] = (struct pools_claimed){ w.pid, p, clock_now_ms() };
		all->given++;
		return true;
	}
	return false;
}
