#pragma once
/*
 * poolstatus - the daemon and its pools, as JSON and as a table for people.
 */
#include <stdint.h>

struct buf;
struct pools;

struct poolstatus_daemon {
	uint64_t started_ms;
	uint64_t strangers; /* claims of processes with other surroundings */
};

void poolstatus_format_json(const struct pools *all, const struct poolstatus_daemon *d,
			    struct buf *out);
/* A line about the daemon and a table of its pools. */
void poolstatus_format_table(const struct pools *all, const struct poolstatus_daemon *d,
			     struct buf *out);
