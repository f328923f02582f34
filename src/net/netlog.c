/* netlog - reads the network log of gates; see netlog.h. */
#include "net/netlog.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX (1ull << 62)

static bool read_number(char **rest, uint64_t max, uint64_t *ret)
{
	const char *text = strsep(rest, "\t");
	struct err ignored;

	return text && parse_count(text, 0, max, ret, &ignored) == 0;
}

static bool read_text(char **rest, const char **ret)
{
	*ret = strsep(rest, "\t");
	return *ret != NULL;
}

bool netlog_parse_line(char *line, struct netlog_line *ret)
{
	char *rest = line;
	uint64_t port = 0;

	*ret = (struct netlog_line){ 0 };
	if (!read_number(&rest, NUMBER_MAX, &ret->time_ms) || !read_text(&rest, &ret->sandbox) ||
	    !read_text(&rest, &ret->decision) || !read_text(&rest, &ret->host) ||
	    !read_number(&rest, UINT16_MAX, &port) || !read_text(&rest, &ret->reason) ||
	    !read_text(&rest, &ret->fix) || !read_number(&rest, NUMBER_MAX, &ret->count) ||
	    !read_number(&rest, NUMBER_MAX, &ret->sent_bytes) ||
	    !read_number(&rest, NUMBER_MAX, &ret->received_bytes))
		return false;
	ret->port = (uint16_t)port;
	return rest == NULL;
}

static struct netlog_row *find_row(const struct netlog_sum *s, const struct netlog_line *line)
{
	/* newest rows first: lines of one connection follow each other */
	for (unsigned i = s->count; i-- > 0;) {
		struct netlog_row *r = &s->rows[i];

		if (r->port == line->port && strcmp(r->host, line->host) == 0 &&
		    strcmp(r->decision, line->decision) == 0 &&
		    strcmp(r->reason, line->reason) == 0)
			return r;
	}
	return NULL;
}

void netlog_sum_add(struct netlog_sum *s, const struct netlog_line *line)
{
	struct netlog_row *r = find_row(s, line);

	if (!r && s->count == NETLOG_ROWS_MAX) {
		s->is_cut = true;
		return;
	}
	if (!r) {
		if ((s->count & (s->count - 1)) == 0) /* grow at each power of two */
			s->rows = mem_grow(s->rows, s->count ? 2 * s->count : 1, sizeof(*s->rows));
		r = &s->rows[s->count++];
		*r = (struct netlog_row){
			.decision = mem_dup(line->decision),
			.host = mem_dup(line->host),
			.reason = mem_dup(line->reason),
			.fix = mem_dup(line->fix),
			.port = line->port,
		};
	}
	if (line->time_ms > r->last_ms)
		r->last_ms = line->time_ms;
	r->count += line->count;
	r->sent_bytes += line->sent_bytes;
	r->received_bytes += line->received_bytes;
}

static int by_time(const void *left, const void *right)
{
	const struct netlog_row *a = left, *b = right;

	return a->last_ms < b->last_ms ? -1 : a->last_ms > b->last_ms;
}

void netlog_sum_sort(struct netlog_sum *s)
{
	if (s->count > 1)
		qsort(s->rows, s->count, sizeof(*s->rows), by_time);
}

void netlog_sum_done(struct netlog_sum *s)
{
	for (unsigned i = 0; i < s->count; i++) {
		free(s->rows[i].decision);
		free(s->rows[i].host);
		free(s->rows[i].reason);
		free(s->rows[i].fix);
	}
	free(s->rows);
	*s = (struct netlog_sum){ 0 };
}
