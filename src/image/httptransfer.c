/*
 * httptransfer - HTTP requests on top of libcurl; see httptransfer.h.
 *
 * Theory of operation
 *
 * Every transfer is an easy handle in the loop's multi handle. A turn lets libcurl move bytes,
 * marks finished transfers, calls the tick when it is due, and waits for sockets and for the
 * descriptors that the caller watches. Turns may be nested (a token is fetched while blobs are
 * downloaded): a turn only marks transfers, and each owner checks its own.
 *
 * Hostile input: everything a server sends. libcurl parses it; we add maxima: of header bytes, of
 * unwanted bodies, of redirects, of slowness.
 */
#include "image/httptransfer.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "policy/address.h"

#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* libcurl reads up to a hundred of these from one fast server before it handles other sockets: a
 * larger buffer delays ticks and is not faster. */
#define RECEIVE_BYTES (64L << 10)
#define MS_PER_S 1000u

struct httptransfer_loop {
	CURLM *multi;
	struct httptransfer_hooks hooks;
	uint64_t next_tick_ms;
	uint64_t deadline_ms, total_ms; /* 0: none */
};

struct httptransfer_loop *httptransfer_loop_new(void)
{
	struct httptransfer_loop *l = mem_alloc(sizeof(*l));
	CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT); /* counted by libcurl */

	assert(code == CURLE_OK);
	l->multi = curl_multi_init();
	assert(l->multi);
	return l;
}

void httptransfer_loop_free(struct httptransfer_loop *l)
{
	if (!l)
		return;
	(void)curl_multi_cleanup(l->multi);
	curl_global_cleanup();
	free(l);
}

void httptransfer_loop_set_hooks(struct httptransfer_loop *l,
				 const struct httptransfer_hooks *hooks)
{
	l->hooks = hooks ? *hooks : (struct httptransfer_hooks){ 0 };
	l->next_tick_ms = 0;
}

void httptransfer_loop_set_deadline(struct httptransfer_loop *l, uint64_t deadline_ms,
				    uint64_t total_ms)
{
	l->deadline_ms = deadline_ms;
	l->total_ms = total_ms;
}

/* ---- turns ---- */

static void finish(struct httptransfer *x, CURLcode code)
{
	x->is_done = true;
	x->code = code;
	x->status = httptransfer_get_status(x);
}

/* Returns the number of transfers that finished. */
static unsigned collect(struct httptransfer_loop *l)
{
	unsigned count = 0;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(l->multi, &left))) {
		struct httptransfer *x = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &x);
		finish(x, message->data.result);
		count++;
	}
	return count;
}

static int tick(struct httptransfer_loop *l, bool is_woken, struct err *e)
{
	uint64_t now_ms = clock_now_ms();

	if (!l->hooks.on_tick || (!is_woken && now_ms < l->next_tick_ms))
		return 0;
	l->next_tick_ms = now_ms + HTTPTRANSFER_TICK_MS;
	return l->hooks.on_tick(l->hooks.context, e);
}

static uint64_t until_tick_ms(const struct httptransfer_loop *l)
{
	uint64_t now_ms = clock_now_ms();

	return now_ms < l->next_tick_ms ? l->next_tick_ms - now_ms : 0;
}

static unsigned list_watched(struct httptransfer_loop *l,
			     struct curl_waitfd out[HTTPTRANSFER_WATCHED_MAX])
{
	int fds[HTTPTRANSFER_WATCHED_MAX];
	unsigned count = 0;

	if (l->hooks.get_watched)
		count = l->hooks.get_watched(l->hooks.context, fds);
	assert(count <= HTTPTRANSFER_WATCHED_MAX);
	for (unsigned i = 0; i < count; i++)
		out[i] = (struct curl_waitfd){ .fd = fds[i], .events = CURL_WAIT_POLLIN };
	return count;
}

/* Waits for any event; true if a watched descriptor is ready. */
static bool wait_for_any(struct httptransfer_loop *l, uint64_t timeout_ms)
{
	struct curl_waitfd watched[HTTPTRANSFER_WATCHED_MAX];
	unsigned count = list_watched(l, watched);
	bool is_ready = false;

	if (l->hooks.on_tick && timeout_ms > until_tick_ms(l))
		timeout_ms = until_tick_ms(l);
	/* fails only without memory or with an invalid handle; then the transfers fail too */
	(void)curl_multi_poll(l->multi, watched, count, (int)timeout_ms, NULL);
	for (unsigned i = 0; i < count; i++)
		is_ready = is_ready || watched[i].revents;
	return is_ready;
}

int httptransfer_loop_turn(struct httptransfer_loop *l, uint64_t timeout_ms, struct err *e)
{
	bool is_woken = false;
	char limit[PARSE_FORMAT_MAX_BYTES];
	int running = 0;
	CURLMcode code;

	if (l->deadline_ms && clock_now_ms() >= l->deadline_ms)
		return err_set(e, ERR_REMOTE, "no complete answer within %s",
			       parse_format_duration(l->total_ms, limit));
	code = curl_multi_perform(l->multi, &running);
	if (code != CURLM_OK)
		return err_set(e, ERR_SYSTEM, "move bytes: %s", curl_multi_strerror(code));
	if (l->deadline_ms) {
		uint64_t now_ms = clock_now_ms();
		uint64_t left_ms = l->deadline_ms > now_ms ? l->deadline_ms - now_ms : 0;

		timeout_ms = left_ms < timeout_ms ? left_ms : timeout_ms;
	}
	if (collect(l) == 0)
		is_woken = wait_for_any(l, timeout_ms);
	return tick(l, is_woken, e);
}

/* ---- libcurl callbacks ---- */

static size_t on_header(char *bytes, size_t one, size_t len, void *context)
{
	struct httptransfer *x = context;

	(void)bytes, (void)one;
	x->header_bytes += len;
	return x->header_bytes <= HTTPTRANSFER_HEADERS_MAX_BYTES ? len : 0;
}

static size_t on_bytes(char *bytes, size_t one, size_t len, void *context)
{
	struct httptransfer *x = context;
	long status = httptransfer_get_status(x);

	(void)one;
	if (status != 200 && status != 206) {
		buf_add(&x->words, bytes, len);
		return x->words.is_cut ? 0 : len;
	}
	if (x->on_body && x->on_body(x->context, bytes, len, &x->failure) < 0) {
		x->is_ended_by_us = true;
		return 0;
	}
	return len;
}

/*
 * Called before each request, with the peer's address. A server may redirect us anywhere, so a
 * public server must not make us send requests to services inside a private network.
 */
static int on_request(void *context, char *address_text, char *own_text, int port, int own_port)
{
	struct httptransfer *x = context;
	struct address address;
	bool is_public;

	(void)own_text, (void)port, (void)own_port;
	is_public = address_parse(address_text, &address) && !address_special_kind(&address) &&
		    !address_is_loopback(&address);
	if (!httptransfer_was_redirected(x) && !x->was_sent) {
		x->began_in_public = is_public;
	} else if (x->began_in_public && !is_public && !x->may_become_private) {
		(void)snprintf(x->refused, sizeof(x->refused),
			       "it leads to %s, which is not a public address as the registry's is "
			       "('private-redirects' in config.toml allows that)",
			       address_text);
		return CURL_PREREQFUNC_ABORT;
	}
	return CURL_PREREQFUNC_OK;
}

/* ---- transfers ---- */

long httptransfer_get_status(const struct httptransfer *x)
{
	long status = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

const char *httptransfer_get_header(const struct httptransfer *x, const char *name, size_t index)
{
	struct curl_header *header = NULL;

	if (curl_easy_header(x->easy, name, index, CURLH_HEADER, -1, &header) != CURLHE_OK)
		return NULL;
	return header->value;
}

bool httptransfer_was_redirected(const struct httptransfer *x)
{
	long count = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_REDIRECT_COUNT, &count);
	return count > 0;
}

uint64_t httptransfer_get_retry_after_ms(const struct httptransfer *x)
{
	curl_off_t seconds = 0;

	(void)curl_easy_getinfo(x->easy, CURLINFO_RETRY_AFTER, &seconds);
	if (seconds > INT32_MAX)
		seconds = INT32_MAX;
	return seconds > 0 ? (uint64_t)seconds * MS_PER_S : 0;
}

bool httptransfer_is_redirect(const struct httptransfer *x)
{
	return x->status >= 300 && x->status < 400;
}

const char *httptransfer_problem(const struct httptransfer *x)
{
	if (x->refused[0])
		return x->refused;
	if (x->header_bytes > HTTPTRANSFER_HEADERS_MAX_BYTES)
		return "endless headers";
	if (x->words.is_cut)
		return "an endless answer";
	if (x->code == CURLE_UNSUPPORTED_PROTOCOL)
		return x->is_plain ? "it redirects to something that is neither http nor https"
				   : "it redirects from https to something less safe";
	if (httptransfer_is_redirect(x) && !httptransfer_get_header(x, "Location", 0))
		return "it redirects without saying where to";
	return x->problem[0] ? x->problem : curl_easy_strerror(x->code);
}

bool httptransfer_is_transient(const struct httptransfer *x)
{
	if (x->status == 408 || x->status == 429 || x->status >= 500)
		return true;
	if (x->status != 0 && x->status != 100 && x->status / 100 != 2)
		return false;
	if (x->header_bytes > HTTPTRANSFER_HEADERS_MAX_BYTES)
		return false;
	switch (x->code) {
	case CURLE_OK:
	case CURLE_WRITE_ERROR:
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_TOO_MANY_REDIRECTS:
	case CURLE_ABORTED_BY_CALLBACK: /* on_request() */
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return false;
	default:
		return true;
	}
}

static void set_callbacks(struct httptransfer *x)
{
	CURL *c = x->easy;

	(void)curl_easy_setopt(c, CURLOPT_PRIVATE, x);
	(void)curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl_easy_setopt(c, CURLOPT_HEADERDATA, x);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_bytes);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, x);
	(void)curl_easy_setopt(c, CURLOPT_PREREQFUNCTION, on_request);
	(void)curl_easy_setopt(c, CURLOPT_PREREQDATA, x);
	(void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, x->problem);
	(void)curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	(void)curl_easy_setopt(c, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
	(void)curl_easy_setopt(c, CURLOPT_USERAGENT, "agentkernel/" AGENTKERNEL_VERSION);
}

static void set_limits(struct httptransfer *x, const struct httptransfer_options *o)
{
	CURL *c = x->easy;

	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)o->connect_max_ms);
	(void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)HTTPTRANSFER_SPEED_MIN_BYTES);
	(void)curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)o->stall_max_s);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)o->total_max_ms);
}

/*
 * Uses the proxies of the environment, as libcurl does, but not for this machine itself: a proxy
 * would look for the registry on its own host.
 */
static void set_proxy(struct httptransfer *x)
{
	const char *lower = getenv("no_proxy");
	const char *given = lower ? lower : getenv("NO_PROXY");
	cleanup_free char *more = mem_format("%s%slocalhost,127.0.0.0/8,::1", given ? given : "",
					     given && given[0] ? "," : "");

	if (!given || strcmp(given, "*") != 0)
		(void)curl_easy_setopt(x->easy, CURLOPT_NOPROXY, more);
}

/* Uses the certificates that the user configured instead of the system's, in the variables that
 * OpenSSL and Docker use. */
static void set_trust(struct httptransfer *x)
{
	const char *file = getenv("SSL_CERT_FILE");
	const char *dir = getenv("SSL_CERT_DIR");

	if (file && file[0])
		(void)curl_easy_setopt(x->easy, CURLOPT_CAINFO, file);
	if (dir && dir[0])
		(void)curl_easy_setopt(x->easy, CURLOPT_CAPATH, dir);
}

/* An https transfer stays https; an http one may be redirected to https. */
static void set_place(struct httptransfer *x, const struct httptransfer_options *o)
{
	CURL *c = x->easy;

	x->is_plain = strncmp(o->url, "http://", 7) == 0;
	x->may_become_private = o->flags & HTTPTRANSFER_PRIVATE_REDIRECTS;
	x->was_sent = x->began_in_public = o->flags & HTTPTRANSFER_FROM_PUBLIC;
	(void)curl_easy_setopt(c, CURLOPT_URL, o->url);
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR,
			       x->is_plain ? "http,https" : "https");
	(void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION,
			       o->flags & HTTPTRANSFER_NO_REDIRECTS ? 0L : 1L);
	(void)curl_easy_setopt(c, CURLOPT_MAXREDIRS, (long)HTTPTRANSFER_REDIRECTS_MAX);
	if (o->flags & HTTPTRANSFER_UNVERIFIED) {
		(void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static void set_login(struct httptransfer *x, const struct httptransfer_options *o)
{
	if (o->bearer) {
		(void)curl_easy_setopt(x->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		(void)curl_easy_setopt(x->easy, CURLOPT_XOAUTH2_BEARER, o->bearer);
	} else if (o->user) {
		(void)curl_easy_setopt(x->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		(void)curl_easy_setopt(x->easy, CURLOPT_USERNAME, o->user);
		(void)curl_easy_setopt(x->easy, CURLOPT_PASSWORD, o->password ? o->password : "");
	}
}

/* ---- a body that is sent ---- */

static size_t on_send(char *bytes, size_t one, size_t len, void *context)
{
	struct httptransfer *x = context;
	uint64_t left = x->body_bytes - x->body_sent;
	ssize_t n;

	(void)one;
	if (len > left)
		len = (size_t)left;
	n = len ? pread(x->body_fd, bytes, len, (off_t)(x->body_from + x->body_sent)) : 0;
	if (n < 0 || (n == 0 && len > 0)) /* the file became shorter */
		return CURL_READFUNC_ABORT;
	x->body_sent += (uint64_t)n;
	return (size_t)n;
}

/* libcurl sends again from the beginning. */
static int on_seek(void *context, curl_off_t at, int origin)
{
	struct httptransfer *x = context;

	if (origin != SEEK_SET || at < 0 || (uint64_t)at > x->body_bytes)
		return CURL_SEEKFUNC_FAIL;
	x->body_sent = (uint64_t)at;
	return CURL_SEEKFUNC_OK;
}

static void set_method(struct httptransfer *x, const struct httptransfer_options *o)
{
	CURL *c = x->easy;

	x->has_method = true;
	x->body_fd = o->body_fd;
	x->body_from = o->body_from;
	x->body_bytes = o->body_bytes;
	(void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	if (strcmp(o->method, "HEAD") == 0) {
		(void)curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
		return;
	}
	(void)curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
	(void)curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, o->method);
	(void)curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)o->body_bytes);
	(void)curl_easy_setopt(c, CURLOPT_READFUNCTION, on_send);
	(void)curl_easy_setopt(c, CURLOPT_READDATA, x);
	(void)curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
	(void)curl_easy_setopt(c, CURLOPT_SEEKDATA, x);
}

static void add_field(struct httptransfer *x, const char *field)
{
	x->fields = curl_slist_append(x->fields, field);
	assert(x->fields);
}

static void set_question(struct httptransfer *x, const struct httptransfer_options *o)
{
	char range[32];

	if (o->accept) {
		cleanup_free char *field = mem_format("Accept: %s", o->accept);

		add_field(x, field);
	}
	for (const char *const *field = o->fields; field && *field; field++)
		add_field(x, *field);
	if (x->fields)
		(void)curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->fields);
	if (o->method)
		set_method(x, o);
	if (o->form)
		(void)curl_easy_setopt(x->easy, CURLOPT_COPYPOSTFIELDS, o->form);
	if (o->range_from > 0) {
		/* not CURLOPT_RESUME_FROM: that fails if the server ignores the range */
		(void)snprintf(range, sizeof(range), "%llu-", (unsigned long long)o->range_from);
		(void)curl_easy_setopt(x->easy, CURLOPT_RANGE, range);
	}
}

int httptransfer_start(struct httptransfer_loop *l, const struct httptransfer_options *o,
		       struct httptransfer **ret, struct err *e)
{
	CLEANUP(httptransfer_freep) struct httptransfer *x = mem_alloc(sizeof(*x));
	CURLMcode code;

	x->on_body = o->on_body;
	x->context = o->context;
	buf_init(&x->words, HTTPTRANSFER_WORDS_MAX_BYTES);
	x->easy = curl_easy_init();
	assert(x->easy);
	set_callbacks(x);
	set_limits(x, o);
	set_proxy(x);
	set_trust(x);
	set_place(x, o);
	set_login(x, o);
	set_question(x, o);
	code = curl_multi_add_handle(l->multi, x->easy);
	if (code != CURLM_OK)
		return err_set(e, ERR_SYSTEM, "start a request: %s", curl_multi_strerror(code));
	x->loop = l;
	*ret = take_ptr(x);
	return 0;
}

void httptransfer_free(struct httptransfer *x)
{
	if (!x)
		return;
	if (x->loop)
		(void)curl_multi_remove_handle(x->loop->multi, x->easy);
	curl_easy_cleanup(x->easy);
	curl_slist_free_all(x->fields);
	buf_done(&x->words);
	free(x);
}

void httptransfer_freep(struct httptransfer **x)
{
	httptransfer_free(*x);
	*x = NULL;
}

int httptransfer_wait(struct httptransfer *x, struct err *e)
{
	while (!x->is_done)
		if (httptransfer_loop_turn(x->loop, MS_PER_S, e) < 0)
			return -1;
	return 0;
}
