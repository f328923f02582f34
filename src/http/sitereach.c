/*
 * sitereach - sandboxes that this server relays connections to; see sitereach.h.
 *
 * Theory of operation. A sandbox is in one of these states: LOOKING (a worker looks it up), KNOWN
 * (looked up, not connected), REACHING (a worker wakes it and gets its sockets), REACHED. In
 * REACHED it is held (the supervisor keeps it awake), or HOLD was sent and not answered, or it was
 * let go of. Requests wait in one list and are served again after each change of the state
 * (go_on()). A request that is refused although the sandbox is there makes the worker wait once
 * more for the service behind the port. If the supervisor's connection ends, the sandbox has ended
 * or its access has changed: the entry is taken out of the table, and requests that use it keep it
 * until they are done.
 *
 * Hostile input: the sandbox's init and supervisor speak base/frame.h's messages, whose sizes are
 * checked; a connection's bytes are siterelay's.
 */
#include "http/sitereach.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dialin.h"
#include "base/errcode.h"
#include "base/fdpass.h"
#include "base/hash.h"
#include "base/mem.h"
#include "http/api.h"
#include "http/webcall.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define BUCKETS 1024u
#define PORTS_MAX 64u /* public ones, as policy/publish.h has */

enum state { STATE_LOOKING, STATE_KNOWN, STATE_REACHING, STATE_REACHED, STATE_GONE };
enum hold { HOLD_NONE, HOLD_ASKED, HOLD_YES };
enum wait_state { WAIT_NONE, WAIT_LOOK, WAIT_QUEUED, WAIT_ANSWER, WAIT_CONNECT };

struct idle {
	struct sitereach *reach;
	struct bufferevent *connection;
	uint32_t port;
	struct idle *next, **link;
};

struct sitereach {
	struct sitereach_list *list;
	char name[SITE_NAME_MAX_BYTES + 1];
	const char *scope; /* whose sandboxes were looked at; NULL: all */
	char id[SLOTS_SANDBOX_MAX_BYTES], *owner;
	struct sitereach_facts facts;
	uint32_t public_ports[PORTS_MAX];
	unsigned public_count;
	enum state state;
	enum hold hold;
	unsigned refs, uses;
	bool is_listed;
	uint64_t failed_until_ms; /* a lookup that failed is remembered */
	int failed_status;
	char *failed_words;
	struct eventcall call;
	bool has_call;
	uint32_t asked_port;
	int dial_fd, control_fd;
	struct event *control_event, *timer;
	struct sitereach_wait *waits;
	struct idle *idle;
	unsigned idle_count;
	uint64_t used_ms;
	struct sitereach *next, **link; /* in a bucket */
};

struct sitereach_list {
	struct api *api;
	struct sitereach *buckets[BUCKETS];
	unsigned count, looking;
};

static void go_on(struct sitereach *r);

struct sitereach_list *sitereach_new(struct api *a)
{
	struct sitereach_list *l = mem_alloc(sizeof(*l));

	l->api = a;
	return l;
}

const struct sitereach_facts *sitereach_facts(const struct sitereach *r)
{
	return &r->facts;
}

bool sitereach_is_public(const struct sitereach *r, uint32_t port)
{
	for (unsigned i = 0; i < r->public_count; i++)
		if (r->public_ports[i] == port)
			return true;
	return false;
}

/* ---- idle connections ---- */

static struct bufferevent *idle_take(struct idle *i)
{
	struct bufferevent *connection = i->connection;

	*i->link = i->next;
	if (i->next)
		i->next->link = i->link;
	i->reach->idle_count--;
	free(i);
	return connection;
}

static void idle_free(struct idle *i)
{
	bufferevent_free(idle_take(i));
}

/* It sends what nobody asked for. */
static void on_idle_bytes(struct bufferevent *connection, void *context)
{
	(void)connection;
	idle_free(context);
}

/* It ends, or has been idle for too long. */
static void on_idle_event(struct bufferevent *connection, short what, void *context)
{
	(void)connection;
	(void)what;
	idle_free(context);
}

static void keep_idle(struct sitereach *r, uint32_t port, struct bufferevent *connection)
{
	static const struct timeval wait = { .tv_sec = SITEREACH_IDLE_S };
	struct idle *i;

	if (r->state != STATE_REACHED || r->idle_count == SITEREACH_IDLE_MAX ||
	    evbuffer_get_length(bufferevent_get_input(connection)) > 0) {
		bufferevent_free(connection);
		return;
	}
	i = mem_alloc(sizeof(*i));
	*i = (struct idle){ .reach = r,
			    .connection = connection,
			    .port = port,
			    .link = &r->idle,
			    .next = r->idle };
	if (r->idle)
		r->idle->link = &i->next;
	r->idle = i;
	r->idle_count++;
	bufferevent_setcb(connection, on_idle_bytes, NULL, on_idle_event, i);
	bufferevent_set_timeouts(connection, &wait, NULL);
	(void)bufferevent_enable(connection, EV_READ | EV_WRITE);
}

/* NULL: none. */
static struct bufferevent *take_idle(struct sitereach *r, uint32_t port)
{
	struct bufferevent *connection;

	for (struct idle *i = r->idle; i; i = i->next) {
		if (i->port != port)
			continue;
		connection = idle_take(i);
		bufferevent_set_timeouts(connection, NULL, NULL);
		return connection;
	}
	return NULL;
}

/* ---- the table ---- */

static unsigned bucket_of(const char *name)
{
	return hash_text(0, name) % BUCKETS;
}

static void unlist(struct sitereach *r)
{
	if (!r->is_listed)
		return;
	r->is_listed = false;
	*r->link = r->next;
	if (r->next)
		r->next->link = r->link;
	r->list->count--;
	sitereach_unref(r);
}

void sitereach_ref(struct sitereach *r)
{
	r->refs++;
}

static void close_all(struct sitereach *r)
{
	while (r->idle)
		idle_free(r->idle);
	if (r->control_event)
		event_free(r->control_event);
	if (r->timer)
		event_free(r->timer);
	r->control_event = r->timer = NULL;
	cleanup_closep(&r->control_fd);
	cleanup_closep(&r->dial_fd);
	r->hold = HOLD_NONE;
}

void sitereach_unref(struct sitereach *r)
{
	if (--r->refs > 0)
		return;
	close_all(r);
	if (r->has_call)
		eventcall_done(&r->call);
	free(r->owner);
	free(r->failed_words);
	free(r);
}

static bool is_same_scope(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Forgets one that nobody uses; false: all are in use. */
static bool forget_one(struct sitereach_list *l)
{
	struct sitereach *oldest = NULL;

	for (unsigned b = 0; b < BUCKETS; b++)
		for (struct sitereach *r = l->buckets[b]; r; r = r->next)
			if (r->refs == 1 && !r->waits && !r->has_call &&
			    (!oldest || r->used_ms < oldest->used_ms))
				oldest = r;
	if (oldest)
		unlist(oldest);
	return oldest != NULL;
}

static struct sitereach *find(struct sitereach_list *l, const char *name, const char *scope)
{
	struct sitereach **bucket = &l->buckets[bucket_of(name)], *r;

	for (r = *bucket; r; r = r->next)
		if (strcmp(r->name, name) == 0 && is_same_scope(r->scope, scope))
			return r;
	if (l->count >= SITEREACH_MAX && !forget_one(l))
		return NULL;
	r = mem_alloc(sizeof(*r));
	*r = (struct sitereach){ .list = l,
				 .scope = scope,
				 .state = STATE_GONE,
				 .refs = 1,
				 .is_listed = true,
				 .dial_fd = -1,
				 .control_fd = -1,
				 .link = bucket,
				 .next = *bucket };
	(void)snprintf(r->name, sizeof(r->name), "%s", name);
	if (*bucket)
		(*bucket)->link = &r->next;
	*bucket = r;
	l->count++;
	return r;
}

/* ---- waiting requests ---- */

static void unlink_wait(struct sitereach_wait *w)
{
	if (w->event)
		event_free(w->event);
	w->event = NULL;
	cleanup_closep(&w->answer_fd);
	if (!w->link)
		return;
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	w->link = NULL;
}

static void add_wait(struct sitereach *r, struct sitereach_wait *w, enum wait_state state)
{
	struct sitereach_wait **end = &r->waits;

	while (*end) /* in order: the list is as long as the requests of one sandbox that wait */
		end = &(*end)->next;
	w->reach = r;
	w->state = (int)state;
	w->next = NULL;
	w->link = end;
	*end = w;
	sitereach_ref(r);
}

static void fail(struct sitereach_wait *w, int status, const char *words)
{
	struct sitereach *r = w->reach;

	unlink_wait(w);
	cleanup_closep(&w->fd);
	w->state = WAIT_NONE;
	w->on_failed(w->context, status, words);
	sitereach_unref(r);
}

static void fail_all(struct sitereach *r, int status, const char *words)
{
	sitereach_ref(r);
	while (r->waits)
		fail(r->waits, status, words);
	sitereach_unref(r);
}

void sitereach_cancel(struct sitereach_wait *w)
{
	struct sitereach *r = w->reach;

	if (w->state == WAIT_NONE)
		return;
	unlink_wait(w);
	cleanup_closep(&w->fd);
	w->state = WAIT_NONE;
	sitereach_unref(r);
}

/* ---- the supervisor ---- */

/* The sandbox has ended, or who may reach it has changed. */
static void drop(struct sitereach *r)
{
	close_all(r);
	r->state = STATE_GONE;
	unlist(r);
}

static void on_control(evutil_socket_t fd, short what, void *context)
{
	struct sitereach *r = context;
	struct frame f;
	int n = frame_receive(fd, FRAME_NO_WAIT, &f);

	(void)what;
	if (frame_may_pass(n))
		return;
	sitereach_ref(r);
	if (n == 1 && f.kind == DIALIN_HELD) {
		r->hold = HOLD_YES;
		frame_done(&f);
		go_on(r);
		sitereach_unref(r);
		return;
	}
	if (n == 1 && f.kind == DIALIN_FAILED && f.len == sizeof(struct err)) {
		struct err e;

		memcpy(&e, f.bytes, sizeof(e));
		err_sanitize(&e);
		r->hold = HOLD_NONE;
		frame_done(&f);
		/* it falls asleep: a worker waits for that, and wakes it */
		if (e.code == ERR_BUSY && r->waits && !r->waits->has_waited) {
			close_all(r);
			r->state = STATE_KNOWN;
			go_on(r);
		} else {
			fail_all(r, 502, e.msg);
		}
		sitereach_unref(r);
		return;
	}
	if (n == 1)
		frame_done(&f);
	close_all(r);
	if (r->waits && r->is_listed) {
		r->state = STATE_KNOWN; /* those that wait try once more */
		go_on(r);
	} else {
		drop(r);
	}
	sitereach_unref(r);
}

static void hold(struct sitereach *r)
{
	r->hold = HOLD_ASKED;
	if (frame_send_now(r->control_fd, DIALIN_HOLD, "", 0, -1) < 0) {
		close_all(r);
		r->state = STATE_KNOWN;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct sitereach *r = context;

	(void)fd;
	(void)what;
	if (r->uses > 0 || r->waits || r->hold != HOLD_YES)
		return;
	r->hold = HOLD_NONE;
	(void)frame_send_now(r->control_fd, DIALIN_RELEASE, "", 0, -1);
}

static void let_go_later(struct sitereach *r)
{
	static const struct timeval wait = { .tv_usec = (SITEREACH_LET_GO_MS % 1000) * 1000,
					     .tv_sec = SITEREACH_LET_GO_MS / 1000 };

	r->used_ms = clock_now_ms();
	if (r->uses == 0 && r->timer && !event_pending(r->timer, EV_TIMEOUT, NULL))
		(void)event_add(r->timer, &wait);
}

/* ---- the worker ---- */

static void note_facts(struct sitereach *r, const json_t *result)
{
	const char *owner = json_string_value(json_object_get(result, "owner"));
	const char *id = json_string_value(json_object_get(result, "id"));
	size_t index;
	json_t *port;

	(void)snprintf(r->id, sizeof(r->id), "%s", id ? id : "");
	free(r->owner);
	r->owner = owner ? mem_dup(owner) : NULL;
	r->facts.id = r->id;
	r->facts.owner = r->owner;
	if (json_integer_value(json_object_get(result, "main_port")))
		r->facts.main_port =
			(uint32_t)json_integer_value(json_object_get(result, "main_port"));
	r->public_count = 0;
	json_array_foreach(json_object_get(result, "public_ports"), index,
			   port) if (r->public_count < PORTS_MAX)
		r->public_ports[r->public_count++] =
		(uint32_t)strtoul(json_string_value(port), NULL, 10);
}

static bool take_sockets(struct sitereach *r)
{
	int fds[FDPASS_MAX];
	unsigned count = 0;

	if (fdpass_receive(r->call.call.handover_fd, fds, &count) < 0)
		return false;
	if (count != 2) {
		for (unsigned i = 0; i < count; i++)
			(void)close(fds[i]);
		return false;
	}
	close_all(r);
	r->dial_fd = fds[0];
	r->control_fd = fds[1];
	r->hold = HOLD_YES; /* the worker has asked for it */
	r->control_event =
		event_new(r->list->api->base, r->control_fd, EV_READ | EV_PERSIST, on_control, r);
	r->timer = event_new(r->list->api->base, -1, 0, on_timer, r);
	(void)event_add(r->control_event, NULL);
	return true;
}

static void on_worker_over(void *context, json_t *result)
{
	struct sitereach *r = context;
	const json_t *error = json_object_get(result, "error");
	const char *words = json_string_value(json_object_get(error, "message"));
	bool was_looking = r->state == STATE_LOOKING;
	bool is_fine = !error && (was_looking || take_sockets(r));

	eventcall_done(&r->call);
	r->has_call = false;
	r->list->looking -= was_looking;
	if (is_fine) {
		note_facts(r, result);
		r->state = was_looking ? STATE_KNOWN : STATE_REACHED;
		go_on(r);
	} else {
		const char *code = json_string_value(json_object_get(error, "code"));
		enum err_code kind = code ? errcode_find(code) : ERR_SYSTEM;

		r->state = STATE_GONE;
		r->failed_status = kind == ERR_NOT_FOUND || kind == ERR_INVALID ? 404
				   : kind == ERR_DENIED                         ? 403
										: 502;
		free(r->failed_words);
		r->failed_words = mem_dup(words ? words : "the sandbox cannot be reached");
		r->failed_until_ms = clock_now_ms() + SITEREACH_UNKNOWN_MS;
		fail_all(r, r->failed_status, r->failed_words);
	}
	json_decref(result);
	sitereach_unref(r); /* of start_worker() */
}

static void start_worker(struct sitereach *r, enum state state, uint32_t port)
{
	struct api *a = r->list->api;
	json_t *args;
	struct err e = { 0 };

	if (state == STATE_LOOKING && r->list->looking == SITEREACH_LOOKS_MAX) {
		fail_all(r, 503, "too many sandboxes are being looked up");
		return;
	}
	args = json_pack("{s:s, s:b, s:I}", "name", r->name, "look", state == STATE_LOOKING, "port",
			 (json_int_t)port);
	r->state = state;
	r->list->looking += state == STATE_LOOKING;
	r->asked_port = port;
	eventcall_init(&r->call, a->base);
	r->has_call = true;
	r->call.context = r;
	r->call.owner = r->scope;
	r->call.on_over = on_worker_over;
	if (eventcall_start(&r->call, &a->options, operation_get(OPERATION_REACH), args, NULL, &e) <
	    0) {
		eventcall_done(&r->call);
		r->has_call = false;
		r->list->looking -= state == STATE_LOOKING;
		r->state = STATE_GONE;
		fail_all(r, 503, e.msg);
	} else {
		sitereach_ref(r);
	}
	json_decref(args);
}

/* ---- connecting ---- */

static void on_answer(evutil_socket_t fd, short what, void *context);

static void reached(struct sitereach_wait *w, struct bufferevent *connection, bool was_used)
{
	struct sitereach *r = w->reach;

	unlink_wait(w);
	w->state = WAIT_NONE;
	r->uses++;
	sitereach_ref(r); /* until sitereach_leave() */
	w->on_reached(w->context, connection, was_used);
	sitereach_unref(r);
}

static void watch(struct sitereach_wait *w, int fd, short what, event_callback_fn fn)
{
	static const struct timeval wait = { .tv_sec = SITEREACH_DIAL_S };

	if (w->event)
		event_free(w->event);
	w->event = event_new(w->reach->list->api->base, fd, what, fn, w);
	(void)event_add(w->event, &wait);
}

/* The sandbox has ended, which its supervisor's socket has not told yet: it is looked at anew. */
static void on_gone(struct sitereach_wait *w)
{
	struct sitereach *r = w->reach;

	if (w->has_waited || !r->is_listed) {
		fail(w, 502, "the sandbox does not answer");
		return;
	}
	w->has_waited = true;
	w->state = WAIT_QUEUED;
	close_all(r);
	r->state = STATE_KNOWN;
	if (!r->has_call)
		start_worker(r, STATE_REACHING, w->port);
}

static void ask_init(struct sitereach_wait *w, unsigned family)
{
	const struct dialin_target target = { .family = (uint16_t)family,
					      .port = (uint16_t)w->port };
	int r = dialin_ask(w->reach->dial_fd, &target, &w->answer_fd);

	w->family = family;
	w->state = WAIT_ANSWER;
	if (r < 0)
		on_gone(w);
	else
		watch(w, w->answer_fd, EV_READ, on_answer);
}

/* IPv6 after IPv4; then a worker waits for a service that is starting, once. */
static void on_refused(struct sitereach_wait *w, int error)
{
	struct sitereach *r = w->reach;
	char words[120];

	if (w->event)
		event_free(w->event);
	w->event = NULL;
	cleanup_closep(&w->answer_fd);
	cleanup_closep(&w->fd);
	if (error == ECONNREFUSED && w->family == DIALIN_IPV4) {
		ask_init(w, DIALIN_IPV6);
		return;
	}
	if (error == ECONNREFUSED && !w->has_waited) {
		w->has_waited = true;
		w->state = WAIT_QUEUED;
		if (!r->has_call)
			start_worker(r, STATE_REACHING, w->port);
		return;
	}
	(void)snprintf(words, sizeof(words),
		       error == ECONNREFUSED ? "no server listens on port %u of the sandbox"
					     : "port %u of the sandbox cannot be reached",
		       (unsigned)w->port);
	fail(w, 502, words);
}

static void on_connected(evutil_socket_t fd, short what, void *context)
{
	static const int on = 1;
	struct sitereach_wait *w = context;
	socklen_t len = sizeof(int);
	int error = 0;

	if (what & EV_TIMEOUT)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error) {
		on_refused(w, error);
		return;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	event_free(w->event); /* before its descriptor is somebody else's */
	w->event = NULL;
	reached(w,
		bufferevent_socket_new(w->reach->list->api->base, take_fd(&w->fd),
				       BEV_OPT_CLOSE_ON_FREE),
		false);
}

static void on_answer(evutil_socket_t fd, short what, void *context)
{
	struct sitereach_wait *w = context;
	int r = what & EV_TIMEOUT ? -ETIMEDOUT : dialin_take(fd, &w->fd);

	if (frame_may_pass(r)) {
		watch(w, fd, EV_READ, on_answer);
		return;
	}
	if (r < 0) {
		on_refused(w, -r);
		return;
	}
	if (w->event)
		event_free(w->event);
	w->event = NULL;
	cleanup_closep(&w->answer_fd);
	w->state = WAIT_CONNECT;
	watch(w, w->fd, EV_WRITE, on_connected);
}

/* ---- after each change of the state ---- */

/* The first request in that state; NULL: none. */
static struct sitereach_wait *next_wait(struct sitereach *r, enum wait_state state)
{
	for (struct sitereach_wait *w = r->waits; w; w = w->next)
		if (w->state == (int)state)
			return w;
	return NULL;
}

static void tell_looked(struct sitereach *r)
{
	struct sitereach_wait *w;

	while ((w = next_wait(r, WAIT_LOOK))) {
		unlink_wait(w);
		w->state = WAIT_NONE;
		w->on_looked(w->context, r);
		sitereach_unref(r);
	}
}

static void connect_queued(struct sitereach *r)
{
	struct sitereach_wait *w;

	while ((w = next_wait(r, WAIT_QUEUED)) && r->hold == HOLD_YES) {
		struct bufferevent *used;

		if (!w->port)
			w->port = r->facts.main_port;
		used = w->may_reuse ? take_idle(r, w->port) : NULL;
		if (used)
			reached(w, used, true);
		else if (!w->port)
			fail(w, 502,
			     "the sandbox has no main port: name one, as in 3000-NAME.localhost");
		else
			ask_init(w, DIALIN_IPV4);
	}
}

static void go_on(struct sitereach *r)
{
	sitereach_ref(r);
	if (r->state == STATE_GONE && r->waits && !r->has_call)
		start_worker(r, STATE_LOOKING, 0);
	if (r->state == STATE_KNOWN || r->state == STATE_REACHED || r->state == STATE_REACHING)
		tell_looked(r);
	if (r->state == STATE_KNOWN && next_wait(r, WAIT_QUEUED))
		start_worker(r, STATE_REACHING, next_wait(r, WAIT_QUEUED)->port);
	if (r->state == STATE_REACHED && next_wait(r, WAIT_QUEUED)) {
		if (r->hold == HOLD_NONE)
			hold(r);
		if (r->state == STATE_KNOWN) /* the supervisor is gone */
			start_worker(r, STATE_REACHING, next_wait(r, WAIT_QUEUED)->port);
		connect_queued(r);
	}
	let_go_later(r);
	sitereach_unref(r);
}

/* ---- for requests ---- */

void sitereach_look(struct sitereach_list *l, const char *name, const char *owner,
		    struct sitereach_wait *w)
{
	struct sitereach *r = find(l, name, owner);

	w->answer_fd = w->fd = -1;
	if (!r) {
		w->on_failed(w->context, 503, "too many sandboxes are being reached");
		return;
	}
	if (r->state == STATE_GONE && !r->has_call && clock_now_ms() < r->failed_until_ms) {
		w->on_failed(w->context, r->failed_status, r->failed_words);
		return;
	}
	add_wait(r, w, WAIT_LOOK);
	go_on(r);
}

void sitereach_connect(struct sitereach *r, uint32_t port, bool may_reuse, struct sitereach_wait *w)
{
	w->answer_fd = w->fd = -1;
	w->port = port;
	w->may_reuse = may_reuse;
	w->has_waited = false;
	add_wait(r, w, WAIT_QUEUED);
	go_on(r);
}

void sitereach_leave(struct sitereach *r, uint32_t port, struct bufferevent *connection,
		     enum sitereach_end end)
{
	r->uses--;
	if (end == SITEREACH_KEEP)
		keep_idle(r, sitereach_port(r, port), connection);
	else
		bufferevent_free(connection);
	let_go_later(r);
	sitereach_unref(r);
}

uint32_t sitereach_port(const struct sitereach *r, uint32_t port)
{
	return port ? port : r->facts.main_port;
}
