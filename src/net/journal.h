#pragma once
/*
 * journal - what the gate decided, counted and written down.
 *
 * Decisions are counted in rows: same host, port, decision and reason, one row. A row's first
 * event is written at once, later ones at most once a second, each time as what was added since:
 * whoever reads the log adds the lines up. A denial's first event also goes to the supervisor,
 * before the sandbox hears of it. docs/design/network-log.md has the format.
 *
 * A sandbox chooses names, so all is bounded, for each kind of event by itself: a flood of denied
 * names hides no connection. Beyond JOURNAL_ROWS_MAX rows of a kind all further hosts share one row
 * a decision; beyond the kind's share of the log (net/logshare.h) one last line says that it is
 * full, and counts wait until there is room.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define JOURNAL_ROWS_MAX 2048u /* of each kind */
#define JOURNAL_LINE_MAX_BYTES 1024u

enum journal_decision {
	JOURNAL_ALLOWED, /* a connection */
	JOURNAL_DENIED,
	JOURNAL_LOOKUP, /* a name that was looked up outside */
	JOURNAL_FAILED, /* allowed, but the other side could not be reached */

	JOURNAL_DECISION_COUNT
};

struct journal_row {
	uint64_t count, sent_bytes, received_bytes; /* since the last line */
};

struct journal;

/* Descriptors are borrowed; -1: nobody listens, a share of its own. `sandbox` is the sandbox's id.
 */
struct journal *journal_new(int log_fd, int supervisor_fd, int share_fd, const char *sandbox);
void journal_free(struct journal *j); /* after journal_flush() */

/* Port 0: a lookup. `fix`: the option that would allow it, or "". The row is borrowed; its bytes
 * may be raised for as long as `j` lives. */
struct journal_row *journal_add(struct journal *j, enum journal_decision decision, const char *host,
				uint16_t port, const char *reason, const char *fix);

bool journal_is_dirty(const struct journal *j);

/* JOURNAL_LAST may use what is kept in reserve for the end. */
enum journal_flush_kind { JOURNAL_PERIODIC, JOURNAL_LAST };
void journal_flush(struct journal *j, enum journal_flush_kind kind);

const char *journal_decision_word(enum journal_decision decision);
