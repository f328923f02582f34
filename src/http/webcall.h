#pragma once
/*
 * webcall - one request and its answer: a call under way for a connection.
 *
 * A client that goes away cancels its call; the webcall lives on by itself until the worker process
 * has ended. Answers have an envelope: {"success": true, "data": ...} or {"success": false,
 * "error":
 * "..."}. Answering ends a webcall: it is not touched afterwards.
 */
#include "http/api.h"
#include "http/eventcall.h"

#include <stdbool.h>

#define WEBCALL_INPUT_HIGH_BYTES (1u << 20)
#define WEBCALL_OUTPUT_MAX_BYTES (4u << 20) /* of "output" in an answer */
/* Of one body: 64 commands of 4096 words each fit. */
#define WEBCALL_VALUES_MAX 300000u
#define WEBCALL_CONTAINERS_MAX 16384u

struct webcall;
typedef int webcall_args_fn(struct webcall *x, json_t *body, json_t **ret, struct err *e);
typedef void webcall_tell_fn(struct webcall *x, json_t *result);
typedef void webcall_direct_fn(struct api *a, struct connection *c);

enum route_flags {
	ROUTE_OPEN = 1 << 0,      /* needs no key */
	ROUTE_STREAM = 1 << 1,    /* output goes out as it comes */
	ROUTE_BODY = 1 << 2,      /* has a JSON body */
	ROUTE_TAR = 1 << 3,       /* its body, or its answer, is a tar archive */
	ROUTE_ANY_QUERY = 1 << 4, /* clients of a protocol may have their own */
};

struct route {
	const char *method, *pattern; /* "{}" is one part of a path, "{*}" all that is left */
	unsigned flags;
	enum operation_id operation; /* where .direct is NULL */
	webcall_args_fn *args;
	webcall_tell_fn *tell;
	webcall_direct_fn *direct;
	const char *query; /* parameters that may be in the query: "a b"; NULL: none */
};

struct webcall {
	struct api *api;
	struct connection *connection; /* NULL: it has gone */
	const struct route *route;
	struct eventcall running;
	const char *owner;              /* of the key that asks; NULL: it sees all */
	struct slots_place place;       /* what its call takes */
	void (*on_gone)(void *context); /* of a route that keeps its own state */
	void *context;
	char *parts[3]; /* of the path */
	unsigned part_count;
	struct buf output; /* both streams, as they came */
	bool is_counted;   /* a call is under way */
	bool is_raw, has_begun;
	bool is_whole;    /* a file is wanted all or not at all */
	bool is_counting; /* http/metrics waits for it, and for no other */
	bool is_tailing;  /* a timer holds it, and releases it: http/direct's events */

	/* where one call follows another */
	json_t *commands, *results;
	size_t next_command;
};

/* Of the bytes that a route answers with. */
#define WEBCALL_BYTES_TYPE(x)                                                                      \
	((x)->route->flags & ROUTE_TAR ? "application/x-tar" : "application/octet-stream")

struct webcall *webcall_new(struct api *a, struct connection *c, const struct route *r,
			    const char *owner);
void webcall_free(struct webcall *x);

/* ---- calls ---- */

/* Before another call of the same webcall: what belongs to the last one has been released. */
void webcall_prepare(struct webcall *x);
ERR_CHECKED int webcall_start(struct webcall *x, const json_t *args, struct err *e);
/* Which places a call takes; one of the server's own account (SLOTS_READER) keeps its kind. */
void webcall_choose_place(struct slots_place *p, const struct operation *o, const char *sandbox);
/* `owner` NULL: one of those who see all. Each owner has its own allowance. */
ERR_CHECKED int webcall_check_rate(struct api *a, const char *owner, const struct operation *o,
				   uint64_t *ret_wait_ms, struct err *e);

/* ---- answers; each takes its JSON ---- */

void webcall_reply_json(struct connection *c, int status, json_t *value,
			const struct connection_header *extra);
void webcall_reply_data(struct connection *c, int status, json_t *data);
void webcall_reply_error(struct connection *c, int status, const char *words);
void webcall_reply_failure(struct connection *c, const json_t *error);
int webcall_status(const char *code); /* of a worker process's failure */
/* JSON of a size that may be read: WEBCALL_VALUES_MAX, WEBCALL_CONTAINERS_MAX. */
bool webcall_is_modest(const struct buf *body);
/* The body as JSON; false: it was answered. */
bool webcall_read_body(struct connection *c, json_t **ret);

/* The result, if it is none that says what went wrong: that is told here, and NULL comes back. */
json_t *webcall_take_success(struct webcall *x, json_t *result);

json_t *webcall_text(const struct buf *b); /* any bytes as a string */
json_t *webcall_time(json_int_t seconds);

/* ---- output as it comes ---- */

void webcall_on_combined(void *context, enum call_stream stream, const char *bytes, size_t len);
void webcall_on_streamed(void *context, enum call_stream stream, const char *bytes, size_t len);
void webcall_send_event(struct connection *c, const char *kind, json_t *data);
void webcall_begin_events(struct webcall *x);
