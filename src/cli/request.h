#pragma once
/*
 * request - the options that `run` and every command like it share, and the policy they make.
 */
#include "cli/opts.h"
#include "state/configfile.h"
#include "policy/policy.h"

struct ak;

struct request_flags {
	const char *entrypoint; /* NULL: the image's own */
	const char *pull;       /* NULL: missing */
	const char *config;     /* NULL: what is found */
	bool has_no_config;
	bool has_tty;
	bool has_no_tty;
	bool is_json;
	bool is_verbose;

	struct opts_list labels;
	const char *ttl;   /* NULL: for ever */
	const char *name;  /* NULL: none was asked for */
	const char *from;  /* NULL: --image says */
	const char *count; /* NULL: as usual */

	struct opts_list listen;
	const char *api_key, *api_key_file, *tls_cert, *tls_key; /* NULL: none */
	bool isolates_keys, has_no_isolation; /* neither: where there are several keys */
	bool is_kept, is_detached;
	bool is_removed, is_interactive; /* docker's words for what is the case anyway */
};

extern const struct opts_table request_options;         /* run's */
extern const struct opts_table request_create_options;  /* for a sandbox that stays */
extern const struct opts_table request_serve_options;   /* for a server's ceiling */
extern const struct opts_table request_mcp_options;     /* the same for MCP */
extern const struct opts_table request_agent_options;   /* of an agent, whose output is its own */
extern const struct opts_table request_prewarm_options; /* for sandboxes that wait ready */
extern const struct opts_table request_policy_options;  /* less what is about running something */

#define REQUEST_ORIGIN_MAX_BYTES 96

struct request {
	struct request_flags flags;
	struct opts_settings settings;
	size_t typed_count; /* of these, the first: what is not from files or detected */
	const struct ak *ak;
	struct configfile config;
	struct policy policy;
	bool is_image_detected;
	char **left_out;  /* of a project's file: a sentence for each thing beyond the user's own */
	bool is_checking; /* only looked at: nobody is warned */
	bool forbids_root; /* by a ceiling: also if the image calls somebody else so */
	bool forbids_host; /* the same: no fallback to this machine's programs */
	char origin[REQUEST_ORIGIN_MAX_BYTES]; /* of a detected image */
	int used;                              /* how many words of argv were options */
};

/*
 * Options and configuration files -> settings -> policy. Nothing has touched the system when this
 * fails. What a project's file that is not trusted asks for beyond the user's own words is left
 * out, with one warning.
 */
ERR_CHECKED int request_read(const struct opts_table *table, char **argv, const struct ak *ak,
			     struct request *r, struct err *e);
/*
 * As above, for commands whose own words may stand before, between and after the options: at most
 * `max` of them, borrowed from argv.
 */
ERR_CHECKED int request_read_words(const struct opts_table *table, char **argv, const struct ak *ak,
				   struct request *r, const char **ret_words, unsigned max,
				   unsigned *ret_count, struct err *e);
/* The two halves of it: the options and words alone, then the policy. */
ERR_CHECKED int request_collect(const struct opts_table *table, char **argv, const struct ak *ak,
				struct request *r, const char **ret_words, unsigned max,
				unsigned *ret_count, struct err *e);
ERR_CHECKED int request_resolve(struct request *r, const char *command, struct err *e);

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

/* --ttl in milliseconds, 0 for none. */
ERR_CHECKED int request_read_ttl(const struct request_flags *f, uint64_t *ret_ms, struct err *e);
void request_done(struct request *r); /* also after failure, and on a zeroed struct */
