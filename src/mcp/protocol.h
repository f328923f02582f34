#pragma once
/*
 * protocol - the messages of the Model Context Protocol.
 *
 * One server supports two eras. Legacy (2024-11-05 to 2025-11-25) starts with `initialize`; modern
 * (2026-07-28) has no handshake, each request has its version. The era is determined for each
 * message. Independent of pipes and processes: the owner passes messages in, gets lines out, and
 * executes calls.
 *
 * Hostile input: every byte of a message.
 */
#include "base/err.h"
#include "policy/operation.h"

#include <jansson.h>
#include <stdbool.h>

#define PROTOCOL_LINE_MAX_BYTES (16u << 20)
#define PROTOCOL_CALLS_MAX 512u /* not answered yet */
#define PROTOCOL_BATCH_MAX 256u

enum protocol_era { PROTOCOL_LEGACY, PROTOCOL_MODERN };

struct protocol;
struct protocol_batch;

/* A request to call a tool, until it is answered. */
struct protocol_call {
	json_t *id;
	enum protocol_era era;
	enum operation_id operation;
	json_t *arguments;            /* NULL: none */
	json_t *progress_token;       /* NULL: no progress wanted */
	uint64_t progress;            /* the last one sent */
	struct protocol_batch *batch; /* NULL: not in a batch */
};
void protocol_call_free(struct protocol_call *c);

struct protocol_handler {
	void *context;
	/* Sends a complete message as one line. Takes ownership of it. */
	void (*send)(void *context, json_t *message);
	/* Takes ownership of the call; protocol_answer() or protocol_drop() ends it. */
	void (*call)(void *context, struct protocol_call *call);
	/* The client no longer wants the answer to this id. */
	void (*cancel)(void *context, const json_t *id);
	unsigned (*count_calls)(void *context);
	/* Requests are answered at once: a subscription is acknowledged and ends with a result. */
	bool ends_subscriptions;
};

struct protocol *protocol_new(const struct protocol_handler *handler);
void protocol_free(struct protocol *p);

/*
 * For a transport with additional information: HTTP's headers. Afterwards messages belong to the
 * modern era, or to the legacy one with this version (NULL: no handshake yet), whatever they
 * contain.
 */
void protocol_set_modern(struct protocol *p);
void protocol_set_version(struct protocol *p, const char *version);
const char *protocol_version(const struct protocol *p); /* NULL: no handshake yet */
/* Returns one of the legacy versions, or NULL. */
const char *protocol_find_version(const char *text);

/* Processes one line, without its end. */
void protocol_take(struct protocol *p, const char *line, size_t len);
/* Reports a line that was too long. */
void protocol_refuse_long(struct protocol *p);

/*
 * The result of a call: an object of an operation, or one with "error" (rpc/call.h). Takes both.
 */
void protocol_answer(struct protocol *p, struct protocol_call *call, json_t *result);
/* Sends a failure as text for the model. */
void protocol_answer_failure(struct protocol *p, struct protocol_call *call, const char *text);
/* Sends nothing: the call was cancelled. */
void protocol_drop(struct protocol *p, struct protocol_call *call);
void protocol_tell_progress(struct protocol *p, struct protocol_call *call, const char *words);
