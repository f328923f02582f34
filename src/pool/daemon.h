#pragma once
/*
 * daemon - keeps pools of sandboxes ready, one pool per key.
 *
 * It is optional. A pool is created by `daemon prewarm`, by [daemon] in the user's configuration,
 * or by a claim without a match, which is likely to be repeated. The daemon fills pools in the
 * background up to a maximum, and empties them when unused or when memory is short.
 *
 * A claimed sandbox belongs to its client and continues when the daemon ends.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;

#define DAEMON_LOG "daemon.log" /* base/logfile, in the state directory */
#define DAEMON_POOLS_MAX 16u
#define DAEMON_WARM_DEFAULT 3u /* in each pool */
#define DAEMON_WARM_MAX 64u    /* in all pools */
#define DAEMON_CLIENTS_MAX 256u
#define DAEMON_IDLE_MS (10u * 60 * 1000)     /* then an unused pool is dropped */
#define DAEMON_WARM_AGE_MS (10u * 60 * 1000) /* then a waiting sandbox is rebuilt */
#define DAEMON_SWEEP_MS 10000u               /* interval for removing expired sandboxes */
#define DAEMON_FREE_MIN_PERCENT 10u          /* of memory */

struct daemon_pool {
	const char *key;
	size_t key_len;
	unsigned min_warm;
};

struct daemon_options {
	const struct ak *ak;
	const struct daemon_pool *pools; /* never dropped */
	unsigned pool_count;
	unsigned min_warm; /* of pools that claims create; 0: claims create none */
	unsigned max_warm; /* of one pool */
	int listen_fd;     /* -1: the daemon opens its own */
	int ready_fd;      /* closed when it listens; -1: none */
};

/* Serves until it is stopped. ERR_EXISTS if another daemon is running. */
ERR_CHECKED int daemon_serve(const struct daemon_options *o, struct err *e);

/* ---- the client's side ---- */

ERR_CHECKED int daemon_ask_status(const struct ak *ak, bool is_json, char **ret_text,
				  struct err *e);
/* Waits until the daemon has ended. */
ERR_CHECKED int daemon_ask_stop(const struct ak *ak, struct err *e);

struct images;
struct policy;
ERR_CHECKED int daemon_ask_prewarm(const struct ak *ak, const struct policy *p,
				   const struct images *image, unsigned count, struct err *e);
