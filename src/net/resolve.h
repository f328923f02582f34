#pragma once
/*
 * resolve - resolves names to addresses and to TXT, MX and SRV records, with the host's resolver
 * configuration.
 *
 * c-ares queries the servers of /etc/resolv.conf and, for addresses, reads /etc/hosts; the event
 * loop drives it. Answers are cached for their TTL (RESOLVE_KEEP_MIN_S to _MAX_S), and concurrent
 * queries for one name and type are sent once. Search domains are not used.
 *
 * Queries that leave the host are limited, so a sandbox cannot send much data in them.
 */
#include "base/err.h"
#include "policy/address.h"
#include "policy/domain.h"

#include <stdint.h>
#include <sys/queue.h>

struct dnsrecord_set;

#define RESOLVE_ADDRESSES_MAX 8u
#define RESOLVE_KEEP_MIN_S 1u
#define RESOLVE_KEEP_MAX_S 60u
#define RESOLVE_KEEP_FAILURE_S 2u
#define RESOLVE_ENTRIES_MAX 2048u /* of addresses */
#define RESOLVE_RECORDS_MAX 256u  /* of sets of records, each up to 8.5 KiB */
#define RESOLVE_PENDING_MAX 256u
#define RESOLVE_QUESTIONS_PER_S 50u
#define RESOLVE_QUESTIONS_BURST 500u

enum resolve_status {
	RESOLVE_FOUND,
	RESOLVE_NO_DATA, /* the name exists without such data */
	RESOLVE_NOT_FOUND,
	RESOLVE_FAILED, /* no usable answer */
	RESOLVE_LIMITED /* too many queries */
};

struct resolve_answer {
	enum resolve_status status;
	unsigned count;
	struct address list[RESOLVE_ADDRESSES_MAX];
	const struct dnsrecord_set *records; /* NULL: addresses were requested, or there are none */
	uint32_t ttl_s;                      /* of the records */
};

#define RESOLVE_ADDRESSES 0u /* instead of a record type */

typedef void resolve_fn(void *context, const struct resolve_answer *answer);

/* The caller's memory; must stay valid until the answer or resolve_forget(). */
struct resolve_waiter {
	resolve_fn *fn;
	void *context;
	struct resolve_entry *entry; /* NULL: not waiting */
	TAILQ_ENTRY(resolve_waiter) link;
};

struct resolve;
struct event_base;

ERR_CHECKED int resolve_new(struct event_base *base, struct resolve **ret, struct err *e);
void resolve_free(struct resolve *r);

/*
 * Calls fn now or later, exactly once. `name` is in normal form; `type` is RESOLVE_ADDRESSES or one
 * that net/dnsrecord.h supports. The answer's records are valid until fn returns or asks again.
 */
void resolve_ask(struct resolve *r, const char *name, uint16_t type, resolve_fn *fn, void *context,
		 struct resolve_waiter *waiter);
void resolve_forget(struct resolve_waiter *waiter);

/* Is the answer cached, or a query for it pending? Then resolve_ask() sends no new query. */
bool resolve_is_known(struct resolve *r, const char *name, uint16_t type);
