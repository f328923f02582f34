/* journal - counts and logs the gate's decisions; see journal.h. */
#include "net/journal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "net/logshare.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define OTHERS "(others)"
#define FULL "(log full)"

/* Kinds of rows, each with its own limits. */
enum kind { ALLOWED, DENIED, DENIED_LOOKUP, LOOKUP, FAILED, INBOUND, KIND_COUNT };
static_assert(KIND_COUNT == LOGSHARE_KINDS, "a kind without a share");

#define INDEX_COUNT (8 * JOURNAL_ROWS_MAX) /* a power of two, more than all rows */
static_assert(INDEX_COUNT > KIND_COUNT * JOURNAL_ROWS_MAX, "an index that can fill up");

struct row {
	struct journal_row counts; /* first member: callers get a pointer to it */
	enum journal_decision decision;
	enum kind kind;
	uint16_t port;
	char *host;
	char *reason;
	char *fix;
};

struct journal {
	int log_fd, supervisor_fd;
	char *sandbox;
	struct logshare *share; /* NULL: nothing can be logged */
	struct row **rows;
	unsigned count, kind_counts[KIND_COUNT];
	uint16_t *index; /* position + 1; 0: free */
};

static const char *const words[] = {
	[JOURNAL_ALLOWED] = "allowed", [JOURNAL_DENIED] = "denied",   [JOURNAL_LOOKUP] = "lookup",
	[JOURNAL_FAILED] = "failed",   [JOURNAL_INBOUND] = "inbound",
};
static_assert(COUNT_OF(words) == JOURNAL_DECISION_COUNT, "a decision has no word");

static enum kind kind_of(enum journal_decision decision, uint16_t port)
{
	switch (decision) {
	case JOURNAL_ALLOWED:
		return ALLOWED;
	case JOURNAL_DENIED:
		return port ? DENIED : DENIED_LOOKUP;
	case JOURNAL_LOOKUP:
		return LOOKUP;
	case JOURNAL_INBOUND:
		return INBOUND;
	default:
		return FAILED;
	}
}

struct journal *journal_new(int log_fd, int supervisor_fd, int share_fd, const char *sandbox)
{
	struct journal *j = mem_alloc(sizeof(*j));

	j->log_fd = log_fd;
	j->supervisor_fd = supervisor_fd;
	j->share = logshare_open(share_fd);
	j->sandbox = mem_dup(sandbox);
	j->index = mem_alloc(INDEX_COUNT * sizeof(*j->index));
	return j;
}

void journal_free(struct journal *j)
{
	if (!j)
		return;
	for (unsigned i = 0; i < j->count; i++) {
		free(j->rows[i]->host);
		free(j->rows[i]->reason);
		free(j->rows[i]->fix);
		free(j->rows[i]);
	}
	free(j->rows);
	free(j->index);
	free(j->sandbox);
	logshare_close(j->share);
	free(j);
}

static size_t format_line(const struct journal *j, const struct row *r, struct buf *out)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	buf_addf(out,
		 "%" PRIu64 "\t%s\t%s\t%s\t%u\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
		 (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, j->sandbox,
		 words[r->decision], r->host, r->port, r->reason, r->fix, r->counts.count,
		 r->counts.sent_bytes, r->counts.received_bytes);
	return out->len;
}

/*
 * A line is a single write: several gates append to the log. False if the share has no room beyond
 * kept_bytes; then the counts are kept.
 */
static bool write_line(struct journal *j, struct row *r, struct throttle *room, uint64_t kept_bytes)
{
	cleanup_buf struct buf line;

	buf_init(&line, JOURNAL_LINE_MAX_BYTES);
	(void)format_line(j, r, &line);
	if (throttle_available(room, clock_now_ms()) < line.len + kept_bytes)
		return false;
	throttle_spend(room, line.len);
	if (j->log_fd >= 0 && !line.is_cut)
		(void)!write(j->log_fd, line.bytes, line.len); /* a full disk loses the line */
	r->counts = (struct journal_row){ 0 };
	return true;
}

/* Logged once, until half of the share is available again. Not charged to the share. */
static void say_full(struct journal *j, const struct row *r)
{
	struct logshare_part *part = &j->share->parts[r->kind];
	const struct row full = { .counts = { .count = 1 },
				  .decision = r->decision,
				  .host = (char *)FULL,
				  .reason = (char *)"this sandbox's share of the log is used up: "
						    "further hosts are missing",
				  .fix = (char *)"" };
	cleanup_buf struct buf line;

	buf_init(&line, JOURNAL_LINE_MAX_BYTES);
	if (part->is_full)
		return;
	part->is_full = true;
	(void)format_line(j, &full, &line);
	if (j->log_fd >= 0)
		(void)!write(j->log_fd, line.bytes, line.len);
}

static void write_first(struct journal *j, struct row *r)
{
	struct logshare_part *part;

	if (!j->share)
		return;
	part = &j->share->parts[r->kind];
	if (!write_line(j, r, &part->first, 0))
		say_full(j, r);
	else if (throttle_available(&part->first, clock_now_ms()) > LOGSHARE_FIRST_BYTES / 2)
		part->is_full = false;
}

static void tell_supervisor(struct journal *j, const struct row *r)
{
	cleanup_buf struct buf line;

	buf_init(&line, JOURNAL_LINE_MAX_BYTES);
	(void)format_line(j, r, &line);
	if (j->supervisor_fd >= 0)
		(void)send(j->supervisor_fd, line.bytes, line.len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static uint16_t *find(const struct journal *j, enum journal_decision decision, const char *host,
		      uint16_t port, const char *reason)
{
	for (uint32_t at = hash_text(port ^ (uint32_t)decision << 16, host);; at++) {
		uint16_t *slot = &j->index[at & (INDEX_COUNT - 1)];
		const struct row *r = *slot ? j->rows[*slot - 1] : NULL;

		if (!r || (r->decision == decision && r->port == port &&
			   strcmp(r->host, host) == 0 && strcmp(r->reason, reason) == 0))
			return slot;
	}
}

static struct row *add_row(struct journal *j, enum kind kind, enum journal_decision decision,
			   const char *host, uint16_t port, const char *reason, const char *fix)
{
	struct row *r = mem_alloc(sizeof(*r));

	r->decision = decision;
	r->kind = kind;
	r->port = port;
	r->host = mem_dup(host);
	r->reason = mem_dup(reason);
	r->fix = mem_dup(fix);
	j->rows = mem_grow(j->rows, j->count + 1, sizeof(struct row *));
	j->rows[j->count++] = r;
	j->kind_counts[r->kind]++;
	return r;
}

struct journal_row *journal_add(struct journal *j, enum journal_decision decision, const char *host,
				uint16_t port, const char *reason, const char *fix)
{
	uint16_t *slot = find(j, decision, host, port, reason);
	enum kind kind = kind_of(decision, port);
	struct row *r;

	/* the last row of a kind counts all further hosts */
	if (*slot == 0 && j->kind_counts[kind] >= JOURNAL_ROWS_MAX - 1) {
		host = OTHERS;
		port = 0;
		reason = kind == DENIED_LOOKUP ? "too many different names to list"
					       : "too many different hosts to list";
		fix = "";
		slot = find(j, decision, host, port, reason);
	}
	if (*slot) {
		r = j->rows[*slot - 1];
		r->counts.count++;
		return &r->counts;
	}
	r = add_row(j, kind, decision, host, port, reason, fix);
	*slot = (uint16_t)j->count;
	r->counts.count = 1;
	if (decision == JOURNAL_DENIED)
		tell_supervisor(j, r);
	write_first(j, r);
	return &r->counts;
}

static bool has_news(const struct row *r)
{
	return r->counts.count || r->counts.sent_bytes || r->counts.received_bytes;
}

bool journal_is_dirty(const struct journal *j)
{
	for (unsigned i = 0; i < j->count; i++)
		if (has_news(j->rows[i]))
			return true;
	return false;
}

void journal_flush(struct journal *j, enum journal_flush_kind kind)
{
	uint64_t kept_bytes = kind == JOURNAL_LAST ? 0 : LOGSHARE_COUNT_RESERVE_BYTES;

	for (unsigned i = 0; j->share && i < j->count; i++)
		if (has_news(j->rows[i]))
			(void)write_line(j, j->rows[i], &j->share->parts[j->rows[i]->kind].counts,
					 kept_bytes);
}
