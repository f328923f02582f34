#pragma once
/*
 * webcall - one request with its call and answer.
 *
 * If a client disconnects its call is cancelled; the webcall lives on until the worker process has
 * ended. Answers have an envelope: {"success": true, "data": ...} or {"success": false, "error":
 * "..."}. Sending the answer ends a webcall: do not use it afterwards.
 */
#include "http/api.h"
#include "http/eventcall.h"

#include <stdbool.h>

#define WEBCALL_INPUT_HIGH_BYTES (1u << 20)
#define WEBCALL_OUTPUT_MAX_BYTES (4u << 20) /* of "output" in an answer */
/* Maxima of one body: 64 commands of 4096 words each fit. */
#define WEBCALL_VALUES_MAX 300000u
#define WEBCALL_CONTAINERS_MAX 16384u

struct webcall;
typedef int webcall_args_fn(struct webcall *x, json_t *body, json_t **ret, struct err *e);
typedef void webcall_tell_fn(struct webcall *x, json_t *result);
typedef void webcall_direct_fn(struct api *a, struct connection *c);

enum route_flags {
	ROUTE_OPEN = 1 << 0,      /* needs no key */
	ROUTE_STREAM = 1 << 1,    /* sends output as it arrives */
	ROUTE_BODY = 1 << 2,      /* has a JSON body */
	ROUTE_TAR = 1 << 3,       /* its body, or its answer, is a tar archive */
	ROUTE_ANY_QUERY = 1 << 4, /* a protocol's clients may add their own */
};

struct route {
	const char *method, *pattern; /* "{}" is one component of a path, "{*}" the rest */
	unsigned flags;
	enum operation_id operation; /* if .direct is NULL */
	webcall_args_fn *args;
	webcall_tell_fn *tell;
	webcall_direct_fn *direct;
	const char *query; /* names allowed in the query: "a b"; NULL: none */
	const char *words; /* what encode_words() answers */
};

struct webcall {
	struct api *api;
	struct connection *connection; /* NULL: the client is gone */
	const struct route *route;
	struct eventcall running;
	const char *owner;              /* of the request's key; NULL: it sees all sandboxes */
	struct slots_place place;       /* the slot of its call */
	void (*on_gone)(void *context); /* for a route with its own state */
	void *context;
	char *parts[3]; /* components of the path */
	unsigned part_count;
	struct buf output; /* both streams, as they arrived */
	bool is_counted;   /* a call is running */
	bool is_raw, has_begun;
	bool is_whole;    /* a file must be complete */
	bool is_counting; /* http/metrics waits for this one */
	bool is_tailing;  /* a timer holds and frees it: http/direct's events */

	uint64_t link_life_s; /* of http/siteroute's link */

	/* if one call follows another */
	json_t *commands, *results;
	size_t next_command;
};

/* Content type of the bytes that a route returns. */
#define WEBCALL_BYTES_TYPE(x)                                                                      \
	((x)->route->flags & ROUTE_TAR ? "application/x-tar" : "application/octet-stream")

struct webcall *webcall_new(struct api *a, struct connection *c, const struct route *r,
			    const char *owner);
void webcall_free(struct webcall *x);

/* ---- calls ---- */

/* Prepares another call of the same webcall; the last one must have been released. */
void webcall_prepare(struct webcall *x);
ERR_CHECKED int webcall_start(struct webcall *x, const json_t *args, struct err *e);
/* Chooses the slot of a call; one of the server itself, and one that streams, keep their kinds. */
void webcall_choose_place(struct slots_place *p, const struct operation *o, const char *sandbox);
/* `owner` NULL: a caller who sees all sandboxes. Each owner has its own rate limit. */
ERR_CHECKED int webcall_check_rate(struct api *a, const char *owner, const struct operation *o,
				   uint64_t *ret_wait_ms, struct err *e);

/* ---- answers; each takes ownership of its JSON ---- */

void webcall_reply_json(struct connection *c, int status, json_t *value,
			const struct connection_header *extra);
void webcall_reply_data(struct connection *c, int status, json_t *data);
void webcall_reply_error(struct connection *c, int status, const char *words);
void webcall_reply_failure(struct connection *c, const json_t *error);
int webcall_status(const char *code); /* for a worker process's failure */
/* Is the JSON small enough to parse: WEBCALL_VALUES_MAX, WEBCALL_CONTAINERS_MAX? */
bool webcall_is_modest(const struct buf *body);
/* Parses the body as JSON; false: an error was sent. */
bool webcall_read_body(struct connection *c, json_t **ret);

/* Returns the result, unless it is an error: then sends the error and returns NULL. */
json_t *webcall_take_success(struct webcall *x, json_t *result);

json_t *webcall_text(const struct buf *b); /* any bytes as a string */
json_t *webcall_time(json_int_t seconds);

/* ---- output as it arrives ---- */

void webcall_on_combined(void *context, enum call_stream stream, const char *bytes, size_t len);
void webcall_on_streamed(void *context, enum call_stream stream, const char *bytes, size_t len);
void webcall_send_event(struct connection *c, const char *kind, json_t *data);
void webcall_begin_events(struct webcall *x);
