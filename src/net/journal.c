/* journal - what the gate decided, counted and written down; see journal.h. */
#include "net/journal.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define INDEX_COUNT (2 * JOURNAL_ROWS_MAX) /* a power of two */
#define OTHERS "(others)"

struct row {
	struct journal_row counts; /* first: handed out as the row */
	enum journal_decision decision;
	uint16_t port;
	char *host;
	char *reason;
	char *fix;
};

struct journal {
	int log_fd, supervisor_fd;
	char *sandbox;
	uint64_t written_bytes;
	struct row **rows;
	unsigned count;
	uint16_t *index; /* place + 1; 0: free */
};

static const char *const words[] = {
	[JOURNAL_ALLOWED] = "allowed",
	[JOURNAL_DENIED] = "denied",
	[JOURNAL_LOOKUP] = "lookup",
	[JOURNAL_FAILED] = "failed",
};
static_assert(COUNT_OF(words) == JOURNAL_DECISION_COUNT, "a decision has no word");

const char *journal_decision_word(enum journal_decision decision)
{
	return words[decision];
}

struct journal *journal_new(int log_fd, int supervisor_fd, const char *sandbox)
{
	struct journal *j = mem_alloc(sizeof(*j));

	j->log_fd = log_fd;
	j->supervisor_fd = supervisor_fd;
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

/* One write a line: the log is opened for appending, and several gates may share it. */
static void write_line(struct journal *j, struct row *r)
{
	cleanup_buf struct buf line;

	buf_init(&line, JOURNAL_LINE_MAX_BYTES);
	(void)format_line(j, r, &line);
	j->written_bytes += line.len;
	if (j->log_fd >= 0 && !line.is_cut && j->written_bytes <= JOURNAL_LOG_MAX_BYTES)
		(void)!write(j->log_fd, line.bytes, line.len); /* a full disk loses a line */
	r->counts = (struct journal_row){ 0 };
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

static struct row *add_row(struct journal *j, enum journal_decision decision, const char *host,
			   uint16_t port, const char *reason, const char *fix)
{
	struct row *r = mem_alloc(sizeof(*r));

	r->decision = decision;
	r->port = port;
	r->host = mem_dup(host);
	r->reason = mem_dup(reason);
	r->fix = mem_dup(fix);
	j->rows = mem_grow(j->rows, j->count + 1, sizeof(struct row *));
	j->rows[j->count++] = r;
	return r;
}

struct journal_row *journal_add(struct journal *j, enum journal_decision decision, const char *host,
				uint16_t port, const char *reason, const char *fix)
{
	uint16_t *slot = find(j, decision, host, port, reason);
	struct row *r;

	/* the last few places are for the rows that take all the rest */
	if (*slot == 0 && j->count >= JOURNAL_ROWS_MAX - JOURNAL_DECISION_COUNT) {
		host = OTHERS;
		port = 0;
		reason = "too many different hosts to list";
		fix = "";
		slot = find(j, decision, host, port, reason);
	}
	if (*slot) {
		r = j->rows[*slot - 1];
		r->counts.count++;
		return &r->counts;
	}
	r = add_row(j, decision, host, port, reason, fix);
	*slot = (uint16_t)j->count;
	r->counts.count = 1;
	if (decision == JOURNAL_DENIED)
		tell_supervisor(j, r);
	write_line(j, r);
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

void journal_flush(struct journal *j)
{
	for (unsigned i = 0; i < j->count; i++)
		if (has_news(j->rows[i]))
			write_line(j, j->rows[i]);
}
