#pragma once
/*
 * egress - where a sandbox may connect to: the rules, and an answer with its reason.
 *
 * A rule allows or blocks a pattern: "host", "host:port", "*.domain" (everything below it), "*",
 * "*:port", an address or a network with or without a port. The most specific rule wins: exact
 * host with port, exact host, longest wildcard (with port before without), "*:port", "*", the
 * default; on a tie block wins. For addresses the longer prefix is the more specific.
 *
 * Three things no pattern with a name in it can open:
 *   - addresses that are not public, or are this machine's own: only an address or network does;
 *   - a cloud's metadata service: only its exact address does;
 *   - this machine's loopback: only the name host.agentkernel.internal with a port does.
 *
 * Pure: no lookups, no system calls. Who connects brings the address it will really use.
 */
#include "base/err.h"
#include "policy/address.h"

#include <stdbool.h>
#include <stdint.h>

#define EGRESS_RULES_MAX 1024u
#define EGRESS_TEXT_MAX_BYTES (1u << 20) /* of all rules, written down */

/* How the sandbox names the caller's machine. */
#define EGRESS_HOST_NAME "host.agentkernel.internal"

enum egress_action { EGRESS_ALLOW, EGRESS_BLOCK };
enum egress_kind { EGRESS_ANY, EGRESS_WILDCARD, EGRESS_HOST, EGRESS_NETWORK };

struct egress_rule {
	enum egress_action action;
	enum egress_kind kind;
	uint16_t port; /* 0: every port */
	struct address_network network;
	char *text;         /* the pattern in normal form; owns the block that also holds name */
	const char *name;   /* EGRESS_HOST; EGRESS_WILDCARD: what follows "*."; else NULL */
	const char *origin; /* who says so: "--allow-host"; owned by struct egress */
};

struct egress {
	enum egress_action fallback; /* where no rule says anything */
	char *fallback_origin;
	struct egress_rule *rules;
	unsigned count, capacity;
	char **origins; /* texts that rules share: a preset's rules all have the same one */
	unsigned origin_count;
};

enum egress_reason {
	EGRESS_BY_RULE,
	EGRESS_BY_DEFAULT,
	EGRESS_SPECIAL_ADDRESS, /* not public, and no address rule opens it */
	EGRESS_OWN_ADDRESS,     /* this machine's */
	EGRESS_UNKNOWN_OWNER,   /* perhaps this machine's */
	EGRESS_METADATA,
	EGRESS_HOST_LOOPBACK, /* this machine's, and no rule for its name and this port */
};

struct egress_decision {
	bool is_allowed;
	enum egress_reason reason;
	const struct egress_rule *rule; /* EGRESS_BY_RULE */
	const char *kind;               /* EGRESS_SPECIAL_ADDRESS: "a private address" */
};

void egress_done(struct egress *g);                   /* may run twice, and on a zeroed struct */
void egress_remove(struct egress *g, unsigned index); /* of one rule */
void egress_set_fallback(struct egress *g, enum egress_action action, const char *origin);
void egress_copy(const struct egress *from, struct egress *ret); /* shares nothing with `from` */

/*
 * Allows a domain and everything below it: "example.org" and "*.example.org". For the built-in
 * lists of policy/mode, whose names are in normal form (a unit test checks that), so nothing is
 * parsed.
 */
ERR_CHECKED int egress_allow_domain(struct egress *g, const char *domain, const char *origin,
				    struct err *e);

/* `patterns` may be a comma list. EGRESS_ADDRESSES refuses names. */
enum egress_flags { EGRESS_PATTERNS = 0, EGRESS_ADDRESSES = 1 };
ERR_CHECKED int egress_add(struct egress *g, enum egress_action action, const char *patterns,
			   enum egress_flags flags, const char *origin, struct err *e);

/* "HOST", "HOST:PORT", an address with or without a port: what people call a destination. */
struct egress_target {
	char *name; /* normal form, or NULL: .address */
	struct address address;
	uint16_t port; /* 0: not said */
};
ERR_CHECKED int egress_parse_target(const char *text, struct egress_target *ret, struct err *e);
void egress_target_done(struct egress_target *t);

/* A connection to `name` (normal form; NULL: a name that is not known) at `port`. */
void egress_decide_name(const struct egress *g, const char *name, uint16_t port,
			struct egress_decision *ret);

enum egress_owner {
	EGRESS_NOT_OURS,
	EGRESS_OURS,         /* an address of this machine */
	EGRESS_OWNER_UNKNOWN /* the kernel did not say: treated as ours */
};

/* A connection to an address that no name stands for. */
void egress_decide_address(const struct egress *g, const struct address *a, uint16_t port,
			   enum egress_owner owner, struct egress_decision *ret);

/* The address that an allowed name turned out to have. */
void egress_decide_resolved(const struct egress *g, const struct address *a, uint16_t port,
			    enum egress_owner owner, struct egress_decision *ret);

/* Is there a port at which `name` could be allowed? If not, it need not even be looked up. */
bool egress_can_allow(const struct egress *g, const char *name);

/*
 * Which name's rules say whether TXT, MX and SRV records of `name` may be looked up. The labels of
 * a service (policy/domain.h) belong to the host that follows them: where a rule is for exactly
 * that host, or the host has a meaning of its own (this machine, metadata), it is the host; where a
 * rule names the service itself or all names below the host, and everywhere else, it is `name`.
 * Borrowed from `name`.
 */
const char *egress_records_name(const struct egress *g, const char *name);

/* The rules, the one that is looked at first first; `order` has room for g->count. */
void egress_order(const struct egress *g, const struct egress_rule **order);

/* An allowing rule that changes nothing, since all it names is allowed without it; or NULL. */
const struct egress_rule *egress_find_idle(const struct egress *g);

/* "host.docker.internal" and "localhost" are other words for EGRESS_HOST_NAME. */
bool egress_is_host_name(const char *name);

/* Why, for people: "rule '*.example.org' (--allow-host)". */
struct buf;
void egress_format_reason(const struct egress *g, const struct egress_decision *d, struct buf *out);

/*
 * The option that would allow it ("--allow-host example.org:443"), or nothing where none would.
 * `address` is NULL, or the address that was the trouble; port 0: any.
 */
void egress_format_fix(const struct egress_decision *d, const char *name,
		       const struct address *address, uint16_t port, struct buf *out);

/*
 * The rules as text for another process or another day, and back: all of it, but for control
 * characters in origins, which may hold a file's name and become '?'.
 */
void egress_save(const struct egress *g, struct buf *out);
ERR_CHECKED int egress_load(const char *text, struct egress *ret, struct err *e);
