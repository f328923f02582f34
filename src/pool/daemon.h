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
#define DAEMON_LOCK "daemon.lock"
#define DAEMON_WARM_DEFAULT 3u /* in each pool */
#define DAEMON_CLIENTS_MAX 256u
#define DAEMON_SWEEP_MS 10000u /* interval for removing expired sandboxes */

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
