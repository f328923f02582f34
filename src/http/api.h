#pragma once
/*
 * api - routes and their answers; docs/design/http.md describes the contract.
 *
 * Every route is a row in api.c: a method, a pattern, an operation (policy/operation), how its
 * arguments are made of the request, and how its result is told. Calls run beside each other
 * (rpc/call); a client that goes away takes its call with it.
 */
#include "base/buf.h"
#include "http/connection.h"
#include "http/keys.h"
#include "http/sitelink.h"
#include "http/slots.h"
#include "mcp/protocol.h"
#include "rpc/call.h"
#include "rpc/savedoutput.h"
#include "policy/ratelimit.h"

#define API_RATES_MAX 2u
#define API_BATCH_MAX 64u

struct api_call; /* a running call of the Model Context Protocol */

#define API_SESSIONS_MAX 1024u         /* the least recently used one is evicted */
#define API_SESSIONS_OF_OWNER_MAX 256u /* from here on, a key evicts its own sessions */
#define API_SESSION_ID_BYTES 32u

/* Sessions of the protocol's legacy era; http/mcproute manages them. */
struct api_session {
	char id[API_SESSION_ID_BYTES + 1];
	const char *owner; /* of the key that opened it; NULL: one that sees all sandboxes */
	const char *version;
	uint64_t used_ms;
};

#define API_LATENCY_STEPS 12u
#define API_LIMIT_KINDS 4u
#define API_STATE_KINDS 6u

/* Counts of calls that ran a command, since the server started. */
struct api_counts {
	uint64_t latency[API_LATENCY_STEPS]; /* a histogram */
	double latency_sum_s;
	uint64_t warm_starts, cold_starts;
	uint64_t denials;                     /* network denials */
	uint64_t unanswered;                  /* calls ended by our deadline */
	uint64_t freezes;                     /* for checkpoints and forks */
	uint64_t restarts;                    /* of named sandboxes: starts, restores */
	uint64_t outdated;                    /* supervisors of another build, when last counted */
	uint64_t limits_hit[API_LIMIT_KINDS]; /* metrics.c names them */
	uint64_t states[API_STATE_KINDS];     /* sandboxes per state, when last counted */
	bool has_states, is_counting;
};

struct api {
	struct event_base *base;
	struct call_options options;
	struct keys keys;
	struct ratelimit *rates[API_RATES_MAX];
	unsigned rate_count;
	const char *audit_path;
	char *state_path; /* the state directory */
	struct connection_list connections;
	struct api_session *sessions;
	unsigned session_count;
	struct api_call *mcp_calls;
	struct savedoutput_table saved; /* of commands called over /mcp */
	struct slots slots;
	uint64_t request_count, call_count, refused_count;
	uint64_t started_ms;
	struct api_counts counts; /* updated by http/metrics */
	struct sitereach_list *sites;
	struct sitelink link;
	const char *domain; /* of URLs of sandboxes, beside localhost; NULL: none */
};

struct connection_handler api_handler(struct api *a);

/* NULL: the request is meant for us, and not from a page of another origin; else why not. */
const char *api_check_origin(const struct connection *c);

/* ---- for mcproute ---- */

/* Calls `gone` when the answer is complete, or the client is gone. */
void api_follow(struct connection *c, void (*gone)(void *context), void *context);
/* Owner of the request's key; NULL: it sees all sandboxes. */
const char *api_owner(const struct connection *c);

/* Returns NULL and sets `e` if it was not started. `on_over` gets NULL for a cancelled call. */
struct api_call *api_start_mcp(struct api *a, const struct protocol_call *call, const char *session,
			       const char *owner, void (*on_over_fn)(void *context, json_t *result),
			       void (*on_progress)(void *context, const char *words), void *context,
			       struct err *e);
void api_cancel(struct api_call *k);
void api_cancel_mcp(struct api *a, const char *session, const json_t *id);
