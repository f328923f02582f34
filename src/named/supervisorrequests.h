#pragma once
/*
 * supervisorrequests - answers requests of a supervisor's clients.
 *
 * A request is a frame of named/control. Its answer, if there is one, is sent before this returns,
 * or when init's next message arrives; nothing here waits. Clients belong to this user, but may be
 * of another version, or broken: sizes, counts and ids are checked.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct frame;
struct supervisorstate;
struct supervisorstate_client;
struct order_frozen;
struct order_usage;

/*
 * True for a command while the sandbox is copied: that ends soon, so the supervisor holds the
 * request. During a pause, which may last, commands are refused at once.
 */
bool supervisorrequests_must_wait(const struct supervisorstate *k, uint32_t kind);

ERR_CHECKED int supervisorrequests_answer(struct supervisorstate *k,
					  struct supervisorstate_client *client, struct frame *f,
					  struct err *e);

/* Answers a statistics request; usage: init's counts, NULL if it was not asked. */
void supervisorrequests_answer_stats(struct supervisorstate *k,
				     struct supervisorstate_client *client,
				     const struct order_usage *usage);

/* Answers clients that wait for a freeze: init has stopped every process, or could not. */
void supervisorrequests_answer_frozen(struct supervisorstate *k, const struct order_frozen *frozen);
