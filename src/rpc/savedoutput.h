#pragma once
/*
 * savedoutput - outputs that were too long for an answer, to be read by range afterwards.
 *
 * A table of the last few, each under a random id that only the caller of the command is told, and
 * that counts only for the same owner. The oldest makes way; an owner that has many makes way for
 * itself.
 */
#include "rpc/call.h"

#define SAVEDOUTPUT_MAX 32u
#define SAVEDOUTPUT_OF_OWNER_MAX 8u /* of a key's own, from there on */
#define SAVEDOUTPUT_ID_BYTES 24u

struct savedoutput {
	char id[SAVEDOUTPUT_ID_BYTES]; /* "": none */
	const char *owner;             /* borrowed; NULL: one that sees all */
	uint64_t number;               /* in the order of saving */
	struct output output[2];
};

struct savedoutput_table {
	struct savedoutput rows[SAVEDOUTPUT_MAX];
	uint64_t count; /* that were saved, ever */
};

void savedoutput_done(struct savedoutput_table *t); /* may run twice, and on a zeroed struct */

/* If the call's result is cut: takes its output, and the result begins with "output_id". Takes and
 * gives `result`. */
json_t *savedoutput_keep(struct savedoutput_table *t, const char *owner, struct call *c,
			 json_t *result);

/* A result of sandbox_exec_output for these arguments; NULL: no such id is saved here. */
json_t *savedoutput_read(const struct savedoutput_table *t, const char *owner,
			 const json_t *arguments);
