#pragma once
/*
 * query - the query of a request's target, taken apart: "a=b&c=d%20e".
 *
 * Pure. Hostile: every byte. What is not escaped properly, or would hide a NUL, is refused.
 */
#include <stdbool.h>

struct query_pair {
	char *name, *value; /* decoded; the value is "" where there is none */
};

/*
 * 1: the next pair, and *at is behind it; 0: there is none left; -1: it cannot be decoded.
 * query_pair_done() releases.
 */
int query_next(const char **at, struct query_pair *ret);
void query_pair_done(struct query_pair *p); /* may run twice, and on a zeroed struct */
