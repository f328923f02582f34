#pragma once
/*
 * gitinspect - finds what a sandbox left in a workspace that git outside would run.
 *
 * In every repository that did not exist when the sandbox started it looks for: settings that are
 * not harmless (policy/gitsettings), hooks, object stores and git directories outside the
 * workspace. These are moved to the quarantine; settings are removed one by one, so that the
 * repository still works. In a repository that existed before, only what could be added is
 * inspected, because the rest was read-only.
 *
 * Runs when no process of the sandbox runs, or all are frozen. Hostile input: every inspected file,
 * and other sandboxes that change them meanwhile.
 */
#include "base/err.h"

#include <stddef.h>

struct quarantine;
struct workspace;

#define GITINSPECT_FILE_MAX_BYTES (1u << 20) /* of settings; a larger file is moved whole */
#define GITINSPECT_HOOKS_MAX 256u            /* moved one by one; more: the directory */
#define GITINSPECT_WORDS_MAX_BYTES 16384u

/* The findings as text, one per line. */
struct gitinspect_words {
	char text[GITINSPECT_WORDS_MAX_BYTES]; /* if there are more, cut at the end of a line */
	size_t len;
};

ERR_CHECKED int gitinspect_run(const struct workspace *w, struct quarantine *q,
			       struct gitinspect_words *ret, struct err *e);
