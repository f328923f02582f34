#pragma once
/*
 * savedoutput - stores outputs that were too long for an answer, for reading by range.
 *
 * A table of the last few, each under a random id that only the caller of the command learns, and
 * that is valid only for the same owner. A new output replaces the oldest; an owner at its maximum
 * replaces its own.
 */
#include "rpc/call.h"

#define SAVEDOUTPUT_MAX 32u
#define SAVEDOUTPUT_OF_OWNER_MAX 8u /* for one key */
#define SAVEDOUTPUT_ID_BYTES 24u

struct savedoutput {
	char id[SAVEDOUTPUT_ID_BYTES]; /* "": none */
	const char *owner;             /* borrowed; NULL: the administrator */
	uint64_t number;               /* in the order of saving */
	struct output output[2];
};

struct savedoutput_table {
	struct savedoutput rows[SAVEDOUTPUT_MAX];
	uint64_t count; /* ever saved */
};

void savedoutput_done(struct savedoutput_table *t); /* may run twice, and on a zeroed struct */

/*
 * If the call's result is cut, takes its output and adds "output_id" to the result. Takes `result`
 * and returns it.
 */
json_t *savedoutput_keep(struct savedoutput_table *t, const char *owner, struct call *c,
			 json_t *result);

/* The result of sandbox_exec_output for these arguments; NULL: the id is not saved here. */
json_t *savedoutput_read(const struct savedoutput_table *t, const char *owner,
			 const json_t *arguments);
