#pragma once
/*
 * netlog - reading what gates write about their decisions.
 *
 * The format is docs/design/network-log.md; net/journal.c writes it.
 */
#include <stdbool.h>
#include <stdint.h>

#define NETLOG_FILE "network.log"
#define NETLOG_OLD_FILE "network.log.1"
#define NETLOG_MAX_BYTES                                                                           \
	(8u << 20) /* found larger by a gate that starts, it becomes the old one                   \
		    */

/* One line; texts are borrowed from it. */
struct netlog_line {
	uint64_t time_ms; /* since 1970 */
	const char *sandbox;
	const char *decision; /* "allowed", "denied", "lookup", "failed" */
	const char *host;
	uint16_t port; /* 0: a lookup */
	const char *reason;
	const char *fix; /* the option that would allow it, or "" */
	uint64_t count, sent_bytes, received_bytes;
};

/* Cuts `line` (without its newline) apart. False: not a line of a log, or half of one. */
bool netlog_parse_line(char *line, struct netlog_line *ret);

/*
 * Lines added up: one row for each host, port, decision and reason.
 */
#define NETLOG_ROWS_MAX 16384u

struct netlog_row {
	char *decision, *host, *reason, *fix;
	uint16_t port;
	uint64_t last_ms, count, sent_bytes, received_bytes;
};

struct netlog_sum {
	struct netlog_row *rows; /* in the order of their first line */
	unsigned count;
	uint64_t begins_ms; /* older lines have been thrown away; 0: none have */
	bool is_cut;        /* there were more hosts than NETLOG_ROWS_MAX */
};

void netlog_sum_add(struct netlog_sum *s, const struct netlog_line *line);
void netlog_sum_sort(struct netlog_sum *s); /* latest last */
void netlog_sum_done(struct netlog_sum *s);
