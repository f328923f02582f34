/*
 * siterelay - relays requests to servers inside sandboxes; see siterelay.h.
 *
 * Theory of operation. One exchange per request. It looks its sandbox up (http/sitereach), decides
 * whether the client may, asks for a connection, writes a new head, and moves bodies between the
 * two transports (http/bodyframe) as fast as the slower side takes them. An answer 101 makes the
 * rest of both connections one tunnel. A request that met a connection which the server had just
 * closed is sent again on a new one, if nothing of a body was sent and the method allows it.
 *
 * Hostile input: both sides. The server's head is parsed as strictly as the client's, and written
 * anew: no field is passed on that describes the connection, and none can contain a line's end.
 */
#include "http/siterelay.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/api.h"
#include "http/bodyframe.h"
#include "http/sitegrant.h"
#include "http/sitereach.h"
#include "http/webcall.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define MOVE_MAX_BYTES (64u << 10) /* a turn */

struct exchange {
	struct api *api;
	struct connection *connection;
	struct bufferevent *client, *server; /* server NULL: not connected */
	struct site site;
	struct sitegrant grant;
	struct sitereach *reach; /* NULL: not looked up */
	struct sitereach_wait wait;
	struct bodyframe request, answer;
	bool is_request_done, has_answer, is_answer_done, is_tunnel, is_kept;
	bool was_used, has_sent_body, closes_server;
	bool has_client_ended, has_server_ended; /* tunnels: the other way goes on */
	bool is_client_paused, is_server_paused;
};

static const struct timeval answer_wait = { .tv_sec = SITERELAY_ANSWER_WAIT_S };

/* ---- ends ---- */

static void leave_server(struct exchange *x, enum sitereach_end end)
{
	if (x->server)
		sitereach_leave(x->reach, x->site.port, x->server, end);
	x->server = NULL;
}

/* After this the exchange is gone. */
static void end(struct exchange *x, enum connection_return what)
{
	struct connection *c = x->connection;

	sitereach_cancel(&x->wait);
	leave_server(x, SITEREACH_CLOSE);
	if (x->reach)
		sitereach_unref(x->reach);
	bufferevent_setcb(x->client, NULL, NULL, NULL, NULL);
	sitegrant_done(&x->grant);
	free(x);
	connection_give_back(c, what);
}

static void reply(struct exchange *x, int status, const char *words)
{
	struct evbuffer *out = bufferevent_get_output(x->client);
	cleanup_free char *body = mem_format("agentkernel: %s\n", words);
	const struct head *h = &connection_request(x->connection)->head;

	leave_server(x, SITEREACH_CLOSE);
	evbuffer_add_printf(out,
			    "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
			    "Content-Length: %zu\r\nCache-Control: no-store\r\n"
			    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
			    status, connection_reason(status), strlen(body));
	if (strcmp(h->method, "HEAD") != 0)
		evbuffer_add(out, body, strlen(body));
	end(x, CONNECTION_CLOSE);
}

/* ---- the request's head ---- */

/* Fields that describe a connection, or are ours. */
static bool is_dropped(const struct head_field *f, const char *const *also)
{
	static const char *const dropped[] = {
		"connection", "keep-alive",     "proxy-connection",    "proxy-authenticate",
		"te",         "trailer",        "transfer-encoding",   "content-length",
		"upgrade",    "http2-settings", "proxy-authorization", NULL,
	};

	for (const char *const *name = dropped; *name; name++)
		if (strcmp(f->name, *name) == 0)
			return true;
	for (; *also; also++)
		if (strcmp(f->name, *also) == 0)
			return true;
	return false;
}

/* "Connection: a, b" makes a and b fields of this connection alone. */
static bool is_named_by_connection(const struct head *h, const char *name)
{
	const char *list = head_get(h, "connection");
	size_t len = strlen(name);

	for (; list && *list; list += *list == ',') {
		list += strspn(list, " \t,");
		if (strncasecmp(list, name, len) == 0 && strchr(" \t,", list[len]))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

void siterelay_format_peer(const struct connection *c, struct bufferevent *client,
			   char out[SITERELAY_PEER_MAX_BYTES])
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	_Static_assert(SITERELAY_PEER_MAX_BYTES >= INET6_ADDRSTRLEN, "too short");
	(void)snprintf(out, SITERELAY_PEER_MAX_BYTES, "127.0.0.1");
	if (connection_place(c)->is_unix ||
	    getpeername(bufferevent_getfd(client), (struct sockaddr *)&sa, &len) < 0)
		return;
	if (sa.ss_family == AF_INET)
		(void)inet_ntop(AF_INET, &((struct sockaddr_in *)&sa)->sin_addr, out,
				SITERELAY_PEER_MAX_BYTES);
	else if (sa.ss_family == AF_INET6)
		(void)inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&sa)->sin6_addr, out,
				SITERELAY_PEER_MAX_BYTES);
}

static void add_client(const struct exchange *x, struct buf *out)
{
	char peer[SITERELAY_PEER_MAX_BYTES];

	siterelay_format_peer(x->connection, x->client, peer);
	buf_addf(out, "X-Forwarded-For: %s\r\nX-Forwarded-Proto: %s\r\n", peer,
		 connection_place(x->connection)->is_tls ? "https" : "http");
}

static void add_fields(const struct exchange *x, const struct head *h, struct buf *out)
{
	static const char *const ours[] = {
		"host",
		"expect",
		"x-forwarded-for",
		"x-forwarded-proto",
		"x-forwarded-host",
		"x-forwarded-prefix",
		"forwarded",
		"cookie",
		SITE_KEY_HEADER,
		SITE_SANDBOX_HEADER,
		SITE_PORT_HEADER,
		NULL,
	};

	for (unsigned i = 0; i < h->field_count; i++) {
		const struct head_field *f = &h->fields[i];

		if (is_dropped(f, ours) || is_named_by_connection(h, f->name) ||
		    (x->grant.hides_authorization && strcmp(f->name, "authorization") == 0))
			continue;
		buf_add_text(out, f->name);
		buf_add(out, ": ", 2);
		buf_add_text(out, f->value);
		buf_add(out, "\r\n", 2);
	}
	/* the cookies of a page that came by path are the API's */
	if (x->site.way != SITE_BY_PATH)
		sitegrant_add_cookies(h, out);
}

static bool wants_upgrade(const struct head *h)
{
	const char *to = head_get(h, "upgrade");

	return to && is_named_by_connection(h, "upgrade") && strncasecmp(to, "h2c", 3) != 0;
}

static void add_framing(const struct exchange *x, const struct head *h, struct buf *out)
{
	if (x->request.kind == BODYFRAME_CHUNKED)
		buf_add_text(out, "Transfer-Encoding: chunked\r\n");
	else if (h->has_content_length)
		buf_addf(out, "Content-Length: %llu\r\n", (unsigned long long)h->content_length);
	if (wants_upgrade(h))
		buf_addf(out, "Connection: Upgrade\r\nUpgrade: %s\r\n", head_get(h, "upgrade"));
	else
		buf_add_text(out, "Connection: keep-alive\r\n");
}

static void write_request(struct exchange *x)
{
	const struct head *h = &connection_request(x->connection)->head;
	const char *host = head_get(h, "host");
	cleanup_buf struct buf out;

	buf_init(&out, 4 * HEAD_MAX_BYTES);
	buf_addf(&out, "%s %s HTTP/1.1\r\n", h->method, x->grant.target);
	if (x->site.way == SITE_BY_HOST)
		buf_addf(&out, "Host: %s\r\n", host);
	else
		buf_addf(&out, "Host: localhost:%u\r\n",
			 (unsigned)sitereach_port(x->reach, x->site.port));
	add_client(x, &out);
	if (host)
		buf_addf(&out, "X-Forwarded-Host: %s\r\n", host);
	if (x->site.way == SITE_BY_PATH)
		buf_addf(&out, "X-Forwarded-Prefix: %.*s\r\n", (int)x->site.prefix_len, h->target);
	add_fields(x, h, &out);
	add_framing(x, h, &out);
	buf_add(&out, "\r\n", 2);
	(void)evbuffer_add(bufferevent_get_output(x->server), out.bytes, out.len);
}

/* ---- bodies ---- */

static size_t unsent(struct bufferevent *to)
{
	return evbuffer_get_length(bufferevent_get_output(to));
}

/* Stops reading from one side while the other does not take more. */
static void pace(struct bufferevent *from, struct bufferevent *to, bool *is_paused)
{
	bool must_pause = unsent(to) > SITERELAY_BUFFER_MAX_BYTES;

	if (must_pause == *is_paused)
		return;
	*is_paused = must_pause;
	if (must_pause)
		(void)bufferevent_disable(from, EV_READ);
	else
		(void)bufferevent_enable(from, EV_READ);
}

/* Moves all; a side that has ended is told so once everything is written (on_written). */
static void move_tunnel(struct bufferevent *from, struct bufferevent *to, bool *is_paused)
{
	(void)evbuffer_add_buffer(bufferevent_get_output(to), bufferevent_get_input(from));
	pace(from, to, is_paused);
}

/* False: the exchange is over. */
static bool move_request(struct exchange *x)
{
	struct evbuffer *in = bufferevent_get_input(x->client);
	int r;

	if (x->is_request_done || !x->server)
		return true;
	if (evbuffer_get_length(in) > 0)
		x->has_sent_body = true;
	r = bodyframe_move(&x->request, in, bufferevent_get_output(x->server), MOVE_MAX_BYTES);
	if (r < 0) {
		end(x, CONNECTION_DROP);
		return false;
	}
	x->is_request_done = r == 1;
	if (x->is_request_done)
		bufferevent_set_timeouts(x->server, &answer_wait, NULL);
	else
		pace(x->client, x->server, &x->is_client_paused);
	return true;
}

/* ---- the answer's head ---- */

/* "Location: /login" of a page that came by path leads below its path. */
static void add_location(const struct exchange *x, const char *value, struct buf *out)
{
	const struct head *h = &connection_request(x->connection)->head;

	if (x->site.way == SITE_BY_PATH && value[0] == '/' && value[1] != '/')
		buf_addf(out, "Location: %.*s%s\r\n", (int)x->site.prefix_len, h->target, value);
	else
		buf_addf(out, "Location: %s\r\n", value);
}

/*
 * A cookie stays on the name of its sandbox, whatever the server says: a domain above it would be
 * that of other sandboxes.
 */
static void add_cookie(const struct exchange *x, const char *value, struct buf *out)
{
	const char *part = value;

	if (x->site.way == SITE_BY_PATH)
		return;
	buf_add_text(out, "Set-Cookie: ");
	while (*part) {
		size_t len = strcspn(part, ";");
		const char *text = part + strspn(part, " \t");

		if (part == value || strncasecmp(text, "domain", 6) != 0 ||
		    text[6 + strspn(text + 6, " \t")] != '=')
			buf_addf(out, "%s%.*s", part == value ? "" : ";", (int)len, part);
		part += len;
		part += *part == ';';
	}
	buf_add(out, "\r\n", 2);
}

static void add_answer_fields(const struct exchange *x, const struct head *h, struct buf *out)
{
	static const char *const special[] = { "location", "set-cookie", NULL };

	for (unsigned i = 0; i < h->field_count; i++) {
		const struct head_field *f = &h->fields[i];

		if (strcmp(f->name, "location") == 0) {
			add_location(x, f->value, out);
		} else if (strcmp(f->name, "set-cookie") == 0) {
			add_cookie(x, f->value, out);
		} else if (!is_dropped(f, special) && !is_named_by_connection(h, f->name)) {
			buf_add_text(out, f->name);
			buf_add(out, ": ", 2);
			buf_add_text(out, f->value);
			buf_add(out, "\r\n", 2);
		}
	}
	/* a page that came by path has the API's origin: without this it could use the API */
	if (x->site.way == SITE_BY_PATH)
		buf_add_text(out, "Content-Security-Policy: sandbox allow-downloads allow-forms "
				  "allow-modals allow-popups allow-scripts\r\n"
				  "Cross-Origin-Resource-Policy: same-origin\r\n");
}

static void frame_answer(struct exchange *x, const struct head *h, const struct head *asked)
{
	if (strcmp(asked->method, "HEAD") == 0 || h->status == 204 || h->status == 304)
		bodyframe_init(&x->answer, BODYFRAME_NONE, 0);
	else if (h->is_chunked)
		bodyframe_init(&x->answer, BODYFRAME_CHUNKED, 0);
	else if (h->has_content_length)
		bodyframe_init(&x->answer, BODYFRAME_LENGTH, h->content_length);
	else
		bodyframe_init(&x->answer, BODYFRAME_UNTIL_END, 0);
	x->answer.writes_chunks = !asked->is_http10 && (x->answer.kind == BODYFRAME_CHUNKED ||
							x->answer.kind == BODYFRAME_UNTIL_END);
	/* HTTP/1.0 knows no chunks: the end of the connection is the end of the body */
	x->is_kept =
		asked->is_kept_alive && (!asked->is_http10 || x->answer.kind == BODYFRAME_LENGTH ||
					 x->answer.kind == BODYFRAME_NONE);
}

static void write_answer(struct exchange *x, const struct head *h)
{
	const struct head *asked = &connection_request(x->connection)->head;
	cleanup_buf struct buf out;

	buf_init(&out, 4 * HEAD_MAX_BYTES);
	buf_addf(&out, "HTTP/1.1 %d %s\r\n", h->status, h->reason);
	add_answer_fields(x, h, &out);
	if (h->status == 101) {
		const char *to = head_get(h, "upgrade");

		buf_addf(&out, "Connection: Upgrade\r\n%s%s%s\r\n", to ? "Upgrade: " : "",
			 to ? to : "", to ? "\r\n" : "");
	} else if (h->status < 200) {
		buf_add(&out, "\r\n", 2);
	} else {
		frame_answer(x, h, asked);
		if (x->answer.writes_chunks)
			buf_add_text(&out, "Transfer-Encoding: chunked\r\n");
		else if (h->has_content_length)
			buf_addf(&out, "Content-Length: %llu\r\n",
				 (unsigned long long)h->content_length);
		buf_addf(&out, "Connection: %s\r\n\r\n", x->is_kept ? "keep-alive" : "close");
	}
	(void)evbuffer_add(bufferevent_get_output(x->client), out.bytes, out.len);
}

static void begin_tunnel(struct exchange *x)
{
	x->is_tunnel = true;
	bufferevent_set_timeouts(x->server, NULL, NULL);
	move_tunnel(x->client, x->server, &x->is_client_paused);
	move_tunnel(x->server, x->client, &x->is_server_paused);
}

/* 1: a final head was written; 0: more bytes are needed; -1: the exchange is over. */
static int take_answer_head(struct exchange *x)
{
	struct evbuffer *in = bufferevent_get_input(x->server);
	const struct head *asked = &connection_request(x->connection)->head;

	for (;;) {
		size_t len = evbuffer_get_length(in), used = 0;
		size_t looked_at = len < HEAD_MAX_BYTES ? len : HEAD_MAX_BYTES;
		CLEANUP(head_done) struct head h = { 0 };
		int r = len == 0 ? 0
				 : head_parse_answer(
					   (const char *)evbuffer_pullup(in, (ev_ssize_t)looked_at),
					   looked_at, &h, &used);

		if (r == 0)
			return 0;
		if (r < 0 || (h.status == 101 && !wants_upgrade(asked))) {
			reply(x, 502, "the server in the sandbox sent no valid HTTP answer");
			return -1;
		}
		evbuffer_drain(in, used);
		if (h.status == 100)
			continue; /* we have sent our own */
		write_answer(x, &h);
		if (h.status != 101 && h.status < 200)
			continue;
		x->has_answer = true;
		if (h.status == 101)
			begin_tunnel(x);
		x->is_kept = x->is_kept && h.status != 101;
		x->closes_server = !h.is_kept_alive;
		return 1;
	}
}

/* ---- events ---- */

static void on_client_bytes(struct bufferevent *client, void *context)
{
	struct exchange *x = context;

	if (x->is_tunnel && x->server)
		move_tunnel(client, x->server, &x->is_client_paused);
	else
		(void)move_request(x);
}

static void finish(struct exchange *x)
{
	bool is_kept = x->is_kept && x->is_request_done;

	if (is_kept && !x->closes_server && x->answer.kind != BODYFRAME_UNTIL_END &&
	    unsent(x->server) == 0)
		leave_server(x, SITEREACH_KEEP);
	end(x, is_kept ? CONNECTION_GO_ON : CONNECTION_CLOSE);
}

static void on_server_bytes(struct bufferevent *server, void *context)
{
	struct exchange *x = context;
	int r;

	if (x->is_tunnel) {
		move_tunnel(server, x->client, &x->is_server_paused);
		return;
	}
	if (!x->has_answer) {
		r = take_answer_head(x);
		if (r <= 0 || x->is_tunnel)
			return;
		bufferevent_set_timeouts(server, NULL, NULL);
	}
	r = bodyframe_move(&x->answer, bufferevent_get_input(server),
			   bufferevent_get_output(x->client), SIZE_MAX);
	if (r < 0)
		end(x, CONNECTION_DROP);
	else if (r == 1)
		finish(x);
	else
		pace(server, x->client, &x->is_server_paused);
}

/* The other side of a tunnel has ended: so does this one, once it has taken everything. */
static void pass_end_on(struct exchange *x, struct bufferevent *to, bool has_ended_too)
{
	if (unsent(to) > 0)
		bufferevent_setwatermark(to, EV_WRITE, 0, 0); /* on_x_written() comes later */
	else if (has_ended_too)
		end(x, CONNECTION_DROP);
	else
		(void)shutdown(bufferevent_getfd(to), SHUT_WR);
}

/* One side has taken what was written: the other may be read again, and told its end. */
static void on_client_written(struct bufferevent *client, void *context)
{
	struct exchange *x = context;

	if (x->server)
		pace(x->server, client, &x->is_server_paused);
	if (x->is_tunnel && x->has_server_ended)
		pass_end_on(x, client, x->has_client_ended);
}

static void on_server_written(struct bufferevent *server, void *context)
{
	struct exchange *x = context;

	if (!x->is_tunnel) {
		if (!x->is_request_done)
			pace(x->client, server, &x->is_client_paused);
		return;
	}
	pace(x->client, server, &x->is_client_paused);
	if (x->has_client_ended)
		pass_end_on(x, server, x->has_server_ended);
}

static void on_client_event(struct bufferevent *client, short what, void *context)
{
	struct exchange *x = context;

	if (!x->is_tunnel || !(what & BEV_EVENT_EOF) || x->has_server_ended) {
		end(x, CONNECTION_DROP);
		return;
	}
	x->has_client_ended = true;
	move_tunnel(client, x->server, &x->is_client_paused);
	pass_end_on(x, x->server, x->has_server_ended);
}

static void connect_again(struct exchange *x);

static void on_server_event(struct bufferevent *server, short what, void *context)
{
	struct exchange *x = context;
	int r;

	if (x->is_tunnel) {
		x->has_server_ended = true;
		if (!(what & BEV_EVENT_EOF) || x->has_client_ended) {
			end(x, CONNECTION_DROP);
			return;
		}
		move_tunnel(server, x->client, &x->is_server_paused);
		pass_end_on(x, x->client, x->has_client_ended);
		return;
	}
	if (!x->has_answer && x->was_used && !x->has_sent_body) {
		connect_again(x);
		return;
	}
	if (!x->has_answer) {
		reply(x, what & BEV_EVENT_TIMEOUT ? 504 : 502,
		      what & BEV_EVENT_TIMEOUT
			      ? "the server in the sandbox has not answered in time"
			      : "the server in the sandbox closed the connection");
		return;
	}
	r = what & BEV_EVENT_EOF ? bodyframe_end(&x->answer, bufferevent_get_output(x->client))
				 : -1;
	if (r == 1)
		finish(x);
	else
		end(x, CONNECTION_DROP);
}

/* ---- steps ---- */

static bool may_send_again(const struct exchange *x)
{
	const char *method = connection_request(x->connection)->head.method;

	return x->request.kind == BODYFRAME_NONE &&
	       (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
		strcmp(method, "OPTIONS") == 0 || strcmp(method, "DELETE") == 0 ||
		strcmp(method, "PUT") == 0);
}

static void on_reached(void *context, struct bufferevent *connection, bool was_used)
{
	struct exchange *x = context;

	x->server = connection;
	x->was_used = was_used;
	bufferevent_setcb(connection, on_server_bytes, on_server_written, on_server_event, x);
	bufferevent_setwatermark(connection, EV_READ, 0, SITERELAY_BUFFER_MAX_BYTES);
	bufferevent_setwatermark(connection, EV_WRITE, SITERELAY_BUFFER_MAX_BYTES / 4, 0);
	(void)bufferevent_enable(connection, EV_READ | EV_WRITE);
	write_request(x);
	if (move_request(x))
		(void)bufferevent_enable(x->client, EV_READ);
}

static void on_failed(void *context, int status, const char *words)
{
	struct exchange *x = context;

	/* somebody without a key does not learn which sandboxes exist */
	if (status == 404)
		words = "no sandbox of that name";
	if (x->grant.kind == SITEGRANT_STRANGER && status == 404)
		reply(x, 401, SITEGRANT_NEEDS_KEY);
	else
		reply(x, status, words);
}

static void connect_again(struct exchange *x)
{
	leave_server(x, SITEREACH_CLOSE);
	sitereach_connect(x->reach, x->site.port, false, &x->wait);
}

static void on_looked(void *context, struct sitereach *r)
{
	struct exchange *x = context;

	x->reach = r;
	sitereach_ref(r);
	if (x->grant.kind == SITEGRANT_STRANGER &&
	    !sitegrant_is_open(&x->grant, &x->api->link, r, x->site.port)) {
		reply(x, 401, SITEGRANT_NEEDS_KEY);
		return;
	}
	if (x->grant.sets_cookie) {
		sitegrant_redirect(&x->grant, connection_place(x->connection)->is_tls,
				   bufferevent_get_output(x->client));
		end(x, CONNECTION_CLOSE);
		return;
	}
	sitereach_connect(r, x->site.port, may_send_again(x), &x->wait);
}

enum connection_body siterelay_on_head(struct api *a, struct connection *c, const struct site *s)
{
	const struct head *h = &connection_request(c)->head;
	struct sitegrant grant;
	struct exchange *x;
	const char *why = sitegrant_judge(a, c, s, &grant);

	if (why || !s->name[0]) {
		webcall_reply_error(c, why ? grant.status : 404, why ? why : "Not found");
		sitegrant_done(&grant);
		return CONNECTION_REFUSED;
	}
	x = mem_alloc(sizeof(*x));
	*x = (struct exchange){ .api = a, .connection = c, .site = *s, .grant = grant };
	x->wait = (struct sitereach_wait){ .context = x,
					   .on_failed = on_failed,
					   .on_looked = on_looked,
					   .on_reached = on_reached };
	bodyframe_init(&x->request,
		       h->is_chunked           ? BODYFRAME_CHUNKED
		       : h->content_length > 0 ? BODYFRAME_LENGTH
					       : BODYFRAME_NONE,
		       h->content_length);
	x->client = connection_take(c);
	bufferevent_setcb(x->client, on_client_bytes, on_client_written, on_client_event, x);
	bufferevent_setwatermark(x->client, EV_READ, 0, SITERELAY_BUFFER_MAX_BYTES);
	bufferevent_setwatermark(x->client, EV_WRITE, SITERELAY_BUFFER_MAX_BYTES / 4, 0);
	if (h->expects_continue && x->request.kind != BODYFRAME_NONE)
		(void)bufferevent_write(x->client, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	sitereach_look(a->sites, s->name, grant.owner, &x->wait);
	return CONNECTION_TAKEN;
}
