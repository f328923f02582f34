/* request - resolves settings and configuration files to a policy; see request.h. */
#include "ops/request.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "engine/project.h"
#include "ops/access.h"
#include "ops/events.h"
#include "policy/ceiling.h"
#include "policy/clone.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

static bool has_configured(const struct configuration *c, enum policy_field field)
{
	for (size_t i = 0; i < c->setting_count; i++)
		if (c->settings[i].field == field && c->settings[i].layer != POLICY_MAXIMUM)
			return true;
	return false;
}

void request_name_build(struct request *r)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (const char *c = r->build.file; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
	free(r->build.name);
	r->build.name = mem_format("localhost/agentkernel-project:%016" PRIx64, hash);
}

/*
 * [sandbox] dockerfile. Its commands see the project's files, which a sandbox of the project may
 * not see, so a file that came with the project counts only when it is trusted.
 */
static bool plan_build(struct request *r)
{
	const struct configfile *c = &r->config;
	const char *word = c->project.dockerfile ? c->project.dockerfile : c->user.dockerfile;
	const char *path = c->project.dockerfile ? c->project_path : c->user_path;
	cleanup_free char *note = NULL;

	if (!word || !path)
		return false;
	if (c->project.dockerfile && !c->is_trusted) {
		note = mem_format("[sandbox] dockerfile = \"%s\": an image that is built from this "
				  "directory",
				  word);
		(void)keyrows_list_add(&r->left_out, note);
		return false;
	}
	r->build.context = mem_dup_bytes(path, (size_t)(path_base_name(path) - path));
	r->build.file = path_absolute(r->build.context[0] ? r->build.context : "/", word);
	if (!r->build.file)
		return false;
	request_name_build(r);
	return true;
}

/*
 * --image, else $AGENTKERNEL_IMAGE, else the configuration's, else detected from the command or the
 * project's files.
 */
static int choose_image(struct request *r, const char *command, struct err *e)
{
	const char *asked = environment_get(r->ak->caller.environ_list, "AGENTKERNEL_IMAGE");
	struct policy_setting setting = { POLICY_IMAGE, asked, "AGENTKERNEL_IMAGE",
					  POLICY_BY_COMMAND_LINE };

	if (settings_have(&r->settings, POLICY_IMAGE))
		return 0;
	if ((!asked || !asked[0]) && plan_build(r)) {
		setting.text = r->build.name;
		setting.origin = "[sandbox] dockerfile";
		setting.kind = POLICY_ORIGIN_SETTING;
	} else if (!asked || !asked[0]) {
		if (has_configured(&r->config.user, POLICY_IMAGE) ||
		    has_configured(&r->config.project, POLICY_IMAGE))
			return 0;
		setting.text =
			project_detect(r->ak->caller.cwd, command, r->origin, sizeof(r->origin));
		setting.origin = r->origin;
		setting.kind = POLICY_ORIGIN_DETECTED;
		r->is_image_detected = setting.text != NULL;
	}
	return setting.text ? settings_add(&r->settings, &setting, e) : 0;
}

static int load_config(struct request *r, struct err *e)
{
	if (r->config_path && r->has_no_config)
		return err_set(e, ERR_INVALID, "--config and --no-config exclude each other");
	if (r->has_no_config)
		return 0;
	return configfile_load(r->ak, r->config_path, &r->config, e);
}

static int add_config(struct request *r, const struct configuration *c, struct err *e)
{
	for (size_t i = 0; i < c->setting_count; i++)
		if (settings_add(&r->settings, &c->settings[i], e) < 0)
			return -1;
	return 0;
}

static int resolve(struct request *r, struct policy *ret, struct err *e)
{
	return policy_resolve(r->settings.list, r->settings.count, &r->ak->caller, ret, e);
}

/* ---- untrusted project files that exceed the ceiling ---- */

/*
 * The applied part of a project's file: its settings without the dropped ones, and settings that
 * lower its presets.
 */
struct clamp {
	struct request *request;
	const struct policy *ceiling;
	size_t base_count;                           /* settings before the project's */
	bool is_dropped[CONFIGURATION_SETTINGS_MAX]; /* project settings */
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
		if (!c->is_dropped[i] && settings_add(&r->settings, &project->settings[i], e) < 0)
			return -1;
	for (size_t i = 0; i < c->lowered_count; i++)
		if (settings_add(&r->settings, &c->lowered[i], e) < 0)
			return -1;
	return resolve(r, &r->policy, e);
}

/* Drops the project's settings of that field, or those with this value alone; false: none. */
static bool drop_field(struct clamp *c, enum policy_field field, const char *value)
{
	const struct configuration *project = &c->request->config.project;
	bool is_found = false;

	for (size_t i = 0; i < project->setting_count; i++) {
		const struct policy_setting *s = &project->settings[i];

		if (c->is_dropped[i] || s->field != field ||
		    (value && (!s->text || strcmp(s->text, value) != 0)))
			continue;
		c->is_dropped[i] = is_found = true;
	}
	return is_found;
}

/* The value comes from a preset of the project: overrides it with the most restrictive value. */
static bool lower_field(struct clamp *c, enum policy_field field)
{
	static const struct {
		enum policy_field field;
		const char *text; /* NULL: turns it off */
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

/*
 * Records what was left out. The message names who set the value; if that is not the project's own
 * setting (an option set the same field), the project's line goes in front.
 */
static void note_left_out(struct request *r, enum policy_field field, const char *why)
{
	const struct configuration *project = &r->config.project;
	bool is_named = r->policy.origin[field].layer == POLICY_BY_PROJECT_FILE ||
			field == POLICY_ALLOW_HOST;
	const char *line = NULL;
	cleanup_free char *text = NULL;

	for (size_t i = 0; i < project->setting_count && !is_named; i++)
		if (project->settings[i].field == field)
			line = project->settings[i].origin;
	text = line ? mem_format("%s: %s", line, why) : mem_dup(why);
	(void)keyrows_list_add(&r->left_out, text);
}

/* Reduces what the project requests for the next attempt; false: no project setting explains it. */
static bool ask_for_less(struct clamp *c, enum policy_field field)
{
	static const enum policy_field causes[] = { POLICY_PROFILE, POLICY_MODE, POLICY_IMAGE };

	const char *rule = field == POLICY_ALLOW_HOST
				   ? ceiling_find_rule(&c->request->policy, c->ceiling)
				   : NULL;

	if ((rule && drop_field(c, field, rule)) || drop_field(c, field, NULL) ||
	    lower_field(c, field))
		return true;
	for (size_t i = 0; i < COUNT_OF(causes); i++)
		if (drop_field(c, causes[i], NULL))
			return true;
	return false;
}

/* Resolves an untrusted project file below the ceiling of the user's own settings. */
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
		if (!ask_for_less(c, field))
			return -1;
	}
}

static void warn_of_left_out(const struct request *r, const struct op_events *ev)
{
	size_t count = keyrows_list_count(r->left_out);

	if (count == 0)
		return;
	op_remark(ev,
		  "%s asks for more than you allow, and that is left out: %s%s (agentkernel config "
		  "trust allows this file as it is; agentkernel config check lists all)",
		  CONFIGFILE_NAME, r->left_out[0], count > 1 ? " and more" : "");
}

static int resolve_for_user(struct request *r, const char *command, const struct op_events *ev,
			    struct err *e)
{
	r->typed_count = r->settings.count;
	if (load_config(r, e) < 0 || choose_image(r, command, e) < 0 ||
	    add_config(r, &r->config.user, e) < 0)
		return -1;
	if (resolve_below_ceiling(r, e) < 0)
		return -1;
	warn_of_left_out(r, ev);
	return 0;
}

/* ---- a caller of a server ---- */

static int add_all(struct settings *to, const struct settings *from, struct err *e)
{
	for (size_t i = 0; i < from->count; i++)
		if (settings_add(to, &from->list[i], e) < 0)
			return -1;
	return 0;
}

/* Lowers presets of the caller to the ceiling; refuses single values beyond it. */
static int resolve_for_caller(struct request *r, const struct op_events *ev, struct err *e)
{
	const struct request *server = r->server;
	CLEANUP(settings_done) struct settings all = { 0 };
	CLEANUP(keyrows_list_free) char **lowered = NULL;

	if (add_all(&all, &server->settings, e) < 0 || add_all(&all, &r->settings, e) < 0 ||
	    policy_resolve(all.list, all.count, &r->ak->caller, &r->policy, e) < 0)
		return -1;
	r->policy.timeout_ms = access_timeout_ms(r->ak, r->timeout_ms);
	if (ceiling_lower(&r->policy, &server->policy, &lowered, e) < 0)
		return -1;
	for (char *const *text = lowered; text && *text; text++)
		op_remark(ev, "not granted: %s", *text);
	r->is_image_detected =
		server->is_image_detected && !settings_have(&r->settings, POLICY_IMAGE);
	r->forbids_root = server->forbids_root;
	r->forbids_host = server->forbids_host;
	return ceiling_check(&r->policy, &server->policy, access_ceiling_hint(r->ak), NULL, e);
}

int request_resolve(struct request *r, const char *command, const struct op_events *ev,
		    struct err *e)
{
	return r->server ? resolve_for_caller(r, ev, e) : resolve_for_user(r, command, ev, e);
}

int request_raise_ceiling(struct request *r, struct err *e)
{
	struct sysinfo machine;

	if (sysinfo(&machine) < 0)
		return err_sys(e, errno, "find out how much memory this machine has");
	ceiling_raise(&r->policy, (uint64_t)machine.totalram * machine.mem_unit);
	/* maxima of the files first, then the typed ones, which override them */
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
	if (r->own_init)
		return r->own_init;
	if (r->server)
		return request_init(r->server);
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

void request_done(struct request *r)
{
	policy_done(&r->policy);
	settings_done(&r->settings);
	configfile_done(&r->config);
	keyrows_list_free(&r->left_out);
	keyrows_list_free(&r->build.args);
	free(take_ptr(r->build.file));
	free(take_ptr(r->build.context));
	free(take_ptr(r->build.target));
	free(take_ptr(r->build.name));
	free(take_ptr(r->own_init));
}
