#pragma once
/*
 * query - parses the query of a request's target: "a=b&c=d%20e".
 *
 * No system calls. Hostile input: every byte. A bad escape or an encoded NUL is refused.
 */
#include <stdbool.h>

struct query_pair {
	char *name, *value; /* decoded; the value is "" if there is none */
};

/*
 * Returns 1 with the next pair, and moves *at past it; 0: none left; -1: it cannot be decoded. Free
 * with query_pair_done().
 */
int query_next(const char **at, struct query_pair *ret);
void query_pair_done(struct query_pair *p); /* may run twice, and on a zeroed struct */
