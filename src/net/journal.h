#pragma once
/*
 * journal - counts and logs the gate's decisions.
 *
 * Decisions are counted in rows: one row per host, port, decision and reason. A row's first event
 * is logged at once, later ones at most once a second, as the increase since the last line: readers
 * add the lines up. A denial's first event is also sent to the supervisor, before the sandbox
 * learns of it. docs/design/network-log.md has the format.
 *
 * A sandbox chooses the names, so everything is bounded, separately for each kind of event: a flood
 * of denied names hides no connection. Above JOURNAL_ROWS_MAX rows of a kind all further hosts
 * share one row per decision; above the kind's share of the log (net/logshare.h) one last line says
 * so, and counts are kept until there is room.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define JOURNAL_ROWS_MAX 2048u /* of each kind */
#define JOURNAL_LINE_MAX_BYTES 1024u

enum journal_decision {
	JOURNAL_ALLOWED, /* a connection */
	JOURNAL_DENIED,
	JOURNAL_LOOKUP,  /* a name that was resolved outside */
	JOURNAL_FAILED,  /* allowed, but the server could not be reached */
	JOURNAL_INBOUND, /* a connection to a published port */

	JOURNAL_DECISION_COUNT
};

struct journal_row {
	uint64_t count, sent_bytes, received_bytes; /* since the last line */
};

struct journal;

/* Borrows the descriptors; -1: no log, no supervisor, a private share. `sandbox` is its id. */
struct journal *journal_new(int log_fd, int supervisor_fd, int share_fd, const char *sandbox);
void journal_free(struct journal *j); /* after journal_flush() */

/*
 * Port 0: a lookup. `fix`: the option that would allow it, or "". The row is borrowed; callers may
 * increase its byte counts as long as `j` exists.
 */
struct journal_row *journal_add(struct journal *j, enum journal_decision decision, const char *host,
				uint16_t port, const char *reason, const char *fix);

bool journal_is_dirty(const struct journal *j);

/* JOURNAL_LAST may use the reserve for the last counts. */
enum journal_flush_kind { JOURNAL_PERIODIC, JOURNAL_LAST };
void journal_flush(struct journal *j, enum journal_flush_kind kind);
