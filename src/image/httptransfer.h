#pragma once
/*
 * httptransfer - one HTTP request and its answer, and the loop that moves several at once.
 *
 * A thin layer over libcurl's multi interface with all of a hostile server's freedom bounded: only
 * http and https, never from https down to http, redirects counted, headers counted, a body that
 * is not wanted cut short, a stalled or endless answer ended, a redirect from a public address to
 * one that is not public refused (through a proxy its address is all that is known). Credentials
 * are given to libcurl as such, never as a header of ours, so that it does not take them along to
 * another host, port or protocol (CURLOPT_UNRESTRICTED_AUTH stays off).
 */
#include "base/buf.h"
#include "base/err.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#define HTTPTRANSFER_REDIRECTS_MAX 8
#define HTTPTRANSFER_HEADERS_MAX_BYTES (128u << 10) /* of all answers of one exchange together */
#define HTTPTRANSFER_WORDS_MAX_BYTES                                                               \
	(64u << 10) /* of the body of an answer that is not 200 or 206 */
#define HTTPTRANSFER_SPEED_MIN_BYTES                                                               \
	1024u /* a second, over the time of a stall: slower is broken */
#define HTTPTRANSFER_REFUSED_MAX_BYTES 256u
#define HTTPTRANSFER_WATCHED_MAX 64u
#define HTTPTRANSFER_TICK_MS 50u

/* ---- the loop ---- */

struct httptransfer_loop;

struct httptransfer_hooks {
	void *context;
	/* Often, and whenever a watched descriptor is ready. -1 and `e` ends the turn. */
	int (*on_tick)(void *context, struct err *e);
	unsigned (*get_watched)(void *context, int ret_fds[HTTPTRANSFER_WATCHED_MAX]);
};

struct httptransfer_loop *httptransfer_loop_new(void);
void httptransfer_loop_free(struct httptransfer_loop *l); /* every exchange was freed before */
void httptransfer_loop_set_hooks(struct httptransfer_loop *l,
				 const struct httptransfer_hooks *hooks);

/* From then on every turn fails. 0: never. */
void httptransfer_loop_set_deadline(struct httptransfer_loop *l, uint64_t deadline_ms,
				    uint64_t total_ms);

/* Moves everything, then waits at most timeout_ms, less when something happens. */
ERR_CHECKED int httptransfer_loop_turn(struct httptransfer_loop *l, uint64_t timeout_ms,
				       struct err *e);

/* ---- an exchange ---- */

enum httptransfer_flags {
	HTTPTRANSFER_UNVERIFIED = 1 << 0,        /* any certificate will do */
	HTTPTRANSFER_NO_REDIRECTS = 1 << 1,      /* a redirect is the answer */
	HTTPTRANSFER_PRIVATE_REDIRECTS = 1 << 2, /* may lead to private addresses */
	HTTPTRANSFER_FROM_PUBLIC =
		1 << 3, /* a public address has named this one: as after a redirect */
};

/* Copied where it must outlive the call. */
struct httptransfer_options {
	const char *url;
	const char *accept; /* NULL: anything */
	const char *bearer; /* or user and password, or nothing */
	const char *user, *password;
	const char *form;    /* a POST with this body; NULL: a GET */
	uint64_t range_from; /* 0: no Range */
	uint64_t connect_max_ms;
	uint64_t stall_max_s;
	uint64_t total_max_ms; /* 0: no end, as long as bytes come */
	unsigned flags;
	/* Each piece of the body of a 200 or 206; -1 and `e` ends the exchange. */
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
};

struct httptransfer {
	CURL *easy;
	struct httptransfer_loop *loop;
	struct curl_slist *fields;
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
	size_t header_bytes;
	bool is_plain; /* it began with http: */
	bool may_become_private;
	bool was_sent;        /* HTTPTRANSFER_FROM_PUBLIC */
	bool began_in_public; /* its first answer came from a public address */
	char refused[HTTPTRANSFER_REFUSED_MAX_BYTES]; /* why a redirect was not followed; "" */

	/* set when is_done */
	bool is_done;
	CURLcode code;
	long status;         /* 0: there was no answer */
	bool is_ended_by_us; /* on_body said no, with `failure` */
	struct err failure;
	struct buf words;              /* the body of another answer than 200 and 206 */
	char problem[CURL_ERROR_SIZE]; /* libcurl's words */
};

ERR_CHECKED int httptransfer_start(struct httptransfer_loop *l,
				   const struct httptransfer_options *o, struct httptransfer **ret,
				   struct err *e);
void httptransfer_free(struct httptransfer *x); /* ends it when it is under way; NULL is fine */
void httptransfer_freep(struct httptransfer **x);

/* Turns the loop until it is done. */
ERR_CHECKED int httptransfer_wait(struct httptransfer *x, struct err *e);

long httptransfer_get_status(const struct httptransfer *x); /* also from on_body */
/* The index-th header of that name of the last answer, or NULL. */
const char *httptransfer_get_header(const struct httptransfer *x, const char *name, size_t index);
bool httptransfer_is_redirect(const struct httptransfer *x); /* that was not followed */
bool httptransfer_was_redirected(
	const struct httptransfer *x); /* another place may have answered */
uint64_t httptransfer_get_retry_after_ms(const struct httptransfer *x); /* 0: not said */

/* libcurl's words for what went wrong before or after an answer. */
const char *httptransfer_problem(const struct httptransfer *x);

/* Is it worth asking again: no answer, half an answer, 408, 429 or 5xx? */
bool httptransfer_is_transient(const struct httptransfer *x);
