#pragma once
/*
 * egress - where a sandbox may connect to: rules, and decisions with their reason.
 *
 * A rule allows or blocks a pattern: "host", "host:port", "*.domain" (all names below it), "*",
 * "*:port", an address or a network with or without a port. The most specific rule wins: exact host
 * with port, exact host, longest wildcard (with port before without), "*:port", "*", the default;
 * on a tie block wins. For addresses the longer prefix is more specific.
 *
 * Three kinds of destination cannot be opened by a pattern with a name:
 *   - addresses that are not public, or belong to this machine: only an address or network does;
 *   - a cloud's metadata service: only its exact address does;
 *   - this machine's loopback: only the name host.agentkernel.internal with a port does.
 *
 * No lookups, no system calls: the caller passes the address it will really connect to.
 */
#include "base/err.h"
#include "policy/address.h"

#include <stdbool.h>
#include <stdint.h>

#define EGRESS_RULES_MAX 1024u
#define EGRESS_TEXT_MAX_BYTES (1u << 20) /* of all rules in saved form */

/* The caller's machine, as named inside the sandbox. */
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
	const char *origin; /* who set it: "--allow-host"; owned by struct egress */
};

struct egress {
	enum egress_action fallback; /* if no rule matches */
	char *fallback_origin;
	struct egress_rule *rules;
	unsigned count, capacity;
	char **origins; /* owned texts; all rules of a preset share one */
	unsigned origin_count;
};

enum egress_reason {
	EGRESS_BY_RULE,
	EGRESS_BY_DEFAULT,
	EGRESS_SPECIAL_ADDRESS, /* not public, and no address rule allows it */
	EGRESS_OWN_ADDRESS,     /* this machine's */
	EGRESS_UNKNOWN_OWNER,   /* possibly this machine's */
	EGRESS_METADATA,
	EGRESS_HOST_LOOPBACK, /* this machine's, and no rule for its name with this port */
};

struct egress_decision {
	bool is_allowed;
	enum egress_reason reason;
	const struct egress_rule *rule; /* EGRESS_BY_RULE */
	const char *kind;               /* EGRESS_SPECIAL_ADDRESS: "a private address" */
};

void egress_done(struct egress *g);                   /* may run twice, and on a zeroed struct */
void egress_remove(struct egress *g, unsigned index); /* removes one rule */
void egress_set_fallback(struct egress *g, enum egress_action action, const char *origin);

/*
 * Allows a domain and all names below it: "example.org" and "*.example.org". For the built-in lists
 * of policy/mode, which are in normal form (a unit test checks this), so nothing is parsed.
 */
ERR_CHECKED int egress_allow_domain(struct egress *g, const char *domain, const char *origin,
				    struct err *e);

/* `patterns` may be a comma-separated list. EGRESS_ADDRESSES refuses names. */
enum egress_flags { EGRESS_PATTERNS = 0, EGRESS_ADDRESSES = 1 };
ERR_CHECKED int egress_add(struct egress *g, enum egress_action action, const char *patterns,
			   enum egress_flags flags, const char *origin, struct err *e);

/* A destination as typed by a user: "HOST", "HOST:PORT", an address with or without a port. */
struct egress_target {
	char *name; /* normal form; NULL: see .address */
	struct address address;
	uint16_t port; /* 0: not given */
};
ERR_CHECKED int egress_parse_target(const char *text, struct egress_target *ret, struct err *e);
void egress_target_done(struct egress_target *t);

/* Decides on a connection to `name` (normal form; NULL: unknown name) at `port`. */
void egress_decide_name(const struct egress *g, const char *name, uint16_t port,
			struct egress_decision *ret);

enum egress_owner {
	EGRESS_NOT_OURS,
	EGRESS_OURS,         /* an address of this machine */
	EGRESS_OWNER_UNKNOWN /* the kernel did not answer: treated as ours */
};

/* Decides on a connection to an address without a name. */
void egress_decide_address(const struct egress *g, const struct address *a, uint16_t port,
			   enum egress_owner owner, struct egress_decision *ret);

/* Decides on an address that an allowed name resolved to. */
void egress_decide_resolved(const struct egress *g, const struct address *a, uint16_t port,
			    enum egress_owner owner, struct egress_decision *ret);

/* Could `name` be allowed at any port? If not, it need not even be resolved. */
bool egress_can_allow(const struct egress *g, const char *name);

/*
 * Returns the name whose rules decide if TXT, MX and SRV records of `name` may be looked up.
 * Service labels (policy/domain.h) belong to the host after them: if a rule names exactly that
 * host, or the host is special (this machine, metadata), that host decides. Otherwise, and if a
 * rule names the service itself or all names below the host, `name` decides. Points into `name`.
 */
const char *egress_records_name(const struct egress *g, const char *name);

/* Sorts the rules by precedence, highest first; `order` has room for g->count. */
void egress_order(const struct egress *g, const struct egress_rule **order);

/* Returns an allow rule without effect, because all it names is allowed without it; or NULL. */
const struct egress_rule *egress_find_idle(const struct egress *g);

/* True for EGRESS_HOST_NAME and its aliases "host.docker.internal" and "localhost". */
bool egress_is_host_name(const char *name);

/* The reason as text: "rule '*.example.org' (--allow-host)". */
struct buf;
void egress_format_reason(const struct egress *g, const struct egress_decision *d, struct buf *out);

/*
 * The option that would allow the connection ("--allow-host example.org:443"), or nothing if none
 * would. `address` is the address that was refused, or NULL; port 0: any.
 */
void egress_format_fix(const struct egress_decision *d, const char *name,
		       const struct address *address, uint16_t port, struct buf *out);

/*
 * Saves the rules as text and loads them. Lossless, except that control characters in origins,
 * which may contain a file name, become '?'.
 */
void egress_save(const struct egress *g, struct buf *out);
ERR_CHECKED int egress_load(const char *text, struct egress *ret, struct err *e);
