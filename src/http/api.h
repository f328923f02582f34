#pragma once
/*
 * api - routes, and what they answer; docs/design/http.md describes the contract.
 *
 * Every route is a row in api.c: a method, a pattern, an operation (policy/operation), how its
 * arguments are made of the request, and how its result is told. Calls run beside each other
 * (ops/call); a client that goes away takes its call with it.
 */
#include "base/buf.h"
#include "http/connection.h"
#include "ops/call.h"
#include "policy/ratelimit.h"

#define API_RUNNING_MAX 64u /* calls at once; beyond: 429 */
#define API_KEYS_MAX 64u
#define API_RATES_MAX 2u
#define API_BATCH_MAX 64u

struct api {
	struct event_base *base;
	struct call_options options;
	char *keys[API_KEYS_MAX];
	unsigned key_count;
	struct ratelimit *rates[API_RATES_MAX];
	unsigned rate_count;
	const char *audit_path;
	struct connection_list connections;
	unsigned running;
	uint64_t request_count, call_count, refused_count;
	uint64_t started_ms;
	uint64_t latency[12]; /* of calls that ran a command: a histogram */
	double latency_sum_s;
};

struct connection_handler api_handler(struct api *a);
