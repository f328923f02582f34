#pragma once
/*
 * supervisorsleep - a running sandbox that nobody uses falls asleep, and wakes when it is used.
 *
 * In use means: a command runs (services do not count), a client holds the sandbox awake
 * (CONTROL_HOLD, an open files connection), or a published port has a connection. After the
 * policy's idle timeout without use the sandbox is frozen ("dozing"), or, if the policy says so,
 * stopped ("asleep"): then its listening sockets go to named/portholder, and named/wake starts it
 * again.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct supervisorstate;
struct supervisorstate_client;
struct turn;

/* Notes a use that has no duration: the idle time counts from now on. */
void supervisorsleep_touch(struct supervisorstate *k);

/* Thaws a dozing sandbox; ERR_BUSY while it is being stopped. */
ERR_CHECKED int supervisorsleep_wake(struct supervisorstate *k, struct err *e);

void supervisorsleep_set_deadline(const struct supervisorstate *k, struct turn *t);
/* Once per turn: falls asleep if it is time; wakes if a published port has a connection. */
void supervisorsleep_check(struct supervisorstate *k);

/* Before the end of a sandbox that falls asleep: hands its listening sockets over. */
void supervisorsleep_hand_over(struct supervisorstate *k);
