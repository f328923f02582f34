#pragma once
/*
 * doctor - which walls this host can build for this caller, and what to do about the others.
 *
 * Each check tries or asks the kernel for the thing itself; settings of the system are read only
 * to explain a failure and to name the command that fixes it.
 */
#include <stddef.h>

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_WEAKER,  /* works in a lesser form, which .detail names */
	DOCTOR_MISSING, /* sandboxes refuse to run */

	DOCTOR_STATE_COUNT
};

#define DOCTOR_TEXT_MAX_BYTES 256u

struct doctor_finding {
	const char *wall;
	enum doctor_state state;
	char detail[DOCTOR_TEXT_MAX_BYTES];
	char fix[DOCTOR_TEXT_MAX_BYTES]; /* a command or an advice; "" when nothing is to do */
};

#define DOCTOR_FINDINGS_MAX 16u

struct ak;
/* Fills `ret`, returns how many. */
size_t doctor_examine(const struct ak *ak, struct doctor_finding ret[DOCTOR_FINDINGS_MAX]);
