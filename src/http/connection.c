/*
 * connection - one client connection; see connection.h.
 *
 * Theory of operation. Three states: waiting for a head, reading a body, answering. While answering
 * nothing is read, so a client that sends ahead waits in its own socket; only its disconnect is
 * noticed. Written bytes go to the transport's buffer; the sender of a stream checks
 * connection_unsent().
 */
#include "http/connection.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/shown.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum state { STATE_HEAD, STATE_BODY, STATE_ANSWER, STATE_TAKEN };

struct connection {
	struct connection_handler handler;
	struct bufferevent *transport;
	enum state state;
	struct connection_request request;
	enum connection_body body;
	uint64_t body_left;
	struct event *deadline; /* for a complete head, however slowly it arrives */
	bool is_paused, is_closing, is_streaming, has_request, has_had_requests;
	const struct origin_place *place;
	void *user;
	struct connection_list *list;
	struct connection *next, **link;
};

static void request_done(struct connection_request *r)
{
	head_done(&r->head);
	buf_done(&r->body);
	free(r->path);
	free(r->query);
	*r = (struct connection_request){ 0 };
	buf_init(&r->body, CONNECTION_BODY_MAX_BYTES);
}

static void connection_free(struct connection *c)
{
	if (c->has_request && c->handler.on_gone)
		c->handler.on_gone(c);
	c->has_request = false;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->list->count--;
	request_done(&c->request);
	buf_done(&c->request.body);
	event_free(c->deadline);
	bufferevent_free(c->transport);
	free(c);
}

static void set_wait(struct connection *c, int read_s)
{
	struct timeval read_wait = { .tv_sec = read_s },
		       write_wait = { .tv_sec = CONNECTION_WRITE_WAIT_S };

	bufferevent_set_timeouts(c->transport, read_s ? &read_wait : NULL, &write_wait);
}

const struct connection_request *connection_request(const struct connection *c)
{
	return &c->request;
}

const struct origin_place *connection_place(const struct connection *c)
{
	return c->place;
}

void connection_set_user(struct connection *c, void *user)
{
	c->user = user;
}

void *connection_user(const struct connection *c)
{
	return c->user;
}

/* ---- answers ---- */

const char *connection_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} known[] = {
		{ 200, "OK" },
		{ 201, "Created" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 302, "Found" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 409, "Conflict" },
		{ 411, "Length Required" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 415, "Unsupported Media Type" },
		{ 417, "Expectation Failed" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (known[i].status == status)
			return known[i].reason;
	return "Status";
}

static void write_head(struct connection *c, int status, const char *type, const char *length,
		       const struct connection_header *extra)
{
	struct evbuffer *out = bufferevent_get_output(c->transport);

	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n%s\r\n", status, connection_reason(status),
			    length);
	if (type)
		evbuffer_add_printf(out, "Content-Type: %s\r\n", type);
	for (; extra && extra->name; extra++)
		evbuffer_add_printf(out, "%s: %s\r\n", extra->name, extra->value);
	evbuffer_add_printf(out, "X-Content-Type-Options: nosniff\r\nConnection: %s\r\n\r\n",
			    c->is_closing ? "close" : "keep-alive");
}

/* A connection that may be freed by then. */
struct later {
	struct connection_list *list;
	struct connection *connection;
};

static void read_later(evutil_socket_t fd, short what, void *context);

/* The answer is complete. The next request is read from the event loop, not from within. */
static void finish(struct connection *c)
{
	struct timeval now = { 0 };
	struct later *later;

	if (c->has_request && c->handler.on_gone)
		c->handler.on_gone(c);
	c->has_request = false;
	c->user = NULL;
	c->is_streaming = false;
	if (c->list->is_draining)
		c->is_closing = true;
	if (c->is_closing) {
		/* the rest is sent, then on_written() closes it */
		c->state = STATE_ANSWER;
		bufferevent_disable(c->transport, EV_READ);
		return;
	}
	request_done(&c->request);
	c->state = STATE_HEAD;
	later = mem_alloc(sizeof(*later));
	*later = (struct later){ c->list, c };
	event_base_once(bufferevent_get_base(c->transport), -1, EV_TIMEOUT, read_later, later,
			&now);
}

void connection_reply(struct connection *c, int status, const char *type, const char *bytes,
		      size_t len, const struct connection_header *extra)
{
	char length[48];

	/* otherwise the unread body would be parsed as the next request */
	if (c->state == STATE_BODY)
		c->is_closing = true;
	c->state = STATE_ANSWER;
	if (!c->request.head.is_kept_alive || c->list->is_draining)
		c->is_closing = true;
	(void)snprintf(length, sizeof(length), "Content-Length: %zu", len);
	write_head(c, status, type, length, extra);
	if (len > 0 && strcmp(c->request.head.method, "HEAD") != 0)
		bufferevent_write(c->transport, bytes, len);
	finish(c);
}

void connection_begin(struct connection *c, int status, const char *type,
		      const struct connection_header *extra)
{
	c->state = STATE_ANSWER;
	c->is_streaming = true;
	if (!c->request.head.is_kept_alive)
		c->is_closing = true;
	set_wait(c, 0); /* no time limit */
	write_head(c, status, type, "Transfer-Encoding: chunked", extra);
}

void connection_send(struct connection *c, const char *bytes, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->transport);

	if (len == 0)
		return;
	evbuffer_add_printf(out, "%zx\r\n", len);
	evbuffer_add(out, bytes, len);
	evbuffer_add(out, "\r\n", 2);
}

void connection_end(struct connection *c)
{
	bufferevent_write(c->transport, "0\r\n\r\n", 5);
	finish(c);
}

void connection_abort(struct connection *c)
{
	c->is_closing = true;
	finish(c);
	/* also if everything was sent already */
	bufferevent_trigger(c->transport, EV_WRITE, BEV_TRIG_DEFER_CALLBACKS);
}

size_t connection_unsent(const struct connection *c)
{
	return evbuffer_get_length(bufferevent_get_output(c->transport));
}

/* ---- requests ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static bool is_utf8(const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = shown_utf8_len(text + at, len - at);

		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

/* Decodes a path and drops empty components. NULL: a NUL, a bad escape, or invalid UTF-8. */
static char *decode_path(const char *text, size_t len)
{
	char *out = mem_alloc(len + 2);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%') {
			if (i + 2 >= len || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0) {
				free(out);
				return NULL;
			}
			c = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
			i += 2;
		}
		if (c == '\0') {
			free(out);
			return NULL;
		}
		if (c == '/' && n > 0 && out[n - 1] == '/')
			continue;
		out[n++] = c;
	}
	while (n > 1 && out[n - 1] == '/')
		n--;
	out[n] = '\0';
	if (is_utf8(out, n))
		return out;
	free(out);
	return NULL;
}

static bool read_target(struct connection *c)
{
	struct connection_request *r = &c->request;
	size_t len = strcspn(r->head.target, "?#");

	r->path = decode_path(r->head.target, len);
	r->query = mem_dup(r->head.target[len] == '?' ? r->head.target + len + 1 : "");
	return r->path && r->path[0] == '/';
}

static void reply_plain(struct connection *c, int status)
{
	cleanup_free char *text =
		mem_format("{\"success\":false,\"error\":\"%s\"}", connection_reason(status));

	c->is_closing = true;
	connection_reply(c, status, "application/json", text, strlen(text), NULL);
}

static void take_request(struct connection *c)
{
	c->state = STATE_ANSWER;
	set_wait(c, 0);
	c->handler.on_request(c, c->handler.context);
}

/* 1: the first bytes are those of HTTP/2, or may become so; 0: they are not. */
static int judge_http2(struct connection *c, struct evbuffer *in, size_t len)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	size_t wanted = sizeof(preface) - 1, looked_at = len < wanted ? len : wanted;

	if (!c->handler.on_http2 || c->has_had_requests ||
	    memcmp(evbuffer_pullup(in, (ev_ssize_t)looked_at), preface, looked_at) != 0)
		return 0;
	if (looked_at < wanted)
		return 1;
	event_del(c->deadline);
	c->has_request = true;
	return c->handler.on_http2(c, c->handler.context);
}

/* False: an error was sent, or more bytes are needed. */
static bool take_head(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->transport);
	size_t len = evbuffer_get_length(in), used = 0;
	size_t looked_at = len < HEAD_MAX_BYTES ? len : HEAD_MAX_BYTES;
	int r;

	if (len == 0)
		return false;
	r = judge_http2(c, in, looked_at);
	if (r != 0)
		return false;
	r = head_parse((const char *)evbuffer_pullup(in, (ev_ssize_t)looked_at), looked_at,
		       &c->request.head, &used);
	if (r == 0)
		return false;
	if (r < 0) {
		event_del(c->deadline);
		reply_plain(c, -r);
		return false;
	}
	evbuffer_drain(in, used);
	if (!read_target(c)) {
		reply_plain(c, 400);
		return false;
	}
	c->has_request = c->has_had_requests = true;
	event_del(c->deadline);
	c->body_left = c->request.head.content_length;
	c->state = STATE_BODY;
	c->body = c->handler.on_head(c, c->handler.context);
	if (c->body == CONNECTION_REFUSED || c->body == CONNECTION_TAKEN)
		return false;
	if (c->request.head.is_chunked) {
		reply_plain(c, 411);
		return false;
	}
	if (c->body == CONNECTION_COLLECT && c->body_left > CONNECTION_BODY_MAX_BYTES) {
		reply_plain(c, 413);
		return false;
	}
	if (c->request.head.expects_continue && c->body_left > 0)
		bufferevent_write(c->transport, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	set_wait(c, CONNECTION_BODY_WAIT_S);
	if (c->body == CONNECTION_HAND_ON) {
		c->is_paused = false;
		c->handler.on_request(c, c->handler.context);
	}
	return c->state == STATE_BODY;
}

static void take_body(struct connection *c)
{
	struct evbuffer *in = bufferevent_get_input(c->transport);

	while (c->state == STATE_BODY && !c->is_paused && c->body_left > 0) {
		char bytes[65536];
		size_t most = c->body_left < sizeof(bytes) ? (size_t)c->body_left : sizeof(bytes);
		int n = evbuffer_remove(in, bytes, most);

		if (n <= 0)
			return;
		c->body_left -= (uint64_t)n;
		if (c->body == CONNECTION_COLLECT)
			buf_add(&c->request.body, bytes, (size_t)n);
		else if (!c->handler.on_body(c, bytes, (size_t)n))
			c->is_paused = true;
	}
	if (c->state != STATE_BODY || c->body_left > 0 || c->is_paused)
		return;
	if (c->body == CONNECTION_COLLECT) {
		take_request(c);
		return;
	}
	c->state = STATE_ANSWER;
	set_wait(c, 0);
	(void)c->handler.on_body(c, NULL, 0);
}

static void read_on(struct connection *c)
{
	if (c->state == STATE_HEAD && !take_head(c))
		return;
	if (c->state == STATE_BODY)
		take_body(c);
}

static void read_later(evutil_socket_t fd, short what, void *context)
{
	cleanup_free struct later *later = context;
	struct connection *c = later->connection;

	(void)fd;
	(void)what;
	/* the connection may have been freed meanwhile */
	for (struct connection *known = later->list->first; known; known = known->next)
		if (known == c && c->state == STATE_HEAD) {
			set_wait(c, CONNECTION_IDLE_S);
			if (evbuffer_get_length(bufferevent_get_input(c->transport)) > 0)
				event_add(c->deadline,
					  &(struct timeval){ .tv_sec = CONNECTION_HEAD_WAIT_S });
			read_on(c);
			return;
		}
}

void connection_go_on(struct connection *c)
{
	c->is_paused = false;
	if (c->state == STATE_BODY)
		take_body(c);
}

/* ---- the transport ---- */

static void on_readable(struct bufferevent *transport, void *context)
{
	struct connection *c = context;

	(void)transport;
	if (c->state == STATE_HEAD && !c->has_request &&
	    !event_pending(c->deadline, EV_TIMEOUT, NULL))
		event_add(c->deadline, &(struct timeval){ .tv_sec = CONNECTION_HEAD_WAIT_S });
	read_on(c);
}

static void on_written(struct bufferevent *transport, void *context)
{
	struct connection *c = context;

	if (c->is_closing && c->state == STATE_ANSWER && !c->has_request &&
	    evbuffer_get_length(bufferevent_get_output(transport)) == 0)
		connection_free(c);
}

/* End of file, a failure or a timeout: all close the connection. */
static void on_event(struct bufferevent *transport, short what, void *context)
{
	struct connection *c = context;

	(void)transport;
	if (what & BEV_EVENT_CONNECTED)
		return;
	connection_free(c);
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	connection_free(context);
}

struct bufferevent *connection_take(struct connection *c)
{
	c->state = STATE_TAKEN;
	bufferevent_set_timeouts(c->transport, NULL, NULL);
	return c->transport;
}

void connection_give_back(struct connection *c, enum connection_return what)
{
	if (what == CONNECTION_DROP) {
		connection_free(c);
		return;
	}
	bufferevent_setcb(c->transport, on_readable, on_written, on_event, c);
	bufferevent_setwatermark(c->transport, EV_READ, 0, HEAD_MAX_BYTES + 65536);
	bufferevent_setwatermark(c->transport, EV_WRITE, 0, 0);
	set_wait(c, CONNECTION_IDLE_S);
	if (what == CONNECTION_CLOSE || !c->request.head.is_kept_alive)
		c->is_closing = true;
	else
		bufferevent_enable(c->transport, EV_READ);
	finish(c);
	if (c->is_closing && connection_unsent(c) == 0)
		connection_free(c);
}

void connection_serve(struct connection_list *list, struct bufferevent *transport,
		      const struct connection_handler *handler, const struct origin_place *place)
{
	struct connection *c = mem_alloc(sizeof(*c));

	*c = (struct connection){ .handler = *handler,
				  .transport = transport,
				  .place = place,
				  .list = list,
				  .link = &list->first,
				  .next = list->first };
	buf_init(&c->request.body, CONNECTION_BODY_MAX_BYTES);
	if (list->first)
		list->first->link = &c->next;
	list->first = c;
	list->count++;
	c->deadline = event_new(bufferevent_get_base(transport), -1, 0, on_deadline, c);
	event_add(c->deadline, &(struct timeval){ .tv_sec = CONNECTION_HEAD_WAIT_S });
	bufferevent_setcb(transport, on_readable, on_written, on_event, c);
	bufferevent_setwatermark(transport, EV_READ, 0, HEAD_MAX_BYTES + 65536);
	set_wait(c, CONNECTION_HEAD_WAIT_S);
	bufferevent_enable(transport, EV_READ | EV_WRITE);
}

void connection_drain(struct connection_list *list)
{
	struct connection *next;

	list->is_draining = true;
	for (struct connection *c = list->first; c; c = next) {
		next = c->next;
		if (c->state == STATE_HEAD && !c->has_request)
			connection_free(c);
	}
}
