/*
 * resolve - resolves names to addresses and records; see resolve.h.
 *
 * Theory of operation. An entry is a name and a type, addresses or a type of records: either
 * waiting for c-ares, or answered until it expires. Entries are found by hash and are in a list,
 * least recently used first; at the maximum of its kind the first entry without waiters is dropped.
 * Each kind has its own maximum, so a flood of queries for records, which take more memory, evicts
 * no address. c-ares tells us which descriptors to watch (on_wanted) and when to call it
 * (schedule).
 *
 * resolv.conf is read when the channel is created. A laptop that changes networks rewrites it, so
 * at most once a second its modification time is checked, and a changed file means a new channel.
 *
 * Hostile input: answers of name servers. c-ares parses addresses, net/dnsrecord parses records
 * from the bytes of the reply; we use only addresses, numbers and the sets that net/dnsrecord
 * built.
 */
#include "net/resolve.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "net/dnsrecord.h"
#include "net/throttle.h"

#include <ares.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <string.h>
#include <sys/stat.h>

#define BUCKETS 512u
#define SOCKETS_MAX 32u
#define TRY_TIMEOUT_MS 2000
#define TRIES 2
#define RESOLV_CONF "/etc/resolv.conf"
#define LOOK_AGAIN_MS 1000u
#define CLASS_IN 1

struct resolve_entry {
	char name[DOMAIN_MAX_BYTES + 1];
	uint16_t type; /* or RESOLVE_ADDRESSES */
	bool is_pending;
	uint64_t until_ms;
	struct resolve_answer answer;
	struct dnsrecord_set *records; /* owned; answer.records borrows it */
	struct resolve *resolve;
	TAILQ_HEAD(, resolve_waiter) waiters;
	LIST_ENTRY(resolve_entry) in_bucket;
	TAILQ_ENTRY(resolve_entry) by_age;
};

struct watched {
	struct event event;
	struct resolve *resolve;
	ares_socket_t fd; /* ARES_SOCKET_BAD: free */
};

struct resolve {
	struct event_base *base;
	ares_channel channel;
	struct timespec conf_time;
	uint64_t looked_ms;
	struct event timer;
	struct watched watched[SOCKETS_MAX];
	struct throttle questions;
	unsigned address_count, record_count, pending;
	LIST_HEAD(, resolve_entry) buckets[BUCKETS];
	TAILQ_HEAD(, resolve_entry) entries;
};

/* ---- driving c-ares ---- */

static void schedule(struct resolve *r)
{
	struct timeval longest = { .tv_sec = TRY_TIMEOUT_MS / 1000 }, next;

	if (r->pending == 0)
		(void)evtimer_del(&r->timer);
	else
		(void)evtimer_add(&r->timer, ares_timeout(r->channel, &longest, &next));
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct resolve *r = context;

	(void)fd;
	(void)what;
	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	schedule(r);
}

static void on_socket(evutil_socket_t fd, short what, void *context)
{
	struct watched *w = context;
	struct resolve *r = w->resolve;

	ares_process_fd(r->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	schedule(r);
}

/* If there are more sockets than slots, their queries time out. */
static void on_wanted(void *context, ares_socket_t fd, int readable, int writable)
{
	struct resolve *r = context;
	struct watched *free_place = NULL, *w = NULL;
	short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));

	for (unsigned i = 0; i < SOCKETS_MAX; i++) {
		if (r->watched[i].fd == fd)
			w = &r->watched[i];
		else if (r->watched[i].fd == ARES_SOCKET_BAD)
			free_place = &r->watched[i];
	}
	if (w) {
		(void)event_del(&w->event);
		w->fd = ARES_SOCKET_BAD;
	}
	w = w ? w : free_place;
	if (!what || !w)
		return;
	w->fd = fd;
	w->resolve = r;
	(void)event_assign(&w->event, r->base, fd, (short)(what | EV_PERSIST), on_socket, w);
	(void)event_add(&w->event, NULL);
}

static int open_channel(struct resolve *r, struct err *e)
{
	struct ares_options o = {
		.timeout = TRY_TIMEOUT_MS,
		.tries = TRIES,
		.ndomains = 0,
		.sock_state_cb = on_wanted,
		.sock_state_cb_data = r,
	};
	struct stat st;
	int code = ares_init_options(&r->channel, &o,
				     ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_DOMAINS |
					     ARES_OPT_SOCK_STATE_CB);

	if (code != ARES_SUCCESS)
		return err_set(e, ERR_SYSTEM, "start the resolver: %s", ares_strerror(code));
	r->conf_time = stat(RESOLV_CONF, &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
	return 0;
}

static void renew_channel_if_changed(struct resolve *r)
{
	uint64_t now = clock_now_ms();
	ares_channel old = r->channel;
	struct stat st;
	struct err ignored;

	if (r->pending > 0 || now - r->looked_ms < LOOK_AGAIN_MS)
		return;
	r->looked_ms = now;
	if (stat(RESOLV_CONF, &st) < 0 || (st.st_mtim.tv_sec == r->conf_time.tv_sec &&
					   st.st_mtim.tv_nsec == r->conf_time.tv_nsec))
		return;
	if (open_channel(r, &ignored) < 0)
		r->channel = old;
	else
		ares_destroy(old);
}

int resolve_new(struct event_base *base, struct resolve **ret, struct err *e)
{
	struct resolve *r = mem_alloc(sizeof(*r));

	r->base = base;
	r->looked_ms = clock_now_ms();
	TAILQ_INIT(&r->entries);
	for (unsigned i = 0; i < SOCKETS_MAX; i++)
		r->watched[i].fd = ARES_SOCKET_BAD;
	throttle_init(&r->questions, RESOLVE_QUESTIONS_PER_S, RESOLVE_QUESTIONS_BURST,
		      clock_now_ms());
	(void)evtimer_assign(&r->timer, base, on_timer, r);
	if (open_channel(r, e) < 0) {
		free(r);
		return -1;
	}
	*ret = r;
	return 0;
}

/* ---- entries ---- */

static unsigned bucket_of(const char *name, uint16_t type)
{
	return hash_text(type, name) % BUCKETS;
}

static struct resolve_entry *find(struct resolve *r, const char *name, uint16_t type)
{
	struct resolve_entry *entry;

	LIST_FOREACH(entry, &r->buckets[bucket_of(name, type)], in_bucket)
	if (entry->type == type && strcmp(entry->name, name) == 0)
		return entry;
	return NULL;
}

/* The number of entries of the same kind as `type`. */
static unsigned *count_of(struct resolve *r, uint16_t type)
{
	return type == RESOLVE_ADDRESSES ? &r->address_count : &r->record_count;
}

static void drop(struct resolve_entry *entry)
{
	LIST_REMOVE(entry, in_bucket);
	TAILQ_REMOVE(&entry->resolve->entries, entry, by_age);
	(*count_of(entry->resolve, entry->type))--;
	free(entry->records);
	free(entry);
}

/* Drops the oldest entry of the same kind as `type`. */
static void drop_oldest(struct resolve *r, uint16_t type)
{
	struct resolve_entry *entry;

	TAILQ_FOREACH(entry, &r->entries, by_age)
	{
		if (entry->is_pending || count_of(r, entry->type) != count_of(r, type))
			continue;
		drop(entry);
		return;
	}
}

static struct resolve_entry *add(struct resolve *r, const char *name, uint16_t type)
{
	struct resolve_entry *entry = mem_alloc(sizeof(*entry));
	unsigned max = type == RESOLVE_ADDRESSES ? RESOLVE_ENTRIES_MAX : RESOLVE_RECORDS_MAX;

	if (*count_of(r, type) >= max)
		drop_oldest(r, type);
	memcpy(entry->name, name, strlen(name) + 1);
	entry->type = type;
	entry->resolve = r;
	TAILQ_INIT(&entry->waiters);
	LIST_INSERT_HEAD(&r->buckets[bucket_of(name, type)], entry, in_bucket);
	TAILQ_INSERT_TAIL(&r->entries, entry, by_age);
	(*count_of(r, type))++;
	return entry;
}

static bool is_fresh(const struct resolve_entry *entry)
{
	return !entry->is_pending && clock_now_ms() < entry->until_ms;
}

bool resolve_is_known(struct resolve *r, const char *name, uint16_t type)
{
	struct resolve_entry *entry = find(r, name, type);

	return entry && (entry->is_pending || is_fresh(entry));
}

/* ---- querying ---- */

static uint32_t clamp_ttl(uint32_t ttl_s)
{
	if (ttl_s < RESOLVE_KEEP_MIN_S)
		return RESOLVE_KEEP_MIN_S;
	return ttl_s < RESOLVE_KEEP_MAX_S ? ttl_s : RESOLVE_KEEP_MAX_S;
}

static uint32_t take_addresses(const struct ares_addrinfo *info, struct resolve_answer *a)
{
	uint32_t ttl_s = RESOLVE_KEEP_MAX_S;
	uint16_t port;

	for (const struct ares_addrinfo_node *n = info->nodes; n; n = n->ai_next) {
		if (n->ai_ttl >= 0 && (uint32_t)n->ai_ttl < ttl_s)
			ttl_s = (uint32_t)n->ai_ttl;
		if (a->count < RESOLVE_ADDRESSES_MAX &&
		    address_from_sockaddr(n->ai_addr, &a->list[a->count], &port))
			a->count++;
	}
	return clamp_ttl(ttl_s);
}

static void settle(struct resolve_entry *entry)
{
	struct resolve_waiter *w;

	/* is_pending stays set, so that a waiter that asks again cannot drop the entry */
	while ((w = TAILQ_FIRST(&entry->waiters))) {
		struct resolve_answer answer = entry->answer;

		resolve_forget(w);
		w->fn(w->context, &answer);
	}
	entry->is_pending = false;
}

/* Status if nothing was found. */
static enum resolve_status status_of(int code)
{
	switch (code) {
	case ARES_ENODATA:
		return RESOLVE_NO_DATA;
	case ARES_ENOTFOUND:
		return RESOLVE_NOT_FOUND;
	default:
		return RESOLVE_FAILED;
	}
}

/* Handles the status from c-ares. Returns false if the entry is being destroyed. */
static bool begin_answer(struct resolve_entry *entry, int code)
{
	if (code == ARES_EDESTRUCTION) {
		entry->is_pending = false;
		return false;
	}
	entry->resolve->pending--;
	entry->answer = (struct resolve_answer){ .status = status_of(code) };
	return true;
}

static void end_answer(struct resolve_entry *entry, uint32_t keep_s)
{
	entry->until_ms = clock_now_ms() + keep_s * 1000;
	settle(entry);
}

static void on_addresses(void *context, int code, int timeouts, struct ares_addrinfo *info)
{
	struct resolve_entry *entry = context;
	uint32_t keep_s = RESOLVE_KEEP_FAILURE_S;

	(void)timeouts;
	if (!begin_answer(entry, code))
		return;
	if (code == ARES_SUCCESS && info) {
		keep_s = take_addresses(info, &entry->answer);
		entry->answer.status = entry->answer.count ? RESOLVE_FOUND : RESOLVE_NO_DATA;
	}
	if (info)
		ares_freeaddrinfo(info);
	end_answer(entry, keep_s);
}

/* Returns how long to keep the answer. */
static uint32_t take_records(struct resolve_entry *entry, const uint8_t *reply, size_t len)
{
	struct resolve_answer *a = &entry->answer;

	if (!entry->records)
		entry->records = mem_alloc(sizeof(*entry->records));
	if (!dnsrecord_parse(reply, len, entry->name, entry->type, entry->records)) {
		a->status = RESOLVE_FAILED;
		return RESOLVE_KEEP_FAILURE_S;
	}
	a->ttl_s = clamp_ttl(entry->records->ttl_s);
	a->status = entry->records->count ? RESOLVE_FOUND : RESOLVE_NO_DATA;
	a->records = entry->records->count ? entry->records : NULL;
	return a->ttl_s;
}

static void on_records(void *context, int code, int timeouts, unsigned char *reply, int len)
{
	struct resolve_entry *entry = context;
	uint32_t keep_s = RESOLVE_KEEP_FAILURE_S;

	(void)timeouts;
	if (!begin_answer(entry, code))
		return;
	if (code == ARES_SUCCESS && reply)
		keep_s = take_records(entry, reply, (size_t)len);
	end_answer(entry, keep_s);
}

static void ask_servers(struct resolve *r, struct resolve_entry *entry)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
						   .ai_socktype = SOCK_STREAM };

	renew_channel_if_changed(r);
	throttle_spend(&r->questions, 1);
	entry->is_pending = true;
	r->pending++;
	if (entry->type == RESOLVE_ADDRESSES)
		ares_getaddrinfo(r->channel, entry->name, NULL, &hints, on_addresses, entry);
	else
		ares_query(r->channel, entry->name, CLASS_IN, entry->type, on_records, entry);
	schedule(r);
}

void resolve_ask(struct resolve *r, const char *name, uint16_t type, resolve_fn *fn, void *context,
		 struct resolve_waiter *waiter)
{
	static const struct resolve_answer limited = { .status = RESOLVE_LIMITED };
	struct resolve_entry *entry = find(r, name, type);

	*waiter = (struct resolve_waiter){ .fn = fn, .context = context };
	if (entry && is_fresh(entry)) {
		struct resolve_answer answer = entry->answer;

		TAILQ_REMOVE(&r->entries, entry, by_age);
		TAILQ_INSERT_TAIL(&r->entries, entry, by_age);
		fn(context, &answer);
		return;
	}
	if (!(entry && entry->is_pending) &&
	    (r->pending >= RESOLVE_PENDING_MAX ||
	     throttle_available(&r->questions, clock_now_ms()) == 0)) {
		fn(context, &limited);
		return;
	}
	if (!entry)
		entry = add(r, name, type);
	waiter->entry = entry;
	TAILQ_INSERT_TAIL(&entry->waiters, waiter, link);
	if (!entry->is_pending)
		ask_servers(r, entry);
}

void resolve_forget(struct resolve_waiter *waiter)
{
	if (!waiter->entry)
		return;
	TAILQ_REMOVE(&waiter->entry->waiters, waiter, link);
	waiter->entry = NULL;
}

void resolve_free(struct resolve *r)
{
	if (!r)
		return;
	ares_destroy(r->channel);
	(void)evtimer_del(&r->timer);
	while (!TAILQ_EMPTY(&r->entries)) /* drop() removes it: NOLINTNEXTLINE(*Malloc) */
		drop(TAILQ_FIRST(&r->entries));
	free(r);
}
