#pragma once
/*
 * dial - connects to the first of several addresses that answers (RFC 8305, "happy eyeballs").
 *
 * Attempts start DIAL_STAGGER_MS apart, or at once if the previous one has failed; the first that
 * succeeds wins and the others are closed. IPv6 and IPv4 alternate.
 */
#include "policy/address.h"

#include <stdbool.h>
#include <stdint.h>

#define DIAL_ADDRESSES_MAX 8u
#define DIAL_STAGGER_MS 250u
#define DIAL_TIMEOUT_MS 30000u

struct dial;
struct event_base;

/* Gets a connected descriptor, which it then owns, and its peer; or -1 and an errno. */
typedef void dial_fn(void *context, int fd, const struct address *to, int error);
typedef bool dial_filter_fn(void *context, const struct address *to);

/* fn is called from the event loop, never from within this call; not at all after dial_cancel(). */
struct dial *dial_start(struct event_base *base, const struct address *list, unsigned count,
			uint16_t port, dial_fn *fn, void *context);
void dial_cancel(struct dial *d); /* not from within fn, where `d` is already freed */

/* Drops the addresses that are no longer allowed. False: none is left, cancel it. */
bool dial_keep(struct dial *d, dial_filter_fn *is_wanted, void *context);
