#pragma once
/* runoptions - parses the options of `run` and similar commands into a request (ops/request). */
#include "cli/opts.h"
#include "ops/request.h"

struct runoptions_flags {
	const char *entrypoint; /* NULL: the image's own */
	const char *pull;       /* NULL: missing */
	const char *config;     /* NULL: the discovered file */
	bool has_no_config;
	bool has_tty;
	bool has_no_tty;
	bool is_json;
	bool is_verbose;

	struct opts_list labels;
	const char *ttl;   /* NULL: no expiry */
	const char *name;  /* NULL: not given */
	const char *from;  /* NULL: use --image */
	const char *devcontainer; /* "": the file in its usual place; NULL: none */
	const char *count; /* NULL: default */

	struct opts_list listen;
	const char *api_key, *api_key_file, *tls_cert, *tls_key, *domain; /* NULL: none */
	bool isolates_keys, has_no_isolation; /* neither: isolate if there are several keys */
	bool is_kept, is_detached;

	/* of build */
	const char *tag, *file, *target, *progress; /* NULL: not given */
	struct opts_list build_args, secrets;
	bool has_no_cache;
	bool is_removed, is_interactive; /* docker's options for what is always the case */
};

extern const struct opts_table runoptions_run;     /* run's */
extern const struct opts_table runoptions_create;  /* for a named sandbox */
extern const struct opts_table runoptions_serve;   /* for a server's ceiling */
extern const struct opts_table runoptions_mcp;     /* the same for MCP */
extern const struct opts_table runoptions_agent;   /* for an agent; without output options */
extern const struct opts_table runoptions_prewarm; /* for sandboxes in the pool */
extern const struct opts_table runoptions_build;   /* for a build */
extern const struct opts_table runoptions_policy;  /* without options about running a command */

struct runoptions {
	struct runoptions_flags flags;
	struct request request;
	int used; /* number of words in argv that were options */
};

/* Parses options up to the first other word; does not resolve the request. */
ERR_CHECKED int runoptions_parse(const struct opts_table *table, char **argv, const struct ak *ak,
				 struct runoptions *o, struct err *e);
/*
 * The same for commands whose own words may stand before, between and after the options: at most
 * `max` words, borrowed from argv.
 */
ERR_CHECKED int runoptions_collect(const struct opts_table *table, char **argv, const struct ak *ak,
				   struct runoptions *o, const char **ret_words, unsigned max,
				   unsigned *ret_count, struct err *e);
/* The same, and resolves the request. */
ERR_CHECKED int runoptions_read_words(const struct opts_table *table, char **argv,
				      const struct ak *ak, struct runoptions *o,
				      const char **ret_words, unsigned max, unsigned *ret_count,
				      struct err *e);

/* Copies flags about the whole request into it; the functions above do this too. */
void runoptions_fill(struct runoptions *o, const struct ak *ak);

/* --ttl in milliseconds, 0 for none. */
ERR_CHECKED int runoptions_read_ttl(const struct runoptions_flags *f, uint64_t *ret_ms,
				    struct err *e);
void runoptions_done(struct runoptions *o); /* also after failure, and on a zeroed struct */
