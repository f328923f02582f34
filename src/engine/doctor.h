#pragma once
/*
 * doctor - checks which protections this host supports for this caller, and how to fix the others.
 *
 * Each check tries the operation itself or asks the kernel; system settings are read only to
 * explain a failure and to name the command that fixes it.
 */
#include <stddef.h>

enum doctor_state {
	DOCTOR_OK,
	DOCTOR_WEAKER,  /* works in a weaker form, described in .detail */
	DOCTOR_MISSING, /* sandboxes refuse to run */

	DOCTOR_STATE_COUNT
};

#define DOCTOR_TEXT_MAX_BYTES 256u

struct doctor_finding {
	const char *wall;
	enum doctor_state state;
	char detail[DOCTOR_TEXT_MAX_BYTES];
	char fix[DOCTOR_TEXT_MAX_BYTES]; /* a command or advice; "" if there is nothing to do */
};

#define DOCTOR_FINDINGS_MAX 16u

/* For probes. */
void doctor_set(struct doctor_finding *f, enum doctor_state state, const char *detail,
		const char *fix);

struct ak;
/* Fills `ret` and returns the count. */
size_t doctor_examine(const struct ak *ak, struct doctor_finding ret[DOCTOR_FINDINGS_MAX]);
