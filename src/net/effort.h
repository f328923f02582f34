#pragma once
/*
 * effort - limits the CPU time that a sandbox can make its gate spend on queries and refusals.
 *
 * The sandbox's CPU limit does not include the gate: a flood of queries or of refused connections
 * would cost the host CPU time for nothing. So such work is measured (effort_begin, effort_end).
 * When the budget is used up, the owner is told to stop reading for EFFORT_PAUSE_MS; meanwhile the
 * kernel drops packets and keeps connections waiting. Work for allowed connections is not measured.
 */
#include <stdbool.h>
#include <stdint.h>

#define EFFORT_US_PER_S 25000u  /* 2.5 % of one CPU */
#define EFFORT_BURST_US 250000u /* burst: some ten thousand queries */
#define EFFORT_PAUSE_MS 100u

struct effort;
struct event_base;

/* Called from within effort_end(), and from the event loop. */
typedef void effort_fn(void *context, bool is_paused);

struct effort *effort_new(struct event_base *base, effort_fn *fn, void *context);
void effort_free(struct effort *f);

uint64_t effort_begin(void); /* CPU time used so far, in microseconds */
void effort_end(struct effort *f, uint64_t begun_us);
