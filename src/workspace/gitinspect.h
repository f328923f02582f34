#pragma once
/*
 * gitinspect - what a sandbox has left in a workspace that git outside would run.
 *
 * Every repository that was not there when the sandbox started is looked at: settings that are not
 * harmless (policy/gitsettings), hooks, object stores and git directories outside of the workspace.
 * They go to the quarantine, settings one by one, so that the repository still works. Of one that
 * was there before only what could be added is looked at: the rest was read-only.
 *
 * Runs when nothing of the sandbox runs, or all of it is frozen. Hostile: everything that is
 * looked at, and other sandboxes that change it meanwhile.
 */
#include "base/err.h"

#include <stddef.h>

struct quarantine;
struct workspace;

#define GITINSPECT_FILE_MAX_BYTES (1u << 20) /* of settings; a larger file is moved as it is */
#define GITINSPECT_HOOKS_MAX 256u            /* that are moved one by one; more: all at once */
#define GITINSPECT_WORDS_MAX_BYTES 16384u

/* What was found, a line each, for people. */
struct gitinspect_words {
	char text[GITINSPECT_WORDS_MAX_BYTES]; /* cut at a line's end where there are more */
	size_t len;
};

ERR_CHECKED int gitinspect_run(const struct workspace *w, struct quarantine *q,
			       struct gitinspect_words *ret, struct err *e);
