#pragma once
/*
 * daemon - keeps sandboxes ready: pools of them, by what they must be.
 *
 * Everything works without it. A pool is made by `daemon prewarm`, by [daemon] in the user's
 * configuration, or by a claim that found none: what was asked for once is likely asked for again.
 * Pools are filled in the background, bounded, emptied when nobody uses them or memory is short.
 *
 * A claimed sandbox is its client's: the daemon can end, and it goes on.
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
#define DAEMON_IDLE_MS (10u * 60 * 1000)     /* a pool that was not asked for */
#define DAEMON_WARM_AGE_MS (10u * 60 * 1000) /* a sandbox that waits longer is made anew */
#define DAEMON_SWEEP_MS 10000u               /* between two looks for what has expired */
#define DAEMON_FREE_MIN_PERCENT 10u          /* of memory */

struct daemon_pool {
	const char *key;
	size_t key_len;
	unsigned min_warm;
};

struct daemon_options {
	const struct ak *ak;
	const struct daemon_pool *pools; /* kept for ever */
	unsigned pool_count;
	unsigned min_warm; /* of pools that claims make; 0: they make none */
	unsigned max_warm; /* of one pool */
	int listen_fd;     /* -1: its own */
	int ready_fd;      /* closed when it listens; -1: nobody waits */
};

/* Serves until it is stopped. ERR_EXISTS when another one does. */
ERR_CHECKED int daemon_serve(const struct daemon_options *o, struct err *e);

/* ---- asking it ---- */

ERR_CHECKED int daemon_ask_status(const struct ak *ak, bool is_json, char **ret_text,
				  struct err *e);
/* Waits until it has gone. */
ERR_CHECKED int daemon_ask_stop(const struct ak *ak, struct err *e);

struct images;
struct policy;
ERR_CHECKED int daemon_ask_prewarm(const struct ak *ak, const struct policy *p,
				   const struct images *image, unsigned count, struct err *e);
