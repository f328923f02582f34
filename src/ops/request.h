#pragma once
/*
 * request - resolves settings of a command line or a call, and configuration files, to a policy.
 *
 * Two kinds. Of the user (.server is NULL): options, then the user's file, then the project's,
 * whose settings beyond the user's own are left out with one remark unless the file is trusted; the
 * image is detected if none is named. Of a caller (.server is the request of the server's options,
 * with its ceiling raised): the same settings plus the caller's, within that ceiling.
 */
#include "base/err.h"
#include "policy/settings.h"
#include "state/configfile.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct op_events;

#define REQUEST_ORIGIN_MAX_BYTES 96

/* An image that is built before it is used (ops/op_build). */
struct request_build {
	char *file, *context; /* absolute; NULL: none is built */
	char *target;         /* NULL: the last stage */
	char **args;          /* "NAME=value"; NULL: none */
	char *name;           /* of the image */
};

struct request {
	const struct ak *ak;
	struct settings settings;
	const char *config_path; /* NULL: the discovered file */
	const char *pull;        /* missing, always or never; NULL: missing */
	bool has_no_config;
	bool is_quiet;                /* no progress bars while an image is pulled */
	const struct request *server; /* NULL: request of the user */
	uint64_t timeout_ms;          /* of a caller; 0: none */

	char *own_init;             /* instead of the configured [sandbox] init; NULL: none */
	struct request_build build; /* set by a devcontainer, or by request_resolve() */

	/* set by request_resolve() */
	struct policy policy;
	struct configfile config;
	size_t typed_count; /* number of first .settings that are neither from files nor detected */
	bool is_image_detected;
	bool forbids_root; /* by a ceiling: also for an image's user with uid 0 */
	bool forbids_host; /* by a ceiling: no fallback to this machine's programs */
	char **left_out;   /* settings of the project's file that exceed the user's, a sentence each
			    */
	char origin[REQUEST_ORIGIN_MAX_BYTES]; /* of a detected image */
};

/*
 * Resolves settings and configuration files to a policy, without changing anything on the system.
 * `command`, for detecting an image, may be NULL.
 */
ERR_CHECKED int request_resolve(struct request *r, const char *command, const struct op_events *ev,
				struct err *e);

/*
 * For a server: turns its policy into the ceiling of every call; limits that the user has not set
 * get their maximum.
 */
ERR_CHECKED int request_raise_ceiling(struct request *r, struct err *e);

/* Names the image after the file that it is built from. */
void request_name_build(struct request *r);

/* The configured [sandbox] init, or NULL. */
const char *request_init(const struct request *r);

/*
 * Makes *argv run the private clone and [sandbox] init before the command, in the same sandbox;
 * their output goes to stderr. *argv is replaced if there is something to run; it then borrows
 * *ret_text, which the caller frees.
 */
void request_put_init_first(const struct request *r, char ***argv, char **ret_text);

void request_done(struct request *r); /* also after failure, and on a zeroed struct */
