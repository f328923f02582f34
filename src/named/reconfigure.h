#pragma once
/*
 * reconfigure - changes limits, network rules and expiry of a named sandbox; a running one takes
 * them over at once. Each change is written to the audit log.
 */
#include "named/named.h"

struct policy_setting;
struct service;

/*
 * Changes some fields of the policy. *ret_is_later: it is running, and the new disk size takes
 * effect at its next start.
 */
ERR_CHECKED int reconfigure_limits(const struct ak *ak, const char *name,
				   const struct policy_setting *settings, size_t count,
				   bool *ret_is_later, struct err *e);

/* Adds patterns to the network rules; RESET: those of its creation. */
enum reconfigure_rules { RECONFIGURE_ALLOW, RECONFIGURE_BLOCK, RECONFIGURE_RESET };
ERR_CHECKED int reconfigure_network(const struct ak *ak, const char *name,
				    enum reconfigure_rules what, char *const *patterns,
				    struct err *e);

/* Publishes ports or ends them, as texts of policy/publish; a taken one is refused at once. */
ERR_CHECKED int reconfigure_ports(const struct ak *ak, const char *name, bool is_adding,
				  char *const *texts, struct err *e);

/* Adds or replaces a service, taking it, or removes one; the other is NULL. */
ERR_CHECKED int reconfigure_services(const struct ak *ak, const char *name, struct service *added,
				     const char *removed, struct err *e);

/* Whether a server shows this port's URL to everybody, or to those with a key or a link. */
ERR_CHECKED int reconfigure_access(const struct ak *ak, const char *name, uint32_t port,
				   bool is_public, struct err *e);

/* Sets the interval of named/checkpointinterval, and how many are kept; 0: no interval. */
ERR_CHECKED int reconfigure_checkpoints(const struct ak *ak, const char *name, uint64_t every_ms,
					uint64_t keep, struct err *e);

/* Postpones the expiry by by_ms; without an expiry, sets one by_ms from now. */
ERR_CHECKED int reconfigure_expiry(const struct ak *ak, const char *name, uint64_t by_ms,
				   uint64_t *ret_expires_s, struct err *e);
