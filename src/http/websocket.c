/*
 * websocket - the server's end of a WebSocket; see websocket.h.
 *
 * Theory of operation. libwslay parses and makes frames (masks, fragments, UTF-8, control frames,
 * close codes); its callbacks read from and write to the transport's buffers, which never block.
 * Whatever it finds wrong it answers with a close of the right code; when it neither wants to read
 * nor to write any more, the connection ends.
 *
 * Hostile input: every byte of a client.
 */
#include "http/websocket.h"

#include "base/mem.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_BYTES 16
#define READ_BUFFER_MAX_BYTES (128u << 10)

struct websocket {
	struct connection *connection;
	struct bufferevent *transport;
	struct websocket_owner owner;
	wslay_event_context_ptr frames;
	struct event *timer;
	unsigned quiet_s;
	bool is_working; /* inside of libwslay: it must not be freed */
	bool is_over, is_closing, is_lingering;
};

/* ---- the handshake ---- */

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (; list && *list; list += *list == ',') {
		list += strspn(list, " \t,");
		if (strncasecmp(list, word, len) == 0 && strchr(" \t,", list[len]))
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

/* 16 bytes in base64 are 24 characters, the last two "=". */
static bool is_key(const char *key)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				     "0123456789+/";

	return key && strlen(key) == 24 && strspn(key, digits) == 22 && strcmp(key + 22, "==") == 0;
}

const char *websocket_check(const struct head *h)
{
	const char *version = head_get(h, "sec-websocket-version");

	if (!has_word(head_get(h, "upgrade"), "websocket") ||
	    !has_word(head_get(h, "connection"), "upgrade"))
		return "this route is a WebSocket (Upgrade: websocket)";
	if (strcmp(h->method, "GET") != 0 || h->is_http10 || h->content_length > 0 || h->is_chunked)
		return "a WebSocket begins with GET, HTTP/1.1 and no body";
	if (!version || strcmp(version, "13") != 0)
		return "Sec-WebSocket-Version has to be 13";
	if (!is_key(head_get(h, "sec-websocket-key")))
		return "Sec-WebSocket-Key has to be 16 bytes in base64";
	return NULL;
}

static void answer_handshake(const struct head *h, struct evbuffer *out)
{
	unsigned char digest[EVP_MAX_MD_SIZE], text[4 * EVP_MAX_MD_SIZE];
	char joined[24 + sizeof(GUID)];
	unsigned len = 0;

	(void)snprintf(joined, sizeof(joined), "%s" GUID, head_get(h, "sec-websocket-key"));
	(void)EVP_Digest(joined, strlen(joined), digest, &len, EVP_sha1(), NULL);
	(void)EVP_EncodeBlock(text, digest, (int)len);
	evbuffer_add_printf(out,
			    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
			    "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
			    (const char *)text);
}

/* ---- ends ---- */

static void end(struct websocket *w)
{
	struct connection *c = w->connection;

	w->is_over = true;
	if (w->is_working)
		return; /* work() does it */
	bufferevent_setcb(w->transport, NULL, NULL, NULL, NULL);
	w->owner.on_closed(w->owner.context);
	event_free(w->timer);
	wslay_event_context_free(w->frames);
	free(w);
	connection_give_back(c, CONNECTION_CLOSE);
}

/*
 * The client broke the protocol and was told so. Closing now, with bytes of it unread, would reset
 * the connection and take that message from it: read on, for a while, until it closes.
 */
static void linger(struct websocket *w)
{
	static const struct timeval wait = { .tv_sec = WEBSOCKET_CLOSE_WAIT_S };
	struct evbuffer *in = bufferevent_get_input(w->transport);

	(void)evbuffer_drain(in, evbuffer_get_length(in));
	if (w->is_lingering)
		return;
	w->is_closing = w->is_lingering = true;
	(void)event_add(w->timer, &wait);
	if (evbuffer_get_length(bufferevent_get_output(w->transport)) == 0)
		(void)shutdown(bufferevent_getfd(w->transport), SHUT_WR);
}

/* Lets libwslay read and write all that it can. */
static void work(struct websocket *w)
{
	bool is_fine;

	if (w->is_working)
		return;
	w->is_working = true;
	is_fine = wslay_event_recv(w->frames) == 0 && wslay_event_send(w->frames) == 0;
	w->is_working = false;
	if (!is_fine)
		w->is_over = true;
	if (!w->is_over && (wslay_event_want_read(w->frames) || wslay_event_want_write(w->frames)))
		return;
	if (w->is_over || wslay_event_get_close_received(w->frames))
		end(w);
	else
		linger(w);
}

/* ---- libwslay's callbacks ---- */

static ssize_t read_bytes(wslay_event_context_ptr frames, uint8_t *bytes, size_t len, int flags,
			  void *context)
{
	struct websocket *w = context;
	int n = evbuffer_remove(bufferevent_get_input(w->transport), bytes, len);

	(void)flags;
	if (n > 0)
		return n;
	wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
	return -1;
}

static ssize_t write_bytes(wslay_event_context_ptr frames, const uint8_t *bytes, size_t len,
			   int flags, void *context)
{
	struct websocket *w = context;

	(void)frames;
	(void)flags;
	(void)evbuffer_add(bufferevent_get_output(w->transport), bytes, len);
	return (ssize_t)len;
}

static void on_frame(wslay_event_context_ptr frames,
		     const struct wslay_event_on_msg_recv_arg *message, void *context)
{
	struct websocket *w = context;

	(void)frames;
	if (message->opcode == WSLAY_CONNECTION_CLOSE) {
		w->is_closing = true;
		return;
	}
	if (w->is_closing || w->is_over ||
	    (message->opcode != WSLAY_TEXT_FRAME && message->opcode != WSLAY_BINARY_FRAME))
		return;
	w->owner.on_message(w->owner.context, message->opcode == WSLAY_TEXT_FRAME,
			    (const char *)message->msg, message->msg_length);
}

/* ---- the transport ---- */

static void on_bytes(struct bufferevent *transport, void *context)
{
	struct websocket *w = context;

	(void)transport;
	w->quiet_s = 0;
	work(w);
}

static void on_written(struct bufferevent *transport, void *context)
{
	struct websocket *w = context;

	if (w->is_lingering && evbuffer_get_length(bufferevent_get_output(transport)) == 0)
		(void)shutdown(bufferevent_getfd(transport), SHUT_WR);
	if (w->owner.on_written && !w->is_closing)
		w->owner.on_written(w->owner.context);
}

static void on_event(struct bufferevent *transport, short what, void *context)
{
	(void)transport;
	(void)what;
	end(context);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	static const struct wslay_event_msg ping = { .opcode = WSLAY_PING };
	struct websocket *w = context;

	(void)fd;
	(void)what;
	w->quiet_s += WEBSOCKET_PING_S;
	if (w->is_closing || w->quiet_s >= WEBSOCKET_ANSWER_S) {
		end(w);
		return;
	}
	(void)wslay_event_queue_msg(w->frames, &ping);
	if (w->owner.on_quiet)
		w->owner.on_quiet(w->owner.context);
	work(w);
}

/* ---- for the owner ---- */

struct websocket *websocket_accept(struct connection *c, const struct websocket_owner *o)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = read_bytes,
		.send_callback = write_bytes,
		.on_msg_recv_callback = on_frame,
	};
	static const struct timeval period = { .tv_sec = WEBSOCKET_PING_S };
	struct websocket *w = mem_alloc(sizeof(*w));

	*w = (struct websocket){ .connection = c, .owner = *o };
	w->transport = connection_take(c);
	answer_handshake(&connection_request(c)->head, bufferevent_get_output(w->transport));
	if (wslay_event_context_server_init(&w->frames, &callbacks, w) != 0)
		abort(); /* as all that has no memory */
	wslay_event_config_set_max_recv_msg_length(w->frames, WEBSOCKET_MESSAGE_MAX_BYTES);
	w->timer = event_new(bufferevent_get_base(w->transport), -1, EV_PERSIST, on_timer, w);
	(void)event_add(w->timer, &period);
	bufferevent_setcb(w->transport, on_bytes, on_written, on_event, w);
	bufferevent_setwatermark(w->transport, EV_READ, 0, READ_BUFFER_MAX_BYTES);
	(void)bufferevent_enable(w->transport, EV_READ | EV_WRITE);
	/* what the client sent ahead */
	bufferevent_trigger(w->transport, EV_READ,
			    BEV_TRIG_DEFER_CALLBACKS | BEV_TRIG_IGNORE_WATERMARKS);
	return w;
}

void websocket_send(struct websocket *w, bool is_text, const char *bytes, size_t len)
{
	const struct wslay_event_msg message = {
		.opcode = is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
		.msg = (const uint8_t *)bytes,
		.msg_length = len,
	};

	if (w->is_over || w->is_closing)
		return;
	(void)wslay_event_queue_msg(w->frames, &message);
	if (!w->is_working)
		(void)wslay_event_send(w->frames);
}

size_t websocket_unsent(const struct websocket *w)
{
	return evbuffer_get_length(bufferevent_get_output(w->transport));
}

void websocket_pause(struct websocket *w, bool is_paused)
{
	if (is_paused)
		(void)bufferevent_disable(w->transport, EV_READ);
	else
		(void)bufferevent_enable(w->transport, EV_READ);
}

void websocket_close(struct websocket *w, uint16_t code, const char *reason)
{
	static const struct timeval wait = { .tv_sec = WEBSOCKET_CLOSE_WAIT_S };

	if (w->is_closing || w->is_over)
		return;
	w->is_closing = true;
	(void)wslay_event_queue_close(w->frames, code, (const uint8_t *)reason, strlen(reason));
	(void)event_add(w->timer, &wait); /* the client does not close: on_timer() does */
	(void)bufferevent_enable(w->transport, EV_READ);
	if (!w->is_working)
		(void)wslay_event_send(w->frames);
}
