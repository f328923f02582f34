#pragma once
/*
 * resolve - the real addresses of names, and their TXT, MX and SRV records, by this machine's own
 * resolver configuration.
 *
 * c-ares asks the servers of /etc/resolv.conf and, for addresses, reads /etc/hosts; the event loop
 * drives it. Answers are kept for as long as they say (RESOLVE_KEEP_MIN_S to _MAX_S), and questions
 * for one name and type at one time are asked once. Search domains are not used: a name is what it
 * says.
 *
 * Questions that leave the machine are limited, so a sandbox cannot use them to send much.
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
	RESOLVE_NO_DATA, /* the name exists */
	RESOLVE_NOT_FOUND,
	RESOLVE_FAILED, /* nobody knows */
	RESOLVE_LIMITED /* too many questions */
};

struct resolve_answer {
	enum resolve_status status;
	unsigned count;
	struct address list[RESOLVE_ADDRESSES_MAX];
	const struct dnsrecord_set *records; /* NULL: addresses were asked for, or there are none */
	uint32_t ttl_s;                      /* of the records */
};

#define RESOLVE_ADDRESSES 0u /* instead of a type of records */

typedef void resolve_fn(void *context, const struct resolve_answer *answer);

/* The asker's memory; it must not go away before the answer came or resolve_forget(). */
struct resolve_waiter {
	resolve_fn *fn;
	void *context;
	struct resolve_entry *entry; /* NULL: waits for nothing */
	TAILQ_ENTRY(resolve_waiter) link;
};

struct resolve;
struct event_base;

ERR_CHECKED int resolve_new(struct event_base *base, struct resolve **ret, struct err *e);
void resolve_free(struct resolve *r);

/*
 * Calls fn now or later, exactly once. `name` is in normal form; `type` is RESOLVE_ADDRESSES or one
 * that net/dnsrecord.h knows. The answer's records are borrowed until fn returns or asks again.
 */
void resolve_ask(struct resolve *r, const char *name, uint16_t type, resolve_fn *fn, void *context,
		 struct resolve_waiter *waiter);
void resolve_forget(struct resolve_waiter *waiter);

/* Is the answer already here? Then asking costs nothing and leaves no trace. */
bool resolve_is_known(struct resolve *r, const char *name, uint16_t type);
