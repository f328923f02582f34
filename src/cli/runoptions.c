/* runoptions - the options of `run` and similar commands; see runoptions.h. */
#include "cli/runoptions.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/habits.h"
#include "named/named.h"

/* Maps the options of policy/fields.def to settings. */
#define TEXT .kind = OPT_SETTING
#define SWITCH(text) .kind = OPT_SETTING, .fixed = (text)
#define DIRECTORY .kind = OPT_DIR_SETTING
#define LINES .kind = OPT_SETTING_FILE
#define NOTHING .kind = OPT_SETTING_OFF
/* clang-format off */
#define ROW(group, id, name, letter, value, help, ...) \
	{ group, name, letter, value, help, __VA_ARGS__, .field = POLICY_##id },
#define CALLERS_ROW(id, name, value, help, ...) \
	{ "What callers may ask for", name, 0, value, help, __VA_ARGS__, .field = POLICY_##id, .layer = POLICY_MAXIMUM },
/* clang-format on */

/* clang-format off */
#define OUTPUT_ROWS \
	{ "Output", "json", 0, NULL, "print one machine-readable object", \
	  .kind = OPT_FLAG, .offset = offsetof(struct runoptions_flags, is_json) }

#define KEPT_ROWS \
	{ "Named sandboxes", "label", 0, "KEY=VALUE", "a label, for finding it again", \
	  .kind = OPT_LIST, .offset = offsetof(struct runoptions_flags, labels) }, \
	{ NULL, "ttl", 0, "DURATION", "remove it after that time", .kind = OPT_TEXT, \
	  .offset = offsetof(struct runoptions_flags, ttl) }
/* clang-format on */

static const struct opt policy_rows[] = {
#include "cli/policyrows.def"
	OUTPUT_ROWS,
};

static const struct opt agent_rows[] = {
#include "cli/policyrows.def"
};

static const struct opt prewarm_rows[] = {
	{ "How many", "count", 0, "N", "so many wait ready (default 3)", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, count) },
#include "cli/policyrows.def"
};

static const struct opt serve_rows[] = {
	{ "Where", "listen", 0, "WHERE", "ADDRESS:PORT or unix:PATH; may be given several times",
	  .kind = OPT_LIST, .offset = offsetof(struct runoptions_flags, listen) },
	{ NULL, "api-key-file", 0, "FILE",
	  "keys that callers over TCP need: KEY, NAME KEY or NAME KEY admin, one a line",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, api_key_file) },
	{ NULL, "api-key", 0, "KEY", "one key; others can see it in the list of processes",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, api_key) },
	{ NULL, "isolate-keys", 0, NULL,
	  "each key sees only what it made (default: with two keys or more); an admin key all",
	  .kind = OPT_FLAG, .offset = offsetof(struct runoptions_flags, isolates_keys) },
	{ NULL, "no-isolate-keys", 0, NULL, "every key sees every sandbox", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, has_no_isolation) },
	{ NULL, "domain", 0, "NAME",
	  "URLs of sandboxes are PORT-NAME.DOMAIN too, not only PORT-NAME.localhost",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, domain) },
	{ NULL, "tls-cert", 0, "FILE", "certificate and chain, in PEM", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, tls_cert) },
	{ NULL, "tls-key", 0, "FILE", "its private key", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, tls_key) },
#define CALLERS(...) CALLERS_ROW(__VA_ARGS__)
#include "policy/fields.def"
#include "cli/policyrows.def"
};

static const struct opt mcp_rows[] = {
#define CALLERS(...) CALLERS_ROW(__VA_ARGS__)
#include "policy/fields.def"
#include "cli/policyrows.def"
	OUTPUT_ROWS,
};

static const struct opt run_rows[] = {
#include "cli/policyrows.def"
	KEPT_ROWS,
	{ NULL, "keep", 'k', NULL, "keep the sandbox when the command has ended, and say its name",
	  .kind = OPT_FLAG, .offset = offsetof(struct runoptions_flags, is_kept) },
	{ NULL, "name", 'n', "NAME", "keep it under this name", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, name) },
	OUTPUT_ROWS,
	{ NULL, "verbose", 0, NULL,
	  "say which files of yours are masked and which variables stay out", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, is_verbose) },
	{ NULL, "detach", 'd', NULL,
	  "do not wait: the sandbox is kept and runs on, and its name is printed", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, is_detached) },
	{ NULL, "rm", 0, NULL, "nothing is kept (the default)", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, is_removed) },
	{ NULL, "interactive", 0, NULL, "stdin is passed on (always)", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, is_interactive) },
	{ NULL, "tty", 't', NULL, "a terminal (default: when stdin and stdout are terminals)",
	  .kind = OPT_FLAG, .offset = offsetof(struct runoptions_flags, has_tty) },
	{ NULL, "no-tty", 'T', NULL, "no terminal", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, has_no_tty) },
};

static const struct opt create_rows[] = {
	{ "What it is made from", "from", 0, "IMAGE|CHECKPOINT",
	  "a checkpoint with its policy, or an image as with --image", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, from) },
	{ NULL, "template", 0, "IMAGE|CHECKPOINT",
	  "the same: what a build, a commit or a checkpoint made", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, from) },
	{ NULL, "devcontainer", 0, "FILE.json",
	  "the project's devcontainer.json: its image or build, variables, user, ports, command",
	  .kind = OPT_JSON_FILE, .offset = offsetof(struct runoptions_flags, devcontainer) },
#include "cli/policyrows.def"
	KEPT_ROWS,
	OUTPUT_ROWS,
};

static const struct opt build_rows[] = {
	{ "What is built", "tag", 't', "REF", "what to call the image", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, tag) },
	{ NULL, "file", 'f', "FILE", "the Dockerfile (default: CONTEXT/Dockerfile; - is stdin)",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, file) },
	{ NULL, "target", 0, "STAGE", "build this stage and what it needs (default: the last)",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, target) },
	{ NULL, "build-arg", 0, "NAME[=VALUE]",
	  "a value for an ARG; without one, that of your variable", .kind = OPT_LIST,
	  .offset = offsetof(struct runoptions_flags, build_args) },
	{ NULL, "secret", 0, "id=NAME[,src=FILE|,env=VARIABLE]",
	  "for RUN --mount=type=secret; never part of the image", .kind = OPT_LIST,
	  .offset = offsetof(struct runoptions_flags, secrets) },
	{ NULL, "no-cache", 0, NULL, "do every step again", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, has_no_cache) },
	{ NULL, "progress", 0, "plain|auto",
	  "plain: all output of all steps; auto (default): of those that fail", .kind = OPT_TEXT,
	  .offset = offsetof(struct runoptions_flags, progress) },
	{ NULL, "pull", 0, "WHEN", "images to build from: missing (default), always or never",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, pull) },
	{ NULL, "profile", 'p', "NAME",
	  "of the commands: restrictive, moderate (default) or permissive", .kind = OPT_SETTING,
	  .field = POLICY_PROFILE },
	{ NULL, "config", 'c', "FILE", "instead of the agentkernel.toml that is found",
	  .kind = OPT_TEXT, .offset = offsetof(struct runoptions_flags, config) },
	{ NULL, "no-config", 0, NULL, "no configuration file at all", .kind = OPT_FLAG,
	  .offset = offsetof(struct runoptions_flags, has_no_config) },
#define NETS(...) ROW("Network", __VA_ARGS__)
#include "policy/fields.def"
#define LIMITS(...) ROW("Limits", __VA_ARGS__)
#include "policy/fields.def"
	OUTPUT_ROWS,
};

const struct opts_table runoptions_run = { run_rows, COUNT_OF(run_rows) };
const struct opts_table runoptions_serve = { serve_rows, COUNT_OF(serve_rows) };
const struct opts_table runoptions_mcp = { mcp_rows, COUNT_OF(mcp_rows) };
const struct opts_table runoptions_prewarm = { prewarm_rows, COUNT_OF(prewarm_rows) };
const struct opts_table runoptions_build = { build_rows, COUNT_OF(build_rows) };
const struct opts_table runoptions_policy = { policy_rows, COUNT_OF(policy_rows) };
const struct opts_table runoptions_agent = { agent_rows, COUNT_OF(agent_rows) };
const struct opts_table runoptions_create = { create_rows, COUNT_OF(create_rows) };

/* `run -it debian:12 bash`: after docker's own options, the first word is the image. */
static int take_dockers_image(struct runoptions *o, const char *word, struct err *e)
{
	const struct policy_setting image = { POLICY_IMAGE, word, "the first word" };

	if (!(o->flags.is_removed || o->flags.is_interactive) ||
	    settings_have(&o->request.settings, POLICY_IMAGE) || !word || !habits_is_image(word))
		return 0;
	o->used++;
	return settings_add(&o->request.settings, &image, e);
}

void runoptions_fill(struct runoptions *o, const struct ak *ak)
{
	o->request.ak = ak;
	o->request.config_path = o->flags.config;
	o->request.has_no_config = o->flags.has_no_config;
	o->request.pull = o->flags.pull;
	o->request.is_quiet = o->flags.is_json;
}

int runoptions_parse(const struct opts_table *table, char **argv, const struct ak *ak,
		     struct runoptions *o, struct err *e)
{
	if (opts_parse(table, argv, &o->flags, &o->request.settings, &o->used, e) < 0)
		return -1;
	runoptions_fill(o, ak);
	return take_dockers_image(o, argv[o->used], e);
}

int runoptions_collect(const struct opts_table *table, char **argv, const struct ak *ak,
		       struct runoptions *o, const char **ret_words, unsigned max,
		       unsigned *ret_count, struct err *e)
{
	char **rest = argv;
	unsigned count = 0;

	while (*rest) {
		if (opts_parse(table, rest, &o->flags, &o->request.settings, &o->used, e) < 0)
			return -1;
		rest += o->used;
		if (!*rest)
			break;
		if (count == max)
			return err_set(e, ERR_INVALID, "unexpected argument '%s'", *rest);
		ret_words[count++] = *rest++;
	}
	runoptions_fill(o, ak);
	*ret_count = count;
	return 0;
}

int runoptions_read_words(const struct opts_table *table, char **argv, const struct ak *ak,
			  struct runoptions *o, const char **ret_words, unsigned max,
			  unsigned *ret_count, struct err *e)
{
	if (runoptions_collect(table, argv, ak, o, ret_words, max, ret_count, e) < 0)
		return -1;
	return request_resolve(&o->request, NULL, &cli_events, e);
}

int runoptions_read_ttl(const struct runoptions_flags *f, uint64_t *ret_ms, struct err *e)
{
	*ret_ms = 0;
	if (f->ttl && parse_duration_ms(f->ttl, NAMED_TTL_MIN_MS, NAMED_TTL_MAX_MS, ret_ms, e) < 0)
		return err_wrap(e, "--ttl");
	return 0;
}

void runoptions_done(struct runoptions *o)
{
	request_done(&o->request);
}
