#pragma once
/*
 * request - what a sandbox is asked to be: settings of a command line or of a call, and the policy
 * that they make together with the configuration files.
 *
 * Two kinds. The user's own (.server is NULL): options, then the user's file, then the project's,
 * whose wishes beyond the user's own words are left out with one remark unless the file is
 * trusted; the image is detected where nobody names one. A caller's (.server is the request that
 * the server's own options make, with its ceiling raised): the same settings with the caller's on
 * top, within that ceiling.
 */
#include "base/err.h"
#include "policy/settings.h"
#include "state/configfile.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct op_events;

#define REQUEST_ORIGIN_MAX_BYTES 96

struct request {
	const struct ak *ak;
	struct settings settings;
	const char *config_path; /* NULL: what is found */
	const char *pull;        /* missing, always or never; NULL: missing */
	bool has_no_config;
	bool is_quiet;                /* no progress bars while an image is pulled */
	const struct request *server; /* NULL: the user asks */
	uint64_t timeout_ms;          /* of a caller; 0: none */

	/* what request_resolve() finds */
	struct policy policy;
	struct configfile config;
	size_t typed_count; /* of .settings, the first: what is not from files or detected */
	bool is_image_detected;
	bool forbids_root; /* by a ceiling: also if the image calls somebody else so */
	bool forbids_host; /* the same: no fallback to this machine's programs */
	char **left_out; /* of a project's file: a sentence for each thing beyond the user's own */
	char origin[REQUEST_ORIGIN_MAX_BYTES]; /* of a detected image */
};

/*
 * Settings and configuration files -> policy. Nothing has touched the system when this fails.
 * `command`, for detecting an image, may be NULL.
 */
ERR_CHECKED int request_resolve(struct request *r, const char *command, const struct op_events *ev,
				struct err *e);

/*
 * For a server: its policy becomes the ceiling of every call, with the maximum of limits that the
 * user has not set.
 */
ERR_CHECKED int request_raise_ceiling(struct request *r, struct err *e);

/* What a configuration wants run first in a new sandbox, or NULL. */
const char *request_init(const struct request *r);

/*
 * What runs before the command in a sandbox of its own: the private clone is made, then [sandbox]
 * init, in the same sandbox; stdout stays the command's alone. *argv is replaced where there is
 * something to run; *ret_text, which it then borrows, is the caller's to free.
 */
void request_put_init_first(const struct request *r, char ***argv, char **ret_text);

void request_done(struct request *r); /* also after failure, and on a zeroed struct */
