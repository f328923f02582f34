#pragma once
/*
 * netlog - reads the network log of gates.
 *
 * docs/design/network-log.md has the format; net/journal.c writes it.
 */
#include <stdbool.h>
#include <stdint.h>

#define NETLOG_FILE "network.log"
#define NETLOG_OLD_FILE "network.log.1"
#define NETLOG_MAX_BYTES                                                                           \
	(8u << 20) /* a starting gate that finds it larger renames it to the old file */

/* One line; texts point into it. */
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

/* Splits `line` (without its newline) in place. False: not a line of the log, or incomplete. */
bool netlog_parse_line(char *line, struct netlog_line *ret);

/* The sum of all lines: one row per host, port, decision and reason. */
#define NETLOG_ROWS_MAX 16384u

struct netlog_row {
	char *decision, *host, *reason, *fix;
	uint16_t port;
	uint64_t last_ms, count, sent_bytes, received_bytes;
};

struct netlog_sum {
	struct netlog_row *rows; /* in the order of their first line */
	unsigned count;
	uint64_t begins_ms; /* older lines were discarded; 0: none were */
	bool is_cut;        /* there were more hosts than NETLOG_ROWS_MAX */
};

void netlog_sum_add(struct netlog_sum *s, const struct netlog_line *line);
void netlog_sum_sort(struct netlog_sum *s); /* latest last */
void netlog_sum_done(struct netlog_sum *s);
