#pragma once
/*
 * httptransfer - HTTP requests on top of libcurl, and the loop that runs several at once.
 *
 * A thin layer over libcurl's multi interface that limits what a hostile server can do: only http
 * and https, never from https to http, limited redirects and headers, unwanted bodies cut, stalled
 * or endless answers ended, a redirect from a public to a non-public address refused (behind a
 * proxy only the proxy's address is known). Credentials are passed to libcurl as such, never as a
 * header of ours, so that libcurl does not send them to another host, port or protocol
 * (CURLOPT_UNRESTRICTED_AUTH stays off).
 */
#include "base/buf.h"
#include "base/err.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#define HTTPTRANSFER_REDIRECTS_MAX 8
#define HTTPTRANSFER_HEADERS_MAX_BYTES (128u << 10) /* of all answers of one transfer together */
#define HTTPTRANSFER_WORDS_MAX_BYTES                                                               \
	(64u << 10) /* of the body of an answer other than 200 or 206 */
#define HTTPTRANSFER_SPEED_MIN_BYTES                                                               \
	1024u /* per second, during the stall time: slower counts as stalled */
#define HTTPTRANSFER_REFUSED_MAX_BYTES 256u
#define HTTPTRANSFER_WATCHED_MAX 64u
#define HTTPTRANSFER_TICK_MS 50u

/* ---- the loop ---- */

struct httptransfer_loop;

struct httptransfer_hooks {
	void *context;
	/* Called regularly, and when a watched descriptor is ready. -1 with `e` ends the turn. */
	int (*on_tick)(void *context, struct err *e);
	unsigned (*get_watched)(void *context, int ret_fds[HTTPTRANSFER_WATCHED_MAX]);
};

struct httptransfer_loop *httptransfer_loop_new(void);
void httptransfer_loop_free(struct httptransfer_loop *l); /* free all transfers before */
void httptransfer_loop_set_hooks(struct httptransfer_loop *l,
				 const struct httptransfer_hooks *hooks);

/* After the deadline every turn fails. 0: none. */
void httptransfer_loop_set_deadline(struct httptransfer_loop *l, uint64_t deadline_ms,
				    uint64_t total_ms);

/* Runs all transfers, then waits at most timeout_ms for an event. */
ERR_CHECKED int httptransfer_loop_turn(struct httptransfer_loop *l, uint64_t timeout_ms,
				       struct err *e);

/* ---- transfers ---- */

enum httptransfer_flags {
	HTTPTRANSFER_UNVERIFIED = 1 << 0,        /* do not verify certificates */
	HTTPTRANSFER_NO_REDIRECTS = 1 << 1,      /* return a redirect as the answer */
	HTTPTRANSFER_PRIVATE_REDIRECTS = 1 << 2, /* redirects may lead to private addresses */
	HTTPTRANSFER_FROM_PUBLIC =
		1 << 3, /* a public server named this URL: treat it like a redirect */
};

/* Copied if needed after the call. */
struct httptransfer_options {
	const char *url;
	const char *accept; /* NULL: anything */
	const char *bearer; /* or user and password, or none */
	const char *user, *password;
	const char *form;   /* a POST with this body; NULL: a GET */
	const char *method; /* "HEAD", "POST", "PATCH", "PUT"; NULL: by .form. Never redirected */
	/* its body: so many bytes of a file, borrowed until the transfer ends; -1 or 0: none */
	int body_fd;
	uint64_t body_from, body_bytes;
	const char *const *fields; /* more header fields, NULL-ended; NULL: none */
	uint64_t range_from;       /* 0: no Range */
	uint64_t connect_max_ms;
	uint64_t stall_max_s;
	uint64_t total_max_ms; /* 0: no limit while bytes arrive */
	unsigned flags;
	/* Called for each piece of the body of a 200 or 206; -1 with `e` ends the transfer. */
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
};

struct httptransfer {
	CURL *easy;
	struct httptransfer_loop *loop;
	struct curl_slist *fields;
	int body_fd;
	uint64_t body_from, body_bytes, body_sent;
	bool has_method;
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
	size_t header_bytes;
	bool is_plain; /* it started with http: */
	bool may_become_private;
	bool was_sent;        /* HTTPTRANSFER_FROM_PUBLIC */
	bool began_in_public; /* its first answer came from a public address */
	char refused[HTTPTRANSFER_REFUSED_MAX_BYTES]; /* why a redirect was refused; "" */

	/* valid if is_done */
	bool is_done;
	CURLcode code;
	long status;         /* 0: no answer */
	bool is_ended_by_us; /* on_body failed, with `failure` */
	struct err failure;
	struct buf words;              /* the body of an answer other than 200 and 206 */
	char problem[CURL_ERROR_SIZE]; /* libcurl's message */
};

ERR_CHECKED int httptransfer_start(struct httptransfer_loop *l,
				   const struct httptransfer_options *o, struct httptransfer **ret,
				   struct err *e);
void httptransfer_free(struct httptransfer *x); /* aborts it if it is running; accepts NULL */
void httptransfer_freep(struct httptransfer **x);

/* Runs the loop until the transfer is done. */
ERR_CHECKED int httptransfer_wait(struct httptransfer *x, struct err *e);

long httptransfer_get_status(const struct httptransfer *x); /* also within on_body */
/* The index-th header of that name of the last answer, or NULL. */
const char *httptransfer_get_header(const struct httptransfer *x, const char *name, size_t index);
bool httptransfer_is_redirect(const struct httptransfer *x); /* one that was not followed */
bool httptransfer_was_redirected(
	const struct httptransfer *x); /* another server may have answered */
uint64_t httptransfer_get_retry_after_ms(const struct httptransfer *x); /* 0: not given */

/* libcurl's message for a failure before or after an answer. */
const char *httptransfer_problem(const struct httptransfer *x);

/* Is a retry useful: no answer, an incomplete answer, 408, 429 or 5xx? */
bool httptransfer_is_transient(const struct httptransfer *x);
