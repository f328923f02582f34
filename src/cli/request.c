/* request - the options that `run` and every command like it share; see request.h. */
#include "cli/request.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/habits.h"
#include "named/named.h"
#include "engine/project.h"
#include "policy/ceiling.h"
#include "policy/clone.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define SETTING(field_) .kind = OPT_SETTING, .field = (field_)

/* How an option of policy/fields.def becomes a setting. */
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
	  .kind = OPT_FLAG, .offset = offsetof(struct request_flags, is_json) }

#define KEPT_ROWS \
	{ "Named sandboxes", "label", 0, "KEY=VALUE", "a label, for finding it again", \
	  .kind = OPT_LIST, .offset = offsetof(struct request_flags, labels) }, \
	{ NULL, "ttl", 0, "DURATION", "remove it after that time", .kind = OPT_TEXT, \
	  .offset = offsetof(struct request_flags, ttl) }
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
	  .offset = offsetof(struct request_flags, count) },
#include "cli/policyrows.def"
};

static const struct opt serve_rows[] = {
	{ "Where", "listen", 0, "WHERE", "ADDRESS:PORT or unix:PATH; may be given several times",
	  .kind = OPT_LIST, .offset = offsetof(struct request_flags, listen) },
	{ NULL, "api-key-file", 0, "FILE",
	  "keys that callers over TCP need: KEY, NAME KEY or NAME KEY admin, one a line",
	  .kind = OPT_TEXT, .offset = offsetof(struct request_flags, api_key_file) },
	{ NULL, "api-key", 0, "KEY", "one key; others can see it in the list of processes",
	  .kind = OPT_TEXT, .offset = offsetof(struct request_flags, api_key) },
	{ NULL, "isolate-keys", 0, NULL,
	  "each key sees only what it made (default: with two keys or more); an admin key all",
	  .kind = OPT_FLAG, .offset = offsetof(struct request_flags, isolates_keys) },
	{ NULL, "no-isolate-keys", 0, NULL, "every key sees every sandbox", .kind = OPT_FLAG,
	  .offset = offsetof(struct request_flags, has_no_isolation) },
	{ NULL, "tls-cert", 0, "FILE", "certificate and chain, in PEM", .kind = OPT_TEXT,
	  .offset = offsetof(struct request_flags, tls_cert) },
	{ NULL, "tls-key", 0, "FILE", "its private key", .kind = OPT_TEXT,
	  .offset = offsetof(struct request_flags, tls_key) },
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
	  .kind = OPT_FLAG, .offset = offsetof(struct request_flags, is_kept) },
	{ NULL, "name", 'n', "NAME", "keep it under this name", .kind = OPT_TEXT,
	  .offset = offsetof(struct request_flags, name) },
	OUTPUT_ROWS,
	{ NULL, "verbose", 0, NULL,
	  "say which files of yours are masked and which variables stay out", .kind = OPT_FLAG,
	  .offset = offsetof(struct request_flags, is_verbose) },
	{ NULL, "detach", 'd', NULL,
	  "do not wait: the sandbox is kept and runs on, and its name is printed", .kind = OPT_FLAG,
	  .offset = offsetof(struct request_flags, is_detached) },
	{ NULL, "rm", 0, NULL, "nothing is kept (the default)", .kind = OPT_DOCKERS_FLAG,
	  .offset = offsetof(struct request_flags, is_removed) },
	{ NULL, "interactive", 0, NULL, "stdin is passed on (always)", .kind = OPT_DOCKERS_FLAG,
	  .offset = offsetof(struct request_flags, is_interactive) },
	{ NULL, "tty", 't', NULL, "a terminal (default: when stdin and stdout are terminals)",
	  .kind = OPT_FLAG, .offset = offsetof(struct request_flags, has_tty) },
	{ NULL, "no-tty", 'T', NULL, "no terminal", .kind = OPT_FLAG,
	  .offset = offsetof(struct request_flags, has_no_tty) },
};

static const struct opt create_rows[] = {
	{ "What it is made from", "from", 0, "IMAGE|CHECKPOINT",
	  "a checkpoint with its policy, or an image as with --image", .kind = OPT_TEXT,
	  .offset = offsetof(struct request_flags, from) },
#include "cli/policyrows.def"
	KEPT_ROWS,
	OUTPUT_ROWS,
};

const struct opts_table request_options = { run_rows, COUNT_OF(run_rows) };
const struct opts_table request_serve_options = { serve_rows, COUNT_OF(serve_rows) };
const struct opts_table request_mcp_options = { mcp_rows, COUNT_OF(mcp_rows) };
const struct opts_table request_prewarm_options = { prewarm_rows, COUNT_OF(prewarm_rows) };
const struct opts_table request_policy_options = { policy_rows, COUNT_OF(policy_rows) };
const struct opts_table request_agent_options = { agent_rows, COUNT_OF(agent_rows) };
const struct opts_table request_create_options = { create_rows, COUNT_OF(create_rows) };

static bool has_setting(const struct opts_settings *s, enum policy_field field)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].field == field && s->list[i].layer != POLICY_MAXIMUM)
			return true;
	return false;
}

static bool has_configured(const struct configuration *c, enum policy_field field)
{
	for (size_t i = 0; i < c->setting_count; i++)
		if (c->settings[i].field == field && c->settings[i].layer != POLICY_MAXIMUM)
			return true;
	return false;
}

/*
 * --image, else $AGENTKERNEL_IMAGE, else the configuration's, else what the command or the
 * project's files ask for.
 */
static int choose_image(struct request *r, const char *command, struct err *e)
{
	const char *asked = environment_get(r->ak->caller.environ_list, "AGENTKERNEL_IMAGE");
	struct policy_setting setting = { POLICY_IMAGE, asked, "AGENTKERNEL_IMAGE",
					  POLICY_BY_COMMAND_LINE };

	if (has_setting(&r->settings, POLICY_IMAGE))
		return 0;
	if (!asked || !asked[0]) {
		if (has_configured(&r->config.user, POLICY_IMAGE) ||
		    has_configured(&r->config.project, POLICY_IMAGE))
			return 0;
		setting.text =
			project_detect(r->ak->caller.cwd, command, r->origin, sizeof(r->origin));
		setting.origin = r->origin;
		setting.kind = POLICY_ORIGIN_DETECTED;
		r->is_image_detected = setting.text != NULL;
	}
	return setting.text ? opts_settings_add(&r->settings, &setting, e) : 0;
}

static int load_config(struct request *r, struct err *e)
{
	if (r->flags.config && r->flags.has_no_config)
		return err_set(e, ERR_INVALID, "--config and --no-config exclude each other");
	if (r->flags.has_no_config)
		return 0;
	return configfile_load(r->ak, r->flags.config, &r->config, e);
}

static int add_config(struct request *r, const struct configuration *c, struct err *e)
{
	for (size_t i = 0; i < c->setting_count; i++)
		if (opts_settings_add(&r->settings, &c->settings[i], e) < 0)
			return -1;
	return 0;
}

static int resolve(struct request *r, struct policy *ret, struct err *e)
{
	return policy_resolve(r->settings.list, r->settings.count, &r->ak->caller, ret, e);
}

/* ---- a project's file that asks for more than the user allows ---- */

/* What of a project's file counts: its settings, less those that were left out, and what lowers
 * presets. */
struct clamp {
	struct request *request;
	const struct policy *ceiling;
	size_t base_count;                           /* settings before the project's */
	bool is_dropped[CONFIGURATION_SETTINGS_MAX]; /* of the project's */
	struct policy_setting lowered[POLICY_FIELD_COUNT];
	size_t lowered_count;
};

static int apply_clamp(struct clamp *c, struct err *e)
{
	struct request *r = c->request;
	const struct configuration *project = &r->config.project;

	policy_done(&r->policy);
	r->settings.count = c->base_count;
	for (size_t i = 0; i < project->setting_count; i++)
		if (!c->is_dropped[i] &&
		    opts_settings_add(&r->settings, &project->settings[i], e) < 0)
			return -1;
	for (size_t i = 0; i < c->lowered_count; i++)
		if (opts_settings_add(&r->settings, &c->lowered[i], e) < 0)
			return -1;
	return resolve(r, &r->policy, e);
}

/* Leaves out the project's settings of that field; false: it has none. */
static bool drop_field(struct clamp *c, enum policy_field field, const char *why)
{
	const struct configuration *project = &c->request->config.project;
	bool is_found = false;

	for (size_t i = 0; i < project->setting_count; i++) {
		const struct policy_setting *s = &project->settings[i];
		size_t len = strlen(s->origin);

		if (c->is_dropped[i] || s->field != field)
			continue;
		/* of several rules, only the one that goes too far */
		if (why && (strncmp(why, s->origin, len) != 0 || why[len] != ':'))
			continue;
		c->is_dropped[i] = is_found = true;
	}
	return is_found;
}

/* A preset of the project's brings it: the same preset with the user's own value in this place. */
static bool lower_field(struct clamp *c, enum policy_field field)
{
	static const struct {
		enum policy_field field;
		const char *text; /* NULL: none of it */
	} least[] = {
		{ POLICY_WORKSPACE, NULL },        { POLICY_HOME, "false" },
		{ POLICY_NETWORK, "false" },       { POLICY_READ_ONLY, "true" },
		{ POLICY_NETWORK_POLICY, "deny" },
	};

	for (size_t i = 0; i < c->lowered_count; i++)
		if (c->lowered[i].field == field)
			return false;
	for (size_t i = 0; i < COUNT_OF(least); i++) {
		if (least[i].field != field)
			continue;
		c->lowered[c->lowered_count++] =
			(struct policy_setting){ field, least[i].text, "not trusted",
						 POLICY_BY_PROJECT_FILE };
		return true;
	}
	return false;
}

/* Where an option has set the same field, the words name that: the project's line goes before them.
 */
static void note_left_out(struct request *r, enum policy_field field, const char *why)
{
	const struct configuration *project = &r->config.project;
	const char *line = NULL;
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < project->setting_count; i++) {
		size_t len = strlen(project->settings[i].origin);

		if (strncmp(why, project->settings[i].origin, len) == 0 && why[len] == ':')
			len = 0; /* it is named already */
		if (len == 0 || project->settings[i].field == field)
			line = len ? project->settings[i].origin : NULL;
		if (len == 0)
			break;
	}
	text = line ? mem_format("%s: %s", line, why) : mem_dup(why);
	(void)keyrows_list_add(&r->left_out, text);
}

/* Makes the next attempt ask for less; false: nothing of the project's explains it. */
static bool ask_for_less(struct clamp *c, enum policy_field field, const char *why)
{
	static const enum policy_field causes[] = { POLICY_PROFILE, POLICY_MODE, POLICY_IMAGE };

	if (drop_field(c, field, why) || drop_field(c, field, NULL) || lower_field(c, field))
		return true;
	for (size_t i = 0; i < COUNT_OF(causes); i++)
		if (drop_field(c, causes[i], NULL))
			return true;
	return false;
}

/* What the user's own words allow is the ceiling for a project's file that is not trusted. */
static int resolve_below_ceiling(struct request *r, struct err *e)
{
	CLEANUP(policy_done) struct policy ceiling = { 0 };
	cleanup_free struct clamp *c = NULL;
	enum policy_field field = POLICY_MODE;

	if (r->config.is_trusted || r->config.project.setting_count == 0) {
		if (add_config(r, &r->config.project, e) < 0)
			return -1;
		return resolve(r, &r->policy, e);
	}
	if (resolve(r, &ceiling, e) < 0)
		return -1;
	r->forbids_root = !ceiling_allows_root(&ceiling);
	c = mem_alloc(sizeof(*c));
	*c = (struct clamp){ .request = r, .ceiling = &ceiling, .base_count = r->settings.count };
	for (;;) {
		if (apply_clamp(c, e) < 0)
			return -1;
		if (ceiling_check(&r->policy, &ceiling, NULL, &field, e) == 0)
			return 0;
		note_left_out(r, field, e->msg);
		if (!ask_for_less(c, field, e->msg))
			return -1;
	}
}

static void warn_of_left_out(const struct request *r)
{
	size_t count = keyrows_list_count(r->left_out);

	if (count == 0 || r->is_checking)
		return;
	cli_say("%s asks for more than you allow, and that is left out: %s%s (agentkernel config "
		"trust allows this file as it is; agentkernel config check lists all)",
		CONFIGFILE_NAME, r->left_out[0], count > 1 ? " and more" : "");
}

int request_resolve(struct request *r, const char *command, struct err *e)
{
	r->typed_count = r->settings.count;
	if (load_config(r, e) < 0 || choose_image(r, command, e) < 0 ||
	    add_config(r, &r->config.user, e) < 0)
		return -1;
	if (resolve_below_ceiling(r, e) < 0)
		return -1;
	warn_of_left_out(r);
	return 0;
}

/* `run -it debian:12 bash`: after docker's own words the image comes first. */
static int take_dockers_image(struct request *r, const char *word, struct err *e)
{
	const struct policy_setting image = { POLICY_IMAGE, word, "the first word" };

	if (!r->settings.has_dockers_words || has_setting(&r->settings, POLICY_IMAGE) || !word ||
	    !habits_is_image(word))
		return 0;
	r->used++;
	return opts_settings_add(&r->settings, &image, e);
}

int request_read(const struct opts_table *table, char **argv, const struct ak *ak,
		 struct request *r, struct err *e)
{
	if (opts_parse(table, argv, &r->flags, &r->settings, &r->used, e) < 0)
		return -1;
	r->ak = ak;
	if (take_dockers_image(r, argv[r->used], e) < 0)
		return -1;
	return request_resolve(r, argv[r->used], e);
}

int request_collect(const struct opts_table *table, char **argv, const struct ak *ak,
		    struct request *r, const char **ret_words, unsigned max, unsigned *ret_count,
		    struct err *e)
{
	char **rest = argv;
	unsigned count = 0;

	while (*rest) {
		if (opts_parse(table, rest, &r->flags, &r->settings, &r->used, e) < 0)
			return -1;
		rest += r->used;
		if (!*rest)
			break;
		if (count == max)
			return err_set(e, ERR_INVALID, "unexpected argument '%s'", *rest);
		ret_words[count++] = *rest++;
	}
	r->ak = ak;
	*ret_count = count;
	return 0;
}

int request_read_words(const struct opts_table *table, char **argv, const struct ak *ak,
		       struct request *r, const char **ret_words, unsigned max, unsigned *ret_count,
		       struct err *e)
{
	if (request_collect(table, argv, ak, r, ret_words, max, ret_count, e) < 0)
		return -1;
	return request_resolve(r, NULL, e);
}

int request_raise_ceiling(struct request *r, struct err *e)
{
	struct sysinfo machine;

	if (sysinfo(&machine) < 0)
		return err_sys(e, errno, "find out how much memory this machine has");
	ceiling_raise(&r->policy, (uint64_t)machine.totalram * machine.mem_unit);
	/* the files' come after what was typed, and count before it */
	for (size_t i = 0; i < r->settings.count; i++) {
		size_t at = (r->typed_count + i) % r->settings.count;

		if (r->settings.list[at].layer == POLICY_MAXIMUM &&
		    ceiling_set_maximum(&r->policy, &r->settings.list[at], e) < 0)
			return -1;
	}
	r->forbids_root = !ceiling_allows_root(&r->policy);
	r->forbids_host = r->policy.host_use == POLICY_HOST_FORBIDDEN;
	return 0;
}

const char *request_init(const struct request *r)
{
	return r->config.project.init ? r->config.project.init : r->config.user.init;
}

void request_put_init_first(const struct request *r, char ***argv, char **ret_text)
{
	cleanup_buf struct buf init;
	size_t count = 0;
	char **whole;

	buf_init(&init, BUF_TEXT_MAX_BYTES);
	if (r->policy.is_clone)
		clone_format_init(&r->policy, &init);
	if (request_init(r))
		buf_add_text(&init, request_init(r));
	if (!init.len)
		return;
	while ((*argv)[count])
		count++;
	whole = mem_alloc((count + 5) * sizeof(*whole));
	*ret_text =
		mem_format("(\n%s\n) >&2 </dev/null || { echo 'agentkernel: [sandbox] init failed' "
			   ">&2; exit 125; }\nexec \"$@\"",
			   buf_text(&init));
	whole[0] = (char *)"/bin/sh";
	whole[1] = (char *)"-c";
	whole[2] = *ret_text;
	whole[3] = (char *)"sh";
	memcpy(whole + 4, *argv, (count + 1) * sizeof(*whole));
	free(*argv);
	*argv = whole;
}

int request_read_ttl(const struct request_flags *f, uint64_t *ret_ms, struct err *e)
{
	*ret_ms = 0;
	if (f->ttl && parse_duration_ms(f->ttl, NAMED_TTL_MIN_MS, NAMED_TTL_MAX_MS, ret_ms, e) < 0)
		return err_wrap(e, "--ttl");
	return 0;
}

void request_done(struct request *r)
{
	policy_done(&r->policy);
	opts_settings_done(&r->settings);
	configfile_done(&r->config);
	keyrows_list_free(&r->left_out);
}
