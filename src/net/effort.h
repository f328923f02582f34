#pragma once
/*
 * effort - bounds the processor time that a sandbox can make its gate spend on questions and
 * refusals.
 *
 * The sandbox's own limit does not count the gate's work: a flood of queries or of connections that
 * are refused would be work for nothing, at the machine's expense. Who does such work measures it
 * (effort_begin, effort_end). When the budget is used up, the owner is told to stop reading for
 * EFFORT_PAUSE_MS; meanwhile packets are dropped and connections wait, both by the kernel. Work for
 * allowed connections is not measured: that is what the gate is for.
 */
#include <stdbool.h>
#include <stdint.h>

#define EFFORT_US_PER_S 25000u  /* 2.5 % of one processor */
#define EFFORT_BURST_US 250000u /* at once: some ten thousand queries */
#define EFFORT_PAUSE_MS 100u

struct effort;
struct event_base;

/* Called from within effort_end(), and from the loop. */
typedef void effort_fn(void *context, bool is_paused);

struct effort *effort_new(struct event_base *base, effort_fn *fn, void *context);
void effort_free(struct effort *f);

uint64_t effort_begin(void); /* processor time so far, in microseconds */
void effort_end(struct effort *f, uint64_t begun_us);
