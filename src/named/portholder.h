#pragma once
/*
 * portholder - one process of the user that holds the published ports of all sleeping sandboxes.
 *
 * A sandbox that is stopped because it was idle keeps its ports: its supervisor hands the listening
 * sockets to this process, which it starts if there is none. A connection to one of them starts the
 * sandbox; its new supervisor takes the sockets back, so connections that wait in the kernel's
 * queue are served. The process ends when it holds nothing.
 */
#include "base/err.h"

struct ak;
struct named;
struct published;

#define PORTHOLDER_SANDBOXES_MAX 8192u
#define PORTHOLDER_PORTS_MAX 16384u
#define PORTHOLDER_WAKES_MAX 16u /* sandboxes that are being started at once */

/* Hands the kept ports of a sandbox over; they stay open here too until they are closed. */
ERR_CHECKED int portholder_give(const struct ak *ak, const struct named *n,
				const struct published *ports, struct err *e);

/* Takes the sockets of a sandbox back: .count is 0 if none are held. Never an error. */
void portholder_take(const struct ak *ak, const struct named *n, struct published *ret);

/* Closes the sockets of a sandbox that was stopped or removed. */
void portholder_drop(const struct ak *ak, const struct named *n);

/* The policy of a sleeping sandbox publishes other ports: opens and closes them at once. */
ERR_CHECKED int portholder_change(const struct ak *ak, const struct named *n, char *const *texts,
				  struct err *e);

/* The process itself: `agentkernel portholder`, which only portholder_give() starts. */
#define PORTHOLDER_COMMAND "portholder"
int portholder_main(const struct ak *ak);
