#pragma once
/* runoptions - the options that `run` and every command like it share, as a request (ops/request).
 */
#include "cli/opts.h"
#include "ops/request.h"

struct runoptions_flags {
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

extern const struct opts_table runoptions_run;     /* run's */
extern const struct opts_table runoptions_create;  /* for a sandbox that stays */
extern const struct opts_table runoptions_serve;   /* for a server's ceiling */
extern const struct opts_table runoptions_mcp;     /* the same for MCP */
extern const struct opts_table runoptions_agent;   /* of an agent, whose output is its own */
extern const struct opts_table runoptions_prewarm; /* for sandboxes that wait ready */
extern const struct opts_table runoptions_policy;  /* less what is about running something */

struct runoptions {
	struct runoptions_flags flags;
	struct request request;
	int used; /* how many words of argv were options */
};

/* Options up to the first word that is none; the request is not resolved yet. */
ERR_CHECKED int runoptions_parse(const struct opts_table *table, char **argv, const struct ak *ak,
				 struct runoptions *o, struct err *e);
/*
 * The same for commands whose own words may stand before, between and after the options: at most
 * `max` of them, borrowed from argv.
 */
ERR_CHECKED int runoptions_collect(const struct opts_table *table, char **argv, const struct ak *ak,
				   struct runoptions *o, const char **ret_words, unsigned max,
				   unsigned *ret_count, struct err *e);
/* The same, and resolves the request. */
ERR_CHECKED int runoptions_read_words(const struct opts_table *table, char **argv,
				      const struct ak *ak, struct runoptions *o,
				      const char **ret_words, unsigned max, unsigned *ret_count,
				      struct err *e);

/* What the options say about the request as a whole; the functions above have done so. */
void runoptions_fill(struct runoptions *o, const struct ak *ak);

/* --ttl in milliseconds, 0 for none. */
ERR_CHECKED int runoptions_read_ttl(const struct runoptions_flags *f, uint64_t *ret_ms,
				    struct err *e);
void runoptions_done(struct runoptions *o); /* also after failure, and on a zeroed struct */
