#pragma once
/*
 * pools - sandboxes that wait ready, and the processes that hold them.
 *
 * A pool is all waiting sandboxes of one key (pool/claim): a claim with that key takes any of them.
 * Each is held by a child process (pool/warm), which says on its channel when it is ready.
 */
#include "base/err.h"
#include "policy/policy.h"
#include "pool/claim.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ak;
struct logfile;

#define POOLS_MAX 16u
#define POOLS_WARM_MAX 64u                  /* waiting, in all pools */
#define POOLS_BUILDING_MAX 2u               /* at once; half the processors if fewer than four */
#define POOLS_LOOK_MS 1000u                 /* longest interval between two looks at all pools */
#define POOLS_IDLE_MS (10u * 60 * 1000)     /* then an unused pool is dropped */
#define POOLS_WARM_AGE_MS (10u * 60 * 1000) /* then a waiting sandbox is rebuilt */
#define POOLS_FREE_MIN_PERCENT 10u          /* of memory */

struct pools_waiting {
	pid_t pid;
	int channel_fd;  /* passed to the client */
	int init_fd;     /* passed to the client; -1: not ready */
	int owner_ns_fd; /* passed to the client; -1: none */
	struct claim_answer answer;
	uint64_t since_ms;
};

struct pools_pool {
	char *key;
	size_t key_len;
	struct policy policy;
	struct claim_key parts; /* of .key */
	unsigned min_warm;
	bool is_permanent;
	struct pools_waiting *waiting;
	unsigned waiting_count;
	uint64_t hits, misses, last_used_ms, not_before_ms;
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* why the last build failed; "" */
};

/* A child whose sandbox a client has claimed. */
struct pools_claimed {
	pid_t pid;
	const struct pools_pool *pool; /* NULL: it is gone */
	uint64_t since_ms;
};

struct pools {
	const struct ak *ak;
	struct logfile *log;
	struct pools_pool *list[POOLS_MAX];
	unsigned count;
	struct pools_claimed *claimed;
	unsigned in_use; /* entries of .claimed */
	uint64_t given;
	unsigned processor_count, building_max;
	bool is_short; /* of memory */
};

void pools_init(struct pools *all, const struct ak *ak, struct logfile *log);
void pools_done(struct pools *all); /* claimed sandboxes keep running */

/* NULL: none has this key. */
struct pools_pool *pools_find(struct pools *all, const char *key, size_t len);
/* Adds a pool, dropping the least recently used one if there are POOLS_MAX. NULL: *e says why. */
struct pools_pool *pools_add(struct pools *all, const char *key, size_t len, unsigned min_warm,
			     struct err *e);
unsigned pools_count_waiting(const struct pools *all, bool is_building_only);

/* Starts to build what is missing. Returns when to look again, POOLS_LOOK_MS at most. */
unsigned pools_fill(struct pools *all);
/* Drops unused pools and old sandboxes; all that wait if memory is short. */
void pools_age(struct pools *all);
/* Collects children that ended. */
void pools_reap(struct pools *all);
/* Reads what the process of a waiting sandbox says; drops the sandbox if that is its end. */
void pools_on_channel(struct pools *all, struct pools_pool *p, unsigned index);
/* Passes a sandbox that is ready to the client. False: none is. */
bool pools_give(struct pools *all, struct pools_pool *p, int client_fd);
