/*
 * siteframes - relays HTTP/2 to servers inside sandboxes; see siteframes.h.
 *
 * Theory of operation. Two sessions of libnghttp2: we are the server of the client, and the client
 * of the server inside. A stream of one is paired with a stream of the other. Fields are passed on
 * when they are complete, bytes as the other side's window allows: a window is opened again only
 * for bytes that were written to the other side, so each stream holds one window at most. Resets,
 * trailers and the end of either side pass through.
 *
 * Hostile input: both sides. libnghttp2 checks frames, compression, windows and the rules for
 * fields; the number of streams and the size of fields are bounded.
 */
#include "http/siteframes.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "http/api.h"
#include "http/sitegrant.h"
#include "http/sitereach.h"
#include "http/siterelay.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One direction of a stream: fields and bytes on their way. */
struct half {
	char **names, **values;
	size_t count, size;
	struct evbuffer *bytes;
	bool has_begun;    /* fields were passed on: later ones are trailers */
	bool has_ended;    /* nothing more comes */
	bool has_trailers; /* in names and values */
	size_t unconsumed; /* received, and not passed on yet */
};

struct stream {
	struct relay *relay;
	int32_t client_id, server_id; /* server_id -1: not begun */
	struct half request, answer;
	char *target; /* of a request that may pass; NULL: it may not, or is not judged yet */
	bool hides_authorization, is_refused;
	struct stream *next, **link;
};

struct relay {
	struct api *api;
	struct connection *connection;
	struct bufferevent *client, *server;
	nghttp2_session *to_client, *to_server;
	struct head head; /* of the request that is judged */
	char authority[ORIGIN_HOST_MAX_BYTES + 8];
	char peer[SITERELAY_PEER_MAX_BYTES];
	struct site site;
	struct sitegrant grant;
	struct sitereach *reach;
	struct sitereach_wait wait;
	struct stream *streams;
	unsigned stream_count;
	bool has_site, is_open, is_working, is_over;
};

/* ---- streams ---- */

static void half_clear(struct half *h)
{
	for (size_t i = 0; i < h->count; i++) {
		free(h->names[i]);
		free(h->values[i]);
	}
	free(h->names);
	free(h->values);
	h->names = h->values = NULL;
	h->count = h->size = 0;
}

static struct stream *add_stream(struct relay *r, int32_t client_id)
{
	struct stream *s = mem_alloc(sizeof(*s));

	*s = (struct stream){ .relay = r,
			      .client_id = client_id,
			      .server_id = -1,
			      .link = &r->streams,
			      .next = r->streams };
	s->request.bytes = evbuffer_new();
	s->answer.bytes = evbuffer_new();
	if (r->streams)
		r->streams->link = &s->next;
	r->streams = s;
	r->stream_count++;
	return s;
}

static void remove_stream(struct stream *s)
{
	half_clear(&s->request);
	half_clear(&s->answer);
	evbuffer_free(s->request.bytes);
	evbuffer_free(s->answer.bytes);
	free(s->target);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	s->relay->stream_count--;
	free(s);
}

static bool add_field(struct half *h, const uint8_t *name, size_t name_len, const uint8_t *value,
		      size_t value_len)
{
	h->size += name_len + value_len + 32;
	if (h->size > SITEFRAMES_HEAD_MAX_BYTES || h->count >= HEAD_FIELDS_MAX)
		return false;
	h->names = mem_grow(h->names, h->count + 1, sizeof(*h->names));
	h->values = mem_grow(h->values, h->count + 1, sizeof(*h->values));
	h->names[h->count] = mem_dup_bytes((const char *)name, name_len);
	h->values[h->count++] = mem_dup_bytes((const char *)value, value_len);
	return true;
}

static const char *get_field(const struct half *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->names[i], name) == 0)
			return h->values[i];
	return NULL;
}

/* ---- bytes from one session to the other ---- */

/* Opens the window of the side that sent them again. */
static void consume(nghttp2_session *from, int32_t id, struct half *h)
{
	size_t waiting = evbuffer_get_length(h->bytes), passed = h->unconsumed - waiting;

	if (passed > 0 && from)
		(void)nghttp2_session_consume(from, id, passed);
	h->unconsumed = waiting;
}

static void to_fields(const struct half *h, size_t from, nghttp2_nv *out, size_t *count)
{
	for (size_t i = from; i < h->count; i++)
		out[(*count)++] = (nghttp2_nv){ .name = (uint8_t *)h->names[i],
						.value = (uint8_t *)h->values[i],
						.namelen = strlen(h->names[i]),
						.valuelen = strlen(h->values[i]) };
}

/* Finds its stream by the id: the pair may be gone. */
static ssize_t give_bytes(nghttp2_session *session, int32_t id, uint8_t *out, size_t len,
			  uint32_t *flags, nghttp2_data_source *source, void *context)
{
	const struct relay *r = context;
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);
	struct half *h;
	int n;

	(void)source;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	h = session == r->to_client ? &s->answer : &s->request;
	n = evbuffer_remove(h->bytes, out, len);
	if (n < 0)
		n = 0;
	if (evbuffer_get_length(h->bytes) > 0 || !h->has_ended)
		return n > 0 ? n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (h->has_trailers) {
		nghttp2_nv fields[HEAD_FIELDS_MAX];
		size_t count = 0;

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		to_fields(h, 0, fields, &count);
		(void)nghttp2_submit_trailer(session, id, fields, count);
	}
	return n;
}

/* ---- the request ---- */

static void refuse(struct stream *s, const char *status, const char *words)
{
	const nghttp2_nv fields[] = {
		{ (uint8_t *)":status", (uint8_t *)status, 7, 3, NGHTTP2_NV_FLAG_NONE },
		{ (uint8_t *)"content-type", (uint8_t *)"text/plain", 12, 10,
		  NGHTTP2_NV_FLAG_NONE },
		{ (uint8_t *)"x-agentkernel", (uint8_t *)words, 13, strlen(words),
		  NGHTTP2_NV_FLAG_NONE },
	};

	(void)nghttp2_submit_response(s->relay->to_client, s->client_id, fields, 3, NULL);
	s->is_refused = true; /* what it still sends is thrown away */
}

static bool is_passed(const struct stream *s, const char *name)
{
	static const char *const dropped[] = {
		":method",
		":scheme",
		":authority",
		":path",
		"x-forwarded-for",
		"x-forwarded-proto",
		"x-forwarded-host",
		"forwarded",
		SITE_KEY_HEADER,
		SITE_SANDBOX_HEADER,
		SITE_PORT_HEADER,
		"cookie",
		NULL,
	};

	for (const char *const *d = dropped; *d; d++)
		if (strcmp(name, *d) == 0)
			return false;
	return !s->hides_authorization || strcmp(name, "authorization") != 0;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
			     strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static void begin_request(struct stream *s)
{
	struct relay *r = s->relay;
	const char *method = get_field(&s->request, ":method");
	static const nghttp2_data_provider provider = { .read_callback = give_bytes };
	bool has_body = !s->request.has_ended || evbuffer_get_length(s->request.bytes) > 0;
	nghttp2_nv fields[HEAD_FIELDS_MAX + 8];
	size_t count = 0;

	fields[count++] = field(":method", method ? method : "GET");
	fields[count++] = field(":scheme", "http");
	fields[count++] = field(":authority", r->authority);
	fields[count++] = field(":path", s->target);
	fields[count++] = field("x-forwarded-for", r->peer);
	fields[count++] = field("x-forwarded-proto", "http");
	fields[count++] = field("x-forwarded-host", r->authority);
	for (size_t i = 0; i < s->request.count; i++)
		if (is_passed(s, s->request.names[i]))
			fields[count++] = field(s->request.names[i], s->request.values[i]);
	s->server_id = nghttp2_submit_request(r->to_server, NULL, fields, count,
					      has_body ? &provider : NULL, s);
	half_clear(&s->request);
	s->request.has_begun = true;
	if (s->server_id < 0)
		refuse(s, "503", "the server in the sandbox takes no more requests");
}

/* What sitegrant needs of a request; borrows from the stream. */
static void fill_head(struct relay *r, const struct stream *s)
{
	const char *method = get_field(&s->request, ":method");
	struct head *h = &r->head;

	*h = (struct head){ .is_kept_alive = true };
	(void)snprintf(h->method, sizeof(h->method), "%s", method ? method : "GET");
	h->target = (char *)(uintptr_t)get_field(&s->request, ":path");
	for (size_t i = 0; i < s->request.count; i++)
		if (s->request.names[i][0] != ':')
			h->fields[h->field_count++] =
				(struct head_field){ s->request.names[i], s->request.values[i] };
}

static void on_failed(void *context, int status, const char *words);
static void on_looked(void *context, struct sitereach *reach);
static void on_reached(void *context, struct bufferevent *connection, bool was_used);

/* The first request decides which sandbox the connection leads to. */
static void on_request(struct stream *s)
{
	struct relay *r = s->relay;
	const char *authority = get_field(&s->request, ":authority");
	const char *path = get_field(&s->request, ":path"), *why;

	if (!authority)
		authority = get_field(&s->request, "host");
	if (!authority || !path || path[0] != '/' || strlen(authority) >= sizeof(r->authority)) {
		refuse(s, "400", "the request has no authority or path");
		return;
	}
	if (r->has_site && strcmp(authority, r->authority) != 0) {
		refuse(s, "421", "this connection leads to another name");
		return;
	}
	(void)snprintf(r->authority, sizeof(r->authority), "%s", authority);
	site_find_host(authority, r->api->domain, &r->site);
	if (r->site.way == SITE_NONE || !r->site.name[0]) {
		refuse(s, "404", "HTTP/2 is served on names of sandboxes alone");
		return;
	}
	fill_head(r, s);
	r->site.target = r->head.target;
	sitegrant_done(&r->grant);
	why = sitegrant_judge_head(r->api, r->connection, &r->head, &r->site, &r->grant);
	if (why || (r->reach && r->grant.kind == SITEGRANT_STRANGER &&
		    !sitegrant_is_open(&r->grant, &r->api->link, r->reach, r->site.port))) {
		refuse(s, why && r->grant.status == 403 ? "403" : "401",
		       why ? why : SITEGRANT_NEEDS_KEY);
		return;
	}
	s->target = mem_dup(r->grant.target);
	s->hides_authorization = r->grant.hides_authorization;
	if (r->is_open) {
		begin_request(s);
		return;
	}
	if (r->has_site)
		return; /* it begins when the sandbox is reached */
	r->has_site = true;
	r->wait = (struct sitereach_wait){ .context = r,
					   .on_failed = on_failed,
					   .on_looked = on_looked,
					   .on_reached = on_reached };
	sitereach_look(r->api->sites, r->site.name, r->grant.owner, &r->wait);
}

/* ---- ends ---- */

static void end(struct relay *r)
{
	struct connection *c = r->connection;

	r->is_over = true;
	if (r->is_working)
		return;
	sitereach_cancel(&r->wait);
	bufferevent_setcb(r->client, NULL, NULL, NULL, NULL);
	while (r->streams)
		remove_stream(r->streams);
	nghttp2_session_del(r->to_client);
	nghttp2_session_del(r->to_server);
	if (r->server)
		sitereach_leave(r->reach, r->site.port, r->server, SITEREACH_CLOSE);
	if (r->reach)
		sitereach_unref(r->reach);
	sitegrant_done(&r->grant);
	free(r);
	connection_give_back(c, CONNECTION_CLOSE);
}

/* Writes what a session has, as long as its transport takes it. */
static bool send_all(nghttp2_session *session, struct bufferevent *transport)
{
	struct evbuffer *out = bufferevent_get_output(transport);

	while (evbuffer_get_length(out) < SITEFRAMES_UNSENT_MAX_BYTES) {
		const uint8_t *bytes;
		ssize_t n = nghttp2_session_mem_send(session, &bytes);

		if (n < 0)
			return false;
		if (n == 0)
			return true;
		(void)evbuffer_add(out, bytes, (size_t)n);
	}
	return true;
}

static bool receive_all(nghttp2_session *session, struct bufferevent *transport)
{
	struct evbuffer *in = bufferevent_get_input(transport);
	size_t len;

	while ((len = evbuffer_get_contiguous_space(in)) > 0) {
		ssize_t n = nghttp2_session_mem_recv(session, evbuffer_pullup(in, (ev_ssize_t)len),
						     len);

		if (n < 0)
			return false;
		(void)evbuffer_drain(in, (size_t)n);
	}
	return true;
}

/* Receives and sends on both sides until nothing moves any more. */
static void work(struct relay *r)
{
	bool is_fine;

	if (r->is_working)
		return;
	r->is_working = true;
	is_fine = receive_all(r->to_client, r->client) &&
		  (!r->server || receive_all(r->to_server, r->server));
	for (unsigned turn = 0; is_fine && turn < 2; turn++) {
		for (struct stream *s = r->streams; s; s = s->next) {
			consume(r->to_client, s->client_id, &s->request);
			if (s->server_id >= 0)
				consume(r->to_server, s->server_id, &s->answer);
		}
		is_fine = send_all(r->to_client, r->client) &&
			  (!r->server || send_all(r->to_server, r->server));
	}
	r->is_working = false;
	if (!is_fine || r->is_over ||
	    (!nghttp2_session_want_read(r->to_client) && !nghttp2_session_want_write(r->to_client)))
		end(r);
}

/* ---- callbacks of both sessions ---- */

static struct stream *find(nghttp2_session *session, int32_t id)
{
	return nghttp2_session_get_stream_user_data(session, id);
}

static struct half *half_of(const struct relay *r, nghttp2_session *session, struct stream *s)
{
	return session == r->to_client ? &s->request : &s->answer;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct relay *r = context;

	if (session != r->to_client || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (r->stream_count >= SITEFRAMES_STREAMS_MAX)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
						    add_stream(r, frame->hd.stream_id));
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		    size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		    void *context)
{
	struct relay *r = context;
	struct stream *s = find(session, frame->hd.stream_id);

	(void)flags;
	if (s && !add_field(half_of(r, session, s), name, name_len, value, value_len))
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return 0;
}

static int on_bytes(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
		    size_t len, void *context)
{
	struct relay *r = context;
	struct stream *s = find(session, id);
	struct half *h;

	(void)flags;
	if (!s || (s->is_refused && session == r->to_client)) {
		(void)nghttp2_session_consume(session, id, len);
		return 0;
	}
	h = half_of(r, session, s);
	(void)evbuffer_add(h->bytes, bytes, len);
	h->unconsumed += len;
	return 0;
}

static void begin_answer(struct stream *s, bool is_last)
{
	struct relay *r = s->relay;
	const char *status = get_field(&s->answer, ":status");
	static const nghttp2_data_provider provider = { .read_callback = give_bytes };
	nghttp2_nv fields[HEAD_FIELDS_MAX];
	size_t count = 0;

	to_fields(&s->answer, 0, fields, &count);
	if (status && status[0] == '1') {
		(void)nghttp2_submit_headers(r->to_client, NGHTTP2_FLAG_NONE, s->client_id, NULL,
					     fields, count, NULL);
	} else {
		s->answer.has_begun = true;
		(void)nghttp2_submit_response(r->to_client, s->client_id, fields, count,
					      is_last ? NULL : &provider);
	}
	half_clear(&s->answer);
}

/* Fields or bytes of one side are complete: passes them on, or its end. */
static void on_progress(nghttp2_session *session, const nghttp2_frame *frame, struct stream *s)
{
	struct relay *r = s->relay;
	struct half *h = half_of(r, session, s);
	bool is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;

	h->has_ended = h->has_ended || is_last;
	if (frame->hd.type == NGHTTP2_HEADERS) {
		if (h->has_begun)
			h->has_trailers = h->count > 0;
		else if (session == r->to_client)
			on_request(s);
		else
			begin_answer(s, is_last);
	}
	if (session == r->to_client && s->server_id >= 0)
		(void)nghttp2_session_resume_data(r->to_server, s->server_id);
	if (session == r->to_server)
		(void)nghttp2_session_resume_data(r->to_client, s->client_id);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct stream *s = find(session, frame->hd.stream_id);

	(void)context;
	if (s && (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
		on_progress(session, frame, s);
	return 0;
}

/* A reset of one side is one of the other; the pair goes when the client's side has. */
static int on_stream_closed(nghttp2_session *session, int32_t id, uint32_t code, void *context)
{
	struct relay *r = context;
	struct stream *s = find(session, id);

	if (!s)
		return 0;
	if (session == r->to_client) {
		if (s->server_id >= 0 && r->to_server) {
			(void)nghttp2_session_set_stream_user_data(r->to_server, s->server_id,
								   NULL);
			(void)nghttp2_submit_rst_stream(r->to_server, NGHTTP2_FLAG_NONE,
							s->server_id, code);
		}
		remove_stream(s);
		return 0;
	}
	s->server_id = -1;
	if (code)
		(void)nghttp2_submit_rst_stream(r->to_client, NGHTTP2_FLAG_NONE, s->client_id,
						code);
	return 0;
}

static nghttp2_session *make_session(struct relay *r, bool is_server)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SITEFRAMES_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, SITEFRAMES_HEAD_MAX_BYTES },
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
	};
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session;
	nghttp2_option *option;

	if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0)
		abort(); /* as all that has no memory */
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_field);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_bytes);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_closed);
	nghttp2_option_set_no_auto_window_update(option, 1);
	if ((is_server ? nghttp2_session_server_new2(&session, callbacks, r, option)
		       : nghttp2_session_client_new2(&session, callbacks, r, option)) != 0)
		abort();
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_option_del(option);
	(void)nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, is_server ? 2 : 3);
	return session;
}

/* ---- the transports ---- */

static void on_readable(struct bufferevent *transport, void *context)
{
	(void)transport;
	work(context);
}

static void on_written(struct bufferevent *transport, void *context)
{
	(void)transport;
	work(context);
}

static void on_client_event(struct bufferevent *transport, short what, void *context)
{
	(void)transport;
	(void)what;
	end(context);
}

/* Without the server there is nothing to relay: streams that are not complete are reset. */
static void on_server_event(struct bufferevent *transport, short what, void *context)
{
	struct relay *r = context;

	(void)transport;
	(void)what;
	(void)nghttp2_session_terminate_session(r->to_client, NGHTTP2_INTERNAL_ERROR);
	(void)send_all(r->to_client, r->client);
	end(r);
}

static void watch(struct relay *r, struct bufferevent *transport, bufferevent_event_cb on_event)
{
	static const struct timeval wait = { .tv_sec = SITEFRAMES_IDLE_S };

	bufferevent_setcb(transport, on_readable, on_written, on_event, r);
	bufferevent_setwatermark(transport, EV_READ, 0, SITEFRAMES_UNSENT_MAX_BYTES);
	bufferevent_setwatermark(transport, EV_WRITE, SITEFRAMES_UNSENT_MAX_BYTES / 4, 0);
	bufferevent_set_timeouts(transport, &wait, &wait);
	(void)bufferevent_enable(transport, EV_READ | EV_WRITE);
}

/* ---- reaching the sandbox ---- */

static void on_failed(void *context, int status, const char *words)
{
	struct relay *r = context;
	bool is_stranger = r->grant.kind == SITEGRANT_STRANGER && status == 404;
	char text[8];

	(void)snprintf(text, sizeof(text), "%d", is_stranger ? 401 : status);
	for (struct stream *s = r->streams; s; s = s->next)
		refuse(s, text, is_stranger ? SITEGRANT_NEEDS_KEY : words);
	r->has_site = false; /* the next request tries again */
	work(r);
}

static void on_looked(void *context, struct sitereach *reach)
{
	struct relay *r = context;

	if (r->reach)
		sitereach_unref(r->reach);
	r->reach = reach;
	sitereach_ref(reach);
	if (r->grant.kind == SITEGRANT_STRANGER &&
	    !sitegrant_is_open(&r->grant, &r->api->link, reach, r->site.port)) {
		on_failed(r, 401, SITEGRANT_NEEDS_KEY);
		return;
	}
	sitereach_connect(reach, r->site.port, false, &r->wait);
}

static void on_reached(void *context, struct bufferevent *connection, bool was_used)
{
	struct relay *r = context;

	(void)was_used;
	r->server = connection;
	r->to_server = make_session(r, false);
	r->is_open = true;
	watch(r, connection, on_server_event);
	for (struct stream *s = r->streams; s; s = s->next)
		if (s->target)
			begin_request(s);
	work(r);
}

bool siteframes_on_http2(struct api *a, struct connection *c)
{
	struct relay *r = mem_alloc(sizeof(*r));

	*r = (struct relay){ .api = a, .connection = c };
	r->client = connection_take(c);
	siterelay_format_peer(c, r->client, r->peer);
	r->to_client = make_session(r, true);
	watch(r, r->client, on_client_event);
	bufferevent_trigger(r->client, EV_READ,
			    BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
	return true;
}
