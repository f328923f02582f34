#pragma once
/*
 * exchange - one HTTP request and its answer, and the loop that moves several at once.
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

#define EXCHANGE_REDIRECTS_MAX 8
#define EXCHANGE_HEADERS_MAX_BYTES (128u << 10) /* of all answers of one exchange together */
#define EXCHANGE_WORDS_MAX_BYTES (64u << 10) /* of the body of an answer that is not 200 or 206 */
#define EXCHANGE_SPEED_MIN_BYTES 1024u /* a second, over the time of a stall: slower is broken */
#define EXCHANGE_REFUSED_MAX_BYTES 256u
#define EXCHANGE_WATCHED_MAX 64u
#define EXCHANGE_TICK_MS 50u

/* ---- the loop ---- */

struct exchange_loop;

struct exchange_hooks {
	void *context;
	/* Often, and whenever a watched descriptor is ready. -1 and `e` ends the turn. */
	int (*on_tick)(void *context, struct err *e);
	unsigned (*get_watched)(void *context, int ret_fds[EXCHANGE_WATCHED_MAX]);
};

struct exchange_loop *exchange_loop_new(void);
void exchange_loop_free(struct exchange_loop *l); /* every exchange was freed before */
void exchange_loop_set_hooks(struct exchange_loop *l, const struct exchange_hooks *hooks);

/* From then on every turn fails. 0: never. */
void exchange_loop_set_deadline(struct exchange_loop *l, uint64_t deadline_ms, uint64_t total_ms);

/* Moves everything, then waits at most timeout_ms, less when something happens. */
ERR_CHECKED int exchange_loop_turn(struct exchange_loop *l, uint64_t timeout_ms, struct err *e);

/* ---- an exchange ---- */

enum exchange_flags {
	EXCHANGE_UNVERIFIED = 1 << 0,        /* any certificate will do */
	EXCHANGE_NO_REDIRECTS = 1 << 1,      /* a redirect is the answer */
	EXCHANGE_PRIVATE_REDIRECTS = 1 << 2, /* may lead to private addresses */
	EXCHANGE_FROM_PUBLIC =
		1 << 3, /* a public address has named this one: as after a redirect */
};

/* Copied where it must outlive the call. */
struct exchange_options {
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

struct exchange {
	CURL *easy;
	struct exchange_loop *loop;
	struct curl_slist *fields;
	int (*on_body)(void *context, const char *bytes, size_t len, struct err *e);
	void *context;
	size_t header_bytes;
	bool is_plain; /* it began with http: */
	bool may_become_private;
	bool was_sent;                            /* EXCHANGE_FROM_PUBLIC */
	bool began_in_public;                     /* its first answer came from a public address */
	char refused[EXCHANGE_REFUSED_MAX_BYTES]; /* why a redirect was not followed; "" */

	/* set when is_done */
	bool is_done;
	CURLcode code;
	long status;         /* 0: there was no answer */
	bool is_ended_by_us; /* on_body said no, with `failure` */
	struct err failure;
	struct buf words;              /* the body of another answer than 200 and 206 */
	char problem[CURL_ERROR_SIZE]; /* libcurl's words */
};

ERR_CHECKED int exchange_start(struct exchange_loop *l, const struct exchange_options *o,
			       struct exchange **ret, struct err *e);
void exchange_free(struct exchange *x); /* ends it when it is under way; NULL is fine */
void exchange_freep(struct exchange **x);

/* Turns the loop until it is done. */
ERR_CHECKED int exchange_wait(struct exchange *x, struct err *e);

long exchange_get_status(const struct exchange *x); /* also from on_body */
/* The index-th header of that name of the last answer, or NULL. */
const char *exchange_get_header(const struct exchange *x, const char *name, size_t index);
bool exchange_is_redirect(const struct exchange *x);    /* that was not followed */
bool exchange_was_redirected(const struct exchange *x); /* another place may have answered */
uint64_t exchange_get_retry_after_ms(const struct exchange *x); /* 0: not said */

/* libcurl's words for what went wrong before or after an answer. */
const char *exchange_problem(const struct exchange *x);

/* Is it worth asking again: no answer, half an answer, 408, 429 or 5xx? */
bool exchange_is_transient(const struct exchange *x);
