#pragma once
/*
 * supervisorrequests - what clients ask of the supervisor of a named sandbox.
 *
 * A request is a frame of named/control. Its answer, if it has one, is sent before this returns,
 * or with init's next word; nothing here waits. Clients are of this user, but may be of another
 * version, or broken: sizes, counts and ids are checked.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct frame;
struct supervisorstate;
struct supervisorstate_client;
struct order_frozen;
struct order_usage;

/* On failure the client is told by the caller. */
/*
 * True for a command while the sandbox is copied: the copy is soon made, and the supervisor keeps
 * the request until then. A pause is refused at once, it may last.
 */
bool supervisorrequests_must_wait(const struct supervisorstate *k, uint32_t kind);

ERR_CHECKED int supervisorrequests_answer(struct supervisorstate *k,
					  struct supervisorstate_client *client, struct frame *f,
					  struct err *e);

/* For one who waits for figures; usage: what init has counted, NULL if nobody asked it. */
void supervisorrequests_answer_stats(struct supervisorstate *k,
				     struct supervisorstate_client *client,
				     const struct order_usage *usage);

/* Init has stopped every process, or could not: whoever waits for it is told. */
void supervisorrequests_answer_frozen(struct supervisorstate *k, const struct order_frozen *frozen);
