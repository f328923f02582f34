/*
 * cmd_agent - agentkernel agent list, run: coding agents, each in a sandbox of its project.
 *
 * `run` keeps one sandbox for each agent and project: its disk has the agent's home, so the agent's
 * memory persists. Keys are passed only to the command and never stored.
 */
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/table.h"
#include "base/say.h"
#include "cli/commands.h"
#include "ops/ending.h"
#include "ops/events.h"
#include "ops/pickimage.h"
#include "cli/runoptions.h"
#include "cli/words.h"
#include "agents/agenthome.h"
#include "agents/agentprogram.h"
#include "agents/agenttemplate.h"
#include "agents/agentuse.h"
#include "named/execute.h"
#include "engine/images.h"
#include "named/inventory.h"
#include "named/lifecycle.h"
#include "named/tasks.h"
#include "policy/agent.h"
#include "policy/environment.h"
#include "policy/policyshow.h"
#include "state/ak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LEAVE_LOOKS 10
#define LEAVE_LOOK_NS 10000000l

static const char *const list_examples[] = {
	"agentkernel agent list",
	"which agents are installed, and whether their keys are set",
	NULL,
};

static const char *const run_examples[] = {
	"agentkernel agent run claude ~/project",
	"Claude Code in a sandbox: its project, its domains, its key, nothing else",
	"agentkernel agent run codex . -- exec 'fix the failing test'",
	"what follows -- is the agent's own",
	"agentkernel agent run claude ~/project -- --continue",
	"goes on: the sandbox of this agent and project was kept, with its home",
	"agentkernel agent run gemini . -- --skip-trust -p 'explain this project'",
	"gemini -p wants to be told that the project is trusted; without -p it asks, once",
	"agentkernel agent run --allow-host localhost:8080 -e "
	"ANTHROPIC_BASE_URL=http://host.agentkernel.internal:8080 claude",
	"with a model of this machine's own; codex: -c openai_base_url=URL, gemini: "
	"GOOGLE_GEMINI_BASE_URL",
	NULL,
};

/* ---- list ---- */

struct list_flags {
	bool is_json;
};

static const struct opt list_rows[] = {
	{ "Options", "json", 0, NULL, "print a machine-readable list", .kind = OPT_FLAG,
	  .offset = offsetof(struct list_flags, is_json) },
};
static const struct opts_table list_options = { list_rows, COUNT_OF(list_rows) };

/* The first of its key variables that is set, or NULL. */
static const char *find_key(const struct ak *ak, const struct agent *a)
{
	for (const char *const *key = a->keys; *key; key++) {
		const char *value = environment_get(ak->caller.environ_list, *key);

		if (value && value[0])
			return *key;
	}
	return NULL;
}

static void add_agent(struct table *t, struct json *j, const struct ak *ak, const struct agent *a)
{
	CLEANUP(agentprogram_done) struct agentprogram program = { 0 };
	const char *key = find_key(ak, a);
	cleanup_free char *missing = mem_format("no %s", a->keys[0]);
	struct err ignored;
	bool is_installed = agentprogram_find(ak, a->program, &program, &ignored) == 0;

	if (t) {
		table_add_row(t, (const char *const[]){
					 a->name, is_installed ? program.path : "not installed",
					 key ? key : missing, mode_get(a->mode)->name });
		return;
	}
	json_open_object(j, NULL);
	json_add_text(j, "name", a->name);
	json_add_bool(j, "installed", is_installed);
	json_add_text(j, "path", is_installed ? program.path : NULL);
	json_add_text(j, "package", a->package);
	json_add_text(j, "key", key);
	json_add_text(j, "mode", mode_get(a->mode)->name);
	json_close_object(j);
}

static int run_list(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(table_freep) struct table *t = NULL;
	const struct words_rule rule = { .usage = "agent list", .options = &list_options };
	struct list_flags flags = { 0 };
	cleanup_buf struct buf out;
	struct json j;
	unsigned count = 0;
	char *words[1];

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	if (words_read(&rule, argv, &flags, NULL, words, &count, e) < 0)
		return -1;
	json_init(&j, &out);
	if (flags.is_json) {
		json_open_array(&j, NULL);
	} else {
		t = table_new(4);
		table_add_row(t, (const char *const[]){ "AGENT", "PROGRAM", "KEY", "MODE" });
	}
	for (size_t i = 0; i < agent_count; i++)
		add_agent(t, &j, context->ak, &agent_all[i]);
	if (t) {
		table_format(t, &out);
	} else {
		json_close_array(&j);
		buf_add_text(&out, "\n");
	}
	*ret_status = 0;
	return cli_print(&out, e);
}

/* ---- run ---- */

struct plan {
	const struct agent *agent;
	struct agentprogram program;
	struct runoptions options;
	char *dir;           /* the project's absolute path */
	char **env;          /* keys and other variables, only for the command */
	char *path_entry;    /* an entry of env, or NULL */
	char *alias_entry;   /* an entry of env, or NULL */
	char **environ_list; /* the caller's without the keys, so that nothing stored has them */
	struct ak ak;        /* with that environment and the project's directory; borrows */
	char **argv;
	char name[NAMED_NAME_MAX_BYTES + 1];
};

static void plan_done(struct plan *p)
{
	agentprogram_done(&p->program);
	runoptions_done(&p->options);
	free(p->dir);
	free(p->env);
	free(p->path_entry);
	free(p->alias_entry);
	free(p->environ_list);
	free(p->argv);
}

static bool is_key(const struct agent *a, const char *entry)
{
	for (const char *const *key = a->keys; *key; key++) {
		size_t len = strlen(*key);

		if (strncmp(entry, *key, len) == 0 && entry[len] == '=')
			return true;
	}
	return false;
}

static void add_env(struct plan *p, char *entry)
{
	size_t count = 0;

	while (p->env && p->env[count])
		count++;
	p->env = mem_grow(p->env, count + 2, sizeof(*p->env));
	p->env[count] = entry;
	p->env[count + 1] = NULL;
}

static void add_alias(struct plan *p, const struct ak *ak)
{
	const char *alias = p->agent->key_alias;
	const char *key = environment_get(ak->caller.environ_list, p->agent->keys[0]);

	if (!alias || !key || !key[0] || environment_get(ak->caller.environ_list, alias))
		return;
	p->alias_entry = mem_format("%s=%s", alias, key);
	add_env(p, p->alias_entry);
}

static void split_environment(struct plan *p, const struct ak *ak)
{
	char *const *all = ak->caller.environ_list;
	size_t kept = 0, count = 0;

	while (all[count])
		count++;
	p->environ_list = mem_alloc((count + 1) * sizeof(*p->environ_list));
	for (size_t i = 0; i < count; i++) {
		if (is_key(p->agent, all[i]))
			add_env(p, all[i]);
		else
			p->environ_list[kept++] = all[i];
	}
	for (const char *const *entry = p->agent->env; *entry; entry++)
		add_env(p, (char *)(uintptr_t)*entry);
	add_alias(p, ak);
}

/*
 * The agent outside would obey settings that the agent inside saves there. If the directory does
 * not exist, its creation is noticed and reported (workspace/newnames); a write into an existing
 * one just fails.
 */
static void tell_settings(const struct plan *p)
{
	const struct policy *policy = &p->options.request.policy;
	cleanup_free char *path = mem_format("%s/%s", p->dir, p->agent->settings);
	struct stat st;

	if (policy->workspace && !policy->is_clone && lstat(path, &st) == 0 &&
	    !keyrows_list_has(policy->unprotect, p->agent->settings))
		say("%s is read-only inside, since %s outside would obey it: settings that it "
		    "saves for this project are not kept (--unprotect %s keeps them)",
		    p->agent->settings, p->agent->name, p->agent->settings);
}

/* One name for each agent and project: "claude-project-1a2b3c4d". */
static void choose_name(struct plan *p)
{
	char shown[24];
	size_t len = 0;

	for (const char *c = path_base_name(p->dir); *c && len < sizeof(shown) - 1; c++)
		if ((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9'))
			shown[len++] = *c;
	shown[len] = '\0';
	(void)snprintf(p->name, sizeof(p->name), "%s-%s%s%08" PRIx32, p->agent->name, shown,
		       len ? "-" : "", hash_text(0, p->dir));
}

/* The agent's mode is the lowest layer: files and options override it. */
static int add_settings(struct plan *p, struct err *e)
{
	struct settings *s = &p->options.request.settings;
	const char *mode = mode_get(p->agent->mode)->name;
	const struct policy_setting image = { POLICY_IMAGE, POLICY_HOST_IMAGE, "agent run" };
	const struct policy_setting first = { POLICY_MODE, mode, "agent run", POLICY_BY_COMMAND };
	const struct policy_setting workspace = { POLICY_WORKSPACE, p->dir, "agent run" };

	if (settings_add(s, &first, e) < 0 || settings_add(s, &workspace, e) < 0)
		return -1;
	if (!p->program.path)
		return 0;
	for (unsigned i = 0; i < p->program.mount_count; i++) {
		const char *path = p->program.mounts[i];
		const struct policy_setting mount = {
			POLICY_MOUNT,
			settings_keep(s, mem_format("%s:%s:ro", path, path)),
			"agent run",
		};

		if (settings_add(s, &mount, e) < 0)
			return -1;
	}
	return settings_add(s, &image, e);
}

static int read_plan(struct plan *p, char **argv, const struct ak *ak, struct err *e)
{
	char **rest = argv;
	const char *words[2] = { NULL, NULL };
	unsigned count = 0;

	while (*rest && strcmp(*rest, "--") != 0 && count < 2) {
		if (opts_parse(&runoptions_agent, rest, &p->options.flags,
			       &p->options.request.settings, &p->options.used, e) < 0)
			return -1;
		if (p->options.used > 0 && strcmp(rest[p->options.used - 1], "--") == 0) {
			rest += p->options.used - 1;
			break;
		}
		rest += p->options.used;
		if (*rest)
			words[count++] = *rest++;
	}
	if (*rest && strcmp(*rest, "--") == 0)
		rest++;
	else if (*rest)
		return err_set(e, ERR_INVALID, "what is the agent's own follows '--': '%s'", *rest);
	if (!words[0])
		return err_set(e, ERR_INVALID,
			       "an agent is missing: agentkernel agent run AGENT "
			       "[DIR] [-- ARGS]");
	p->agent = agent_find(words[0]);
	if (!p->agent)
		return err_set(e, ERR_NOT_FOUND,
			       "no agent '%s' (use claude, codex, gemini or opencode)", words[0]);
	split_environment(p, ak);
	p->dir = path_absolute(ak->caller.cwd ? ak->caller.cwd : "/", words[1] ? words[1] : ".");
	if (!p->dir)
		return err_set(e, ERR_INVALID, "'%s' climbs above '/'", words[1]);
	p->ak = *ak;
	p->ak.caller.environ_list = p->environ_list;
	p->ak.caller.cwd = p->dir; /* paths are relative to the project, as in its configuration */
	runoptions_fill(&p->options, &p->ak);
	for (count = 0; rest[count];)
		count++;
	p->argv = mem_alloc((count + 2) * sizeof(*p->argv));
	memcpy(p->argv + 1, rest, (count + 1) * sizeof(*p->argv));
	return 0;
}

/*
 * Where the agent is not installed: an image with it, if one was built here. Where the agent's mode
 * runs as root, its user is root, who owns the workspace inside; the template's own user would not.
 */
static bool use_template(struct plan *p, const struct ak *ak)
{
	const struct agenttemplate *t = agenttemplate_find(p->agent->name);
	CLEANUP(images_list_done) struct images_list all = { 0 };
	struct settings *settings = &p->options.request.settings;
	struct err ignored;
	bool is_built = false;

	if (!t || images_list(ak, &all, &ignored) < 0)
		return false;
	for (size_t i = 0; i < all.count; i++)
		is_built = is_built || strcmp(all.entries[i].full_name, t->image) == 0;
	if (is_built) {
		const struct policy_setting image = { POLICY_IMAGE, t->image,
						      "the agent's template" };
		const struct policy_setting user = { POLICY_USER, "root", "the agent's template" };

		is_built = settings_add(settings, &image, &ignored) == 0 &&
			   (!profile_get(mode_get(p->agent->mode)->base)->runs_as_root ||
			    settings_have(settings, POLICY_USER) ||
			    settings_add(settings, &user, &ignored) == 0);
	}
	return is_built;
}

static int find_program(struct plan *p, const struct ak *ak, struct err *e)
{
	bool is_in_image = false;

	for (size_t i = 0; i < p->options.request.settings.count; i++)
		if (p->options.request.settings.list[i].field == POLICY_IMAGE)
			is_in_image = strcmp(p->options.request.settings.list[i].text,
					     POLICY_HOST_IMAGE) != 0;
	if (is_in_image) {
		p->argv[0] = (char *)(uintptr_t)p->agent->program;
		return 0;
	}
	if (agentprogram_find(ak, p->agent->program, &p->program, e) < 0) {
		if (e->code == ERR_NOT_FOUND && use_template(p, ak)) {
			p->argv[0] = (char *)(uintptr_t)p->agent->program;
			return 0;
		}
		return err_wrap(e,
				"%s is not installed (npm install -g %s, or 'agentkernel template "
				"build %s')",
				p->agent->name, p->agent->package, p->agent->name);
	}
	p->argv[0] = p->program.path;
	if (p->program.search_path) {
		p->path_entry = mem_format("PATH=%s", p->program.search_path);
		add_env(p, p->path_entry);
	}
	return 0;
}

/* An existing sandbox keeps its policy: tell the user where the options differ. */
static void compare_policies(const struct plan *p, const struct named *n)
{
	CLEANUP(policy_done) struct policy stored = { 0 };
	struct err ignored;

	if (named_load_policy(n, &stored, &ignored) < 0)
		return;
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf was, is;

		buf_init(&was, BUF_TEXT_MAX_BYTES);
		buf_init(&is, BUF_TEXT_MAX_BYTES);
		policyshow_field(&stored, field, &was);
		policyshow_field(&p->options.request.policy, field, &is);
		if (strcmp(buf_text(&was), buf_text(&is)) == 0)
			continue;
		say("the sandbox %s was made with %s '%.100s' and keeps it ('agentkernel "
		    "remove -f %s' makes way for a new one)",
		    p->name, policy_field_name(field), buf_text(&was), p->name);
		return;
	}
}

static int create(struct plan *p, struct err *e)
{
	CLEANUP(images_done) struct images image;
	CLEANUP(named_done) struct named n;
	cleanup_free char *label = mem_format("agent=%s", p->agent->name);
	char *labels[] = { label, NULL };
	struct lifecycle_request q = {
		.ak = &p->ak,
		.name = p->name,
		.policy = &p->options.request.policy,
		.labels = labels,
		.init = request_init(&p->options.request),
	};

	images_init(&image);
	named_init(&n);
	if (pickimage_open(&p->options.request, p->agent->program, &cli_events, &image, e) < 0)
		return -1;
	q.image = image.lock_fd >= 0 ? &image : NULL;
	return lifecycle_create(&q, &n, e);
}

/* After the project's own `init`, whose files are not replaced. */
static void fill_home(const struct plan *p)
{
	CLEANUP(policy_done) struct policy stored = { 0 };
	CLEANUP(named_done) struct named n;
	struct err e;

	named_init(&n);
	if (named_open(&p->ak, p->name, &n, &e) < 0 || named_load_policy(&n, &stored, &e) < 0 ||
	    agenthome_fill(&p->ak, p->name, &stored, p->agent, p->env, &e) < 0)
		say("the settings that %s needs inside could not be written, going on without "
		    "them: %s",
		    p->agent->name, e.msg);
}

/* Makes sure that the sandbox is running, whoever started it. */
static int prepare(struct plan *p, struct err *e)
{
	CLEANUP(inventory_entry_done) struct inventory_entry entry = { 0 };
	CLEANUP(named_done) struct named n;

	named_init(&n);
	if (named_open(&p->ak, p->name, &n, e) == 0)
		compare_policies(p, &n);
	else if (e->code != ERR_NOT_FOUND || create(p, e) < 0)
		return -1;
	if (inventory_info(&p->ak, p->name, &entry, e) < 0)
		return -1;
	if (entry.state == NAMED_RUNNING || entry.state == NAMED_DOZING)
		return 0;
	if (lifecycle_start(&p->ak, p->name, e) < 0)
		return -1;
	fill_home(p);
	return 0;
}

static bool is_in_use(const struct plan *p)
{
	CLEANUP(tasks_list_done) struct tasks_list list = { 0 };
	struct err ignored;

	if (tasks_list(&p->ak, p->name, &list, &ignored) < 0)
		return false;
	for (size_t i = 0; i < list.count; i++)
		if (list.entries[i].pid > 0)
			return true;
	return false;
}

/*
 * The last agent stops the sandbox; its disk stays. The supervisor may learn of the command's end a
 * moment later than we do, so wait for it.
 */
static void leave(const struct plan *p, struct agentuse *use)
{
	const struct timespec pause = { .tv_nsec = LEAVE_LOOK_NS };
	struct err ignored;
	char **notices;

	if (!agentuse_end(use))
		return;
	for (unsigned i = 0; i < LEAVE_LOOKS && is_in_use(p); i++)
		(void)nanosleep(&pause, NULL);
	if (is_in_use(p))
		return;
	(void)!lifecycle_stop(&p->ak, p->name, LIFECYCLE_STOP_DEFAULT_MS, 0, &ignored);
	notices = lifecycle_take_notices(&p->ak, p->name);
	op_remark_all(&cli_events, notices);
	keyrows_list_free(&notices);
}

static int execute(struct plan *p, int *ret_status, struct err *e)
{
	CLEANUP(run_result_done) struct run_result result = { 0 };
	const struct execute_options o = {
		.name = p->name,
		.ak = &p->ak,
		.argv = p->argv,
		.workdir = p->dir,
		.env = p->env,
		.tty = STREAMS_TTY_AUTO,
	};

	if (execute_command(&o, &result, e) < 0)
		return -1;
	*ret_status = result.exit_code;
	op_remark_all(&cli_events, result.notices);
	ending_remark(&cli_events, &result, &p->options.request.policy, 0);
	return 0;
}

static int run_agent(struct plan *p, int *ret_status, struct err *e)
{
	CLEANUP(agentuse_done) struct agentuse use;
	int r;

	agentuse_init(&use);
	if (agentuse_begin(&use, &p->ak, p->name, e) < 0 || prepare(p, e) < 0)
		return -1;
	agentuse_began(&use);
	tell_settings(p);
	r = execute(p, ret_status, e);
	leave(p, &use);
	return r;
}

static int run_run(const struct cli_context *context, char **argv, int *ret_status, struct err *e)
{
	CLEANUP(plan_done) struct plan p = { 0 };

	if (read_plan(&p, argv, context->ak, e) < 0 || find_program(&p, context->ak, e) < 0 ||
	    add_settings(&p, e) < 0)
		return -1;
	choose_name(&p);
	if (request_resolve(&p.options.request, p.agent->program, &cli_events, e) < 0)
		return -1;
	return run_agent(&p, ret_status, e);
}

const struct cli_command cmd_agent_list = {
	.name = "agent list",
	.summary = "list the coding agents that are known, installed or not",
	.usage = "",
	.examples = list_examples,
	.options = &list_options,
	.run = run_list,
};

const struct cli_command cmd_agent_run = {
	.name = "agent run",
	.summary = "run a coding agent in a sandbox of its project",
	.usage = "[options] AGENT [DIR] [-- ARG...]",
	.text = "The agent (claude, codex, gemini, opencode) is this machine's, run in its own "
		"mode:\n"
		"the project DIR (default: this directory) at its own path, the domains that it "
		"needs,\n"
		"its key from the environment. Its home is the sandbox's and stays: one sandbox is "
		"kept\n"
		"for each agent and project ('agentkernel list --all --label agent=claude'), and "
		"stopped\n"
		"when the agent ends. With --image the agent has to be in the image.\n"
		"Where it has no settings of its own yet, codex is told that it needs no sandbox "
		"inside\n"
		"this one (it could not make it), and gemini which of its keys counts.",
	.examples = run_examples,
	.options = &runoptions_agent,
	.run = run_run,
};
