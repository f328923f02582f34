#pragma once
/*
 * protocol - the Model Context Protocol as messages: what comes in, what goes out.
 *
 * Two eras in one server. Legacy (2024-11-05 to 2025-11-25) begins with `initialize`; modern
 * (2026-07-28) has no handshake, each request says its version. Which it is, is decided for each
 * message by itself. Knows nothing of pipes or processes: whoever owns it gives messages in, gets
 * lines out, and carries out calls.
 *
 * Hostile: every byte of a message.
 */
#include "base/err.h"
#include "policy/operation.h"

#include <jansson.h>
#include <stdbool.h>

#define PROTOCOL_LINE_MAX_BYTES (16u << 20)
#define PROTOCOL_CALLS_MAX 512u /* that have not been answered */
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
	json_t *progress_token;       /* NULL: nobody wants to know */
	uint64_t progress;            /* the last that was told */
	struct protocol_batch *batch; /* NULL: it came alone */
};
void protocol_call_free(struct protocol_call *c);

struct protocol_handler {
	void *context;
	/* A whole message, to be sent as one line. Takes it. */
	void (*send)(void *context, json_t *message);
	/* Takes the call; protocol_answer() or protocol_drop() ends it. */
	void (*call)(void *context, struct protocol_call *call);
	/* The client does not want the answer to this id any more. */
	void (*cancel)(void *context, const json_t *id);
	unsigned (*count_calls)(void *context);
	/* Requests are answered at once: a subscription is acknowledged and ends with a result. */
	bool ends_subscriptions;
};

struct protocol *protocol_new(const struct protocol_handler *handler);
void protocol_free(struct protocol *p);

/*
 * For a transport that says more than the message: HTTP's headers. Afterwards messages are of the
 * modern era whatever they say, or of the legacy one in this version (NULL: no handshake yet).
 */
void protocol_set_modern(struct protocol *p);
void protocol_set_version(struct protocol *p, const char *version);
const char *protocol_version(const struct protocol *p); /* NULL: no handshake yet */
/* One of the dates of the legacy era, or NULL. */
const char *protocol_find_version(const char *text);

/* One line, without its end. */
void protocol_take(struct protocol *p, const char *line, size_t len);
/* A line that was too long to be kept. */
void protocol_refuse_long(struct protocol *p);

/*
 * The result of a call: an object of an operation, or one with "error" (rpc/call.h). Takes both.
 */
void protocol_answer(struct protocol *p, struct protocol_call *call, json_t *result);
/* A failure that is the model's to read. */
void protocol_answer_failure(struct protocol *p, struct protocol_call *call, const char *text);
/* Nothing is said: it was cancelled. */
void protocol_drop(struct protocol *p, struct protocol_call *call);
void protocol_tell_progress(struct protocol *p, struct protocol_call *call, const char *words);
