/*
 * test_layers - defaults, a command's own settings, the user's file, the project's, the command
 * line: their combined result. The expected values are computed here, from the two tables of DESIGN
 * 7, not by the tested code.
 */
#include "unit.h"

#include "base/mem.h"
#include "policy/environment.h"
#include "policy/policyimage.h"

#include <stdio.h>

static char *const caller_environ[] = { "HOME=/home/me",
					"ANTHROPIC_API_KEY=a-key",
					"OPENAI_API_KEY=o-key",
					"GEMINI_API_KEY=g-key",
					"PLAIN=1",
					NULL };
static const struct policy_caller caller = {
	.cwd = "/work/here",
	.home = "/home/me",
	.environ_list = caller_environ,
};

#define COMMAND(field_, text_)                                                                     \
	{                                                                                          \
		(field_), (text_), "command", POLICY_BY_COMMAND                                    \
	}
#define USER(field_, text_)                                                                        \
	{                                                                                          \
		(field_), (text_), "config.toml:1", POLICY_BY_USER_FILE                            \
	}
#define PROJECT(field_, text_)                                                                     \
	{                                                                                          \
		(field_), (text_), "agentkernel.toml:1", POLICY_BY_PROJECT_FILE                    \
	}
#define LINE(field_, text_)                                                                        \
	{                                                                                          \
		(field_), (text_), "--option", POLICY_BY_COMMAND_LINE                              \
	}

static int try_resolve(const struct policy_setting *settings, size_t count, struct policy *p,
		       struct err *e)
{
	return policy_resolve(settings, count, &caller, p, e);
}

static void resolve(const struct policy_setting *settings, size_t count, struct policy *p)
{
	struct err e = { 0 };

	if (try_resolve(settings, count, p, &e) < 0)
		fail_msg("%s", e.msg);
}

static const char *variable(const struct policy *p, const char *name)
{
	char **list = environment_build(p, &caller, NULL);
	const char *value = environment_get(list, name);
	static char copy[64];

	if (value)
		(void)snprintf(copy, sizeof(copy), "%s", value);
	environment_free(list);
	return value ? copy : NULL;
}

static bool is_allowed(const struct policy *p, const char *name)
{
	struct egress_decision d;

	egress_decide_name(&p->egress, name, 443, &d);
	return p->has_network && d.is_allowed;
}

/* ---- the tables of DESIGN 7 ---- */

#define MIB (1ull << 20)

static const char *const hosts[] = { "x.anthropic.com", "x.openai.com", "x.ai.google.dev",
				     "x.npmjs.org",     "x.github.com", "example.com" };

struct expected {
	const char *name;
	bool has_network, is_denied, has_workspace, has_home, passes_env, is_read_only, is_root;
	uint64_t memory_bytes, cpus_milli, pids_count;
	bool reaches[COUNT_OF(hosts)]; /* if the network is denied by default */
	const char *key;               /* variable that is passed */
	const char *profile, *mode;
};

static const struct expected presets[] = {
	{ "restrictive", .is_read_only = true, .memory_bytes = 512 * MIB, .cpus_milli = 1000,
	  .pids_count = 512, .profile = "restrictive", .mode = "native" },
	{ "moderate", .has_network = true, .is_root = true, .memory_bytes = 2048 * MIB,
	  .pids_count = 1024, .profile = "moderate", .mode = "native" },
	{ "permissive", .has_network = true, .has_workspace = true, .has_home = true,
	  .passes_env = true, .is_root = true, .pids_count = 4096, .profile = "permissive",
	  .mode = "native" },
	{ "native", .has_network = true, .is_root = true, .memory_bytes = 2048 * MIB,
	  .pids_count = 1024, .profile = "moderate", .mode = "native" },
	{ "claude", .has_network = true, .is_denied = true, .has_workspace = true, .is_root = true,
	  .memory_bytes = 2048 * MIB, .pids_count = 1024,
	  .reaches = { true, false, false, true, true, false }, .key = "ANTHROPIC_API_KEY",
	  .profile = "moderate", .mode = "claude" },
	{ "codex", .has_network = true, .is_denied = true, .has_workspace = true,
	  .is_read_only = true, .memory_bytes = 2048 * MIB, .cpus_milli = 1000, .pids_count = 512,
	  .reaches = { false, true, false, true, false, false }, .key = "OPENAI_API_KEY",
	  .profile = "restrictive", .mode = "codex" },
	{ "gemini", .has_network = true, .is_denied = true, .has_workspace = true, .is_root = true,
	  .memory_bytes = 2048 * MIB, .pids_count = 1024,
	  .reaches = { false, false, true, true, true, false }, .key = "GEMINI_API_KEY",
	  .profile = "moderate", .mode = "gemini" },
};

static const char *const profiles[] = { NULL, "restrictive", "moderate", "permissive" };
static const char *const modes[] = { NULL, "native", "claude", "codex", "gemini" };

/* A single option, and its effect on the expected values. */
enum effect {
	NO_EFFECT,
	NETWORK_OFF,
	NETWORK_ON,
	DENIED,
	ALLOWED,
	WORKSPACE_OFF,
	WORKSPACE_ON,
	READ_ONLY,
	NO_HOME,
	MEMORY,
	AS_NOBODY,
};
static const struct {
	enum policy_field field;
	const char *text;
	enum effect effect;
} options[] = {
	{ POLICY_TIMEOUT, "10s", NO_EFFECT },        { POLICY_NETWORK, "false", NETWORK_OFF },
	{ POLICY_NETWORK, "true", NETWORK_ON },      { POLICY_NETWORK_POLICY, "deny", DENIED },
	{ POLICY_NETWORK_POLICY, "allow", ALLOWED }, { POLICY_WORKSPACE, NULL, WORKSPACE_OFF },
	{ POLICY_WORKSPACE, "", WORKSPACE_ON },      { POLICY_READ_ONLY, "true", READ_ONLY },
	{ POLICY_HOME, "false", NO_HOME },           { POLICY_MEMORY, "1g", MEMORY },
	{ POLICY_USER, "nobody", AS_NOBODY },
};

static const struct expected *find_preset(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(presets); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	fail_msg("no preset %s", name);
	return NULL;
}

static void apply_effect(enum effect effect, struct expected *x)
{
	switch (effect) {
	case NO_EFFECT:
		break;
	case NETWORK_OFF:
		x->has_network = false;
		break;
	case NETWORK_ON:
		x->has_network = true;
		break;
	case DENIED:
		x->is_denied = true;
		break;
	case ALLOWED:
		x->is_denied = false;
		break;
	case WORKSPACE_OFF:
		x->has_workspace = false;
		break;
	case WORKSPACE_ON:
		x->has_workspace = true;
		break;
	case READ_ONLY:
		x->is_read_only = true;
		break;
	case NO_HOME:
		x->has_home = false;
		break;
	case MEMORY:
		x->memory_bytes = 1024 * MIB;
		break;
	case AS_NOBODY:
		x->is_root = false;
		break;
	}
}

static void compare(const struct policy *p, const struct expected *x)
{
	assert_string_equal(profile_get(p->profile)->name, x->profile);
	assert_string_equal(mode_get(p->mode)->name, x->mode);
	assert_int_equal(p->has_network, x->has_network);
	assert_int_equal(p->is_read_only, x->is_read_only);
	assert_int_equal(p->passes_env, x->passes_env);
	assert_int_equal(p->uid == 0, x->is_root);
	assert_int_equal(p->has_capabilities, x->is_root);
	assert_int_equal(p->memory_bytes, x->memory_bytes);
	assert_int_equal(p->cpus_milli, x->cpus_milli);
	assert_int_equal(p->pids_count, x->pids_count);
	assert_int_equal(p->workspace != NULL, x->has_workspace);
	assert_int_equal(p->home != NULL, x->has_home);
	if (x->has_workspace)
		assert_string_equal(p->workspace, "/work/here");
	if (x->has_network)
		assert_int_equal(p->egress.fallback, x->is_denied ? EGRESS_BLOCK : EGRESS_ALLOW);
	for (size_t i = 0; i < COUNT_OF(hosts); i++)
		assert_int_equal(is_allowed(p, hosts[i]),
				 x->has_network && (!x->is_denied || x->reaches[i]));
	assert_int_equal(variable(p, "PLAIN") != NULL, x->passes_env);
	for (size_t i = 0; i < COUNT_OF(presets); i++)
		if (presets[i].key)
			assert_int_equal(variable(p, presets[i].key) != NULL,
					 x->key && strcmp(x->key, presets[i].key) == 0);
}

/* The settings and their layers; NULL: none. */
struct asked {
	const char *file_preset, *mode, *profile;
	enum policy_layer file;
	size_t option;
	bool is_option_in_file;
};

static size_t add(struct policy_setting *settings, size_t count, enum policy_field field,
		  const char *text, enum policy_layer layer)
{
	static const char *const origins[] = { "one", "two", "three", "four" };

	settings[count] = (struct policy_setting){ field, text, origins[count], layer };
	return count + 1;
}

static void check_one(const struct asked *a)
{
	struct expected x = *find_preset("moderate");
	enum effect effect = options[a->option].effect;
	struct policy_setting settings[4];
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e = { 0 };
	size_t count = 0;
	bool is_reset = a->is_option_in_file && (a->mode || a->profile);
	bool has_rule_without_network;

	if (a->file_preset)
		x = *find_preset(a->file_preset);
	if (a->mode)
		x = *find_preset(a->mode);
	if (a->profile)
		x = *find_preset(a->profile);
	has_rule_without_network =
		!is_reset && !x.has_network && (effect == DENIED || effect == ALLOWED);
	if (!is_reset)
		apply_effect(effect, &x);

	/* in an order that must not matter */
	count = add(settings, count, options[a->option].field, options[a->option].text,
		    a->is_option_in_file ? a->file : POLICY_BY_COMMAND_LINE);
	if (a->profile)
		count = add(settings, count, POLICY_PROFILE, a->profile, POLICY_BY_COMMAND_LINE);
	if (a->mode)
		count = add(settings, count, POLICY_MODE, a->mode, POLICY_BY_COMMAND_LINE);
	if (a->file_preset)
		count = add(settings, count,
			    find_preset(a->file_preset) - presets < 3 ? POLICY_PROFILE
								      : POLICY_MODE,
			    a->file_preset, a->file);
	if (has_rule_without_network) {
		assert_int_equal(try_resolve(settings, count, &p, &e), -1);
		assert_non_null(strstr(e.msg, "this sandbox has no network"));
		return;
	}
	resolve(settings, count, &p);
	compare(&p, &x);
}

/* Every profile with every mode, with every preset in a file, with every option here or there. */
static void every_combination_adds_up_as_designed(void **state)
{
	static const enum policy_layer files[] = { POLICY_BY_COMMAND, POLICY_BY_USER_FILE,
						   POLICY_BY_PROJECT_FILE };
	unsigned count = 0;

	(void)state;
	for (size_t f = 0; f < COUNT_OF(files); f++)
		for (size_t preset = 0; preset <= COUNT_OF(presets); preset++)
			for (size_t m = 0; m < COUNT_OF(modes); m++)
				for (size_t i = 0; i < COUNT_OF(profiles); i++)
					for (size_t o = 0; o < 2 * COUNT_OF(options); o++) {
						const struct asked a = {
							.file_preset =
								preset ? presets[preset - 1].name
								       : NULL,
							.mode = modes[m],
							.profile = profiles[i],
							.file = files[f],
							.option = o / 2,
							.is_option_in_file = o % 2,
						};

						check_one(&a);
						count++;
					}
	assert_int_equal(count, 3 * 8 * 5 * 4 * 22);
}

/* ---- one layer over the other ---- */

static void a_later_layer_wins_wherever_its_settings_stand(void **state)
{
	static const struct policy_setting all[] = {
		LINE(POLICY_MEMORY, "64m"),
		PROJECT(POLICY_MEMORY, "128m"),
		USER(POLICY_MEMORY, "256m"),
		COMMAND(POLICY_MEMORY, "512m"),
	};
	static const char *const origins[] = { "--option", "agentkernel.toml:1", "config.toml:1",
					       "command" };

	(void)state;
	for (size_t from = 0; from < COUNT_OF(all); from++) {
		CLEANUP(policy_done) struct policy p = { 0 };

		resolve(all + from, COUNT_OF(all) - from, &p);
		assert_int_equal(p.memory_bytes, (64ull << from) << 20);
		assert_string_equal(p.origin[POLICY_MEMORY].text, origins[from]);
	}
}

static void within_a_layer_the_mode_comes_first_then_the_profile(void **state)
{
	static const struct policy_setting settings[] = {
		PROJECT(POLICY_MEMORY, "64m"),
		PROJECT(POLICY_PROFILE, "restrictive"),
		PROJECT(POLICY_MODE, "claude"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve(settings, COUNT_OF(settings), &p);
	assert_int_equal(p.mode, MODE_NATIVE); /* the profile has reset it */
	assert_int_equal(p.profile, PROFILE_RESTRICTIVE);
	assert_int_equal(p.memory_bytes, 64 * MIB);
	assert_int_equal(p.egress.count, 0);
	assert_null(p.passed);
}

static void a_preset_leaves_nothing_of_the_one_before(void **state)
{
	static const struct policy_setting settings[] = {
		USER(POLICY_MODE, "claude"),
		LINE(POLICY_MODE, "codex"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve(settings, COUNT_OF(settings), &p);
	assert_false(is_allowed(&p, "x.anthropic.com"));
	assert_true(is_allowed(&p, "x.openai.com"));
	assert_null(variable(&p, "ANTHROPIC_API_KEY"));
	assert_string_equal(variable(&p, "OPENAI_API_KEY"), "o-key");
	assert_string_equal(p.origin[POLICY_ALLOW_HOST].text, "--option");
	assert_string_equal(p.origin[POLICY_ENV].text, "--option");
}

static void a_preset_takes_back_the_user_that_an_earlier_layer_named(void **state)
{
	static const struct policy_setting settings[] = {
		USER(POLICY_USER, "root"),
		LINE(POLICY_PROFILE, "restrictive"),
	};
	static const struct policyimage image = {
		.user = "", .workdir = "", .passwd = "", .group = ""
	};
	struct policy_setting in_image[3] = { settings[0], settings[1], LINE(POLICY_IMAGE, "x") };
	CLEANUP(policy_done) struct policy p = { 0 }, q = { 0 };
	struct err e = { 0 };

	(void)state;
	resolve(settings, COUNT_OF(settings), &p);
	assert_int_equal(p.uid, POLICY_USER_ID);
	assert_string_equal(p.origin[POLICY_USER].text, "--option");
	resolve(in_image, COUNT_OF(in_image), &q);
	assert_int_equal(policyimage_apply(&q, &image, &e), 0);
	assert_int_equal(q.uid, POLICY_USER_ID);
}

static void what_no_preset_defines_stays(void **state)
{
	static const struct policy_setting settings[] = {
		USER(POLICY_WORKDIR, "/else"),    USER(POLICY_NOFILE, "100"),
		USER(POLICY_ENV, "A=1"),          USER(POLICY_MOUNT, "/a:/b"),
		USER(POLICY_BLOCK_HOST, "b.org"), USER(POLICY_PROTECT, "x"),
		USER(POLICY_IMAGE, "debian:12"),  LINE(POLICY_MODE, "claude"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve(settings, COUNT_OF(settings), &p);
	assert_string_equal(p.workdir, "/else");
	assert_string_equal(p.origin[POLICY_WORKDIR].text, "config.toml:1");
	assert_int_equal(p.nofile_count, 100);
	assert_string_equal(variable(&p, "A"), "1");
	assert_int_equal(p.mount_count, 1);
	assert_string_equal(p.egress.rules[0].text, "b.org");
	assert_string_equal(p.protect[0], "x");
	assert_string_equal(p.image, "debian:12");
	assert_string_equal(p.origin[POLICY_MODE].text, "--option");
}

/* A mode does not replace a variable set by the caller. */
static void a_variable_that_somebody_set_stays_as_it_is(void **state)
{
	static const struct policy_setting settings[] = {
		USER(POLICY_ENV, "ANTHROPIC_API_KEY=other"),
		LINE(POLICY_MODE, "claude"),
	};
	static const struct policy_setting keyless[] = { LINE(POLICY_MODE, "claude") };
	static char *const empty[] = { NULL };
	const struct policy_caller poor = { .cwd = "/work/here", .environ_list = empty };
	CLEANUP(policy_done) struct policy p = { 0 }, q = { 0 };
	struct err e = { 0 };

	(void)state;
	resolve(settings, COUNT_OF(settings), &p);
	assert_string_equal(variable(&p, "ANTHROPIC_API_KEY"), "other");
	assert_null(p.passed);
	assert_int_equal(policy_resolve(keyless, 1, &poor, &q, &e),
			 0); /* without a key nothing is passed */
	assert_int_equal(q.env_count, 0);
}

/* ---- contradicting combinations ---- */

static void a_network_that_a_later_layer_takes_away_needs_no_rules(void **state)
{
	static const struct policy_setting rules[] = {
		PROJECT(POLICY_ALLOW_HOST, "a.org"),      PROJECT(POLICY_BLOCK_HOST, "b.org"),
		PROJECT(POLICY_ALLOW_CIDR, "10.0.0.0/8"), PROJECT(POLICY_BLOCK_CIDR, "10.1.0.0/16"),
		PROJECT(POLICY_BANDWIDTH, "1MB/s"),       PROJECT(POLICY_NETWORK_POLICY, "deny"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		const struct policy_setting off[] = { rules[i], LINE(POLICY_NETWORK, "false") };
		const struct policy_setting profile[] = { rules[i],
							  LINE(POLICY_PROFILE, "restrictive") };
		const struct policy_setting below[] = { rules[i],
							USER(POLICY_PROFILE, "restrictive") };
		const struct policy_setting same[] = { rules[i], PROJECT(POLICY_NETWORK, "false") };
		CLEANUP(policy_done) struct policy p = { 0 }, q = { 0 }, none = { 0 };
		struct err e = { 0 };

		resolve(off, 2, &p);
		assert_false(p.has_network);
		resolve(profile, 2, &q);
		assert_false(q.has_network);
		assert_int_equal(try_resolve(below, 2, &none, &e), -1);
		assert_string_equal(e.msg, "agentkernel.toml:1: this sandbox has no network "
					   "(config.toml:1); add --network");
		assert_int_equal(try_resolve(same, 2, &none, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
	}
}

static void a_mode_without_a_network_is_fine(void **state)
{
	static const struct policy_setting settings[] = {
		USER(POLICY_MODE, "claude"),
		LINE(POLICY_NETWORK, "false"),
	};
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve(settings, 2, &p);
	assert_false(p.has_network);
	assert_int_equal(p.egress.count, 0);
	assert_string_equal(variable(&p, "ANTHROPIC_API_KEY"), "a-key");
}

static void a_clone_needs_a_workspace_unless_a_later_layer_took_it(void **state)
{
	static const struct policy_setting alone[] = { LINE(POLICY_CLONE, "true") };
	static const struct policy_setting with[] = { LINE(POLICY_CLONE, "true"),
						      LINE(POLICY_WORKSPACE, "") };
	static const struct policy_setting taken[] = { USER(POLICY_CLONE, "true"),
						       USER(POLICY_WORKSPACE, ""),
						       LINE(POLICY_WORKSPACE, NULL) };
	static const struct policy_setting profile[] = { USER(POLICY_CLONE, "true"),
							 USER(POLICY_MODE, "claude"),
							 LINE(POLICY_PROFILE, "moderate") };
	static const struct policy_setting off[] = { USER(POLICY_CLONE, "true"),
						     LINE(POLICY_CLONE, "false") };
	CLEANUP(policy_done) struct policy a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 }, f = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(try_resolve(alone, 1, &a, &e), -1);
	assert_string_equal(e.msg, "--option: there is no workspace to clone (add --workspace)");
	resolve(with, 2, &b);
	assert_true(b.is_clone);
	resolve(taken, 3, &c);
	assert_false(c.is_clone);
	resolve(profile, 3, &d);
	assert_false(d.is_clone);
	resolve(off, 2, &f);
	assert_false(f.is_clone);
}

static void names_in_the_workspace_are_relative_and_normal(void **state)
{
	static const struct policy_setting good[] = {
		LINE(POLICY_PROTECT, "deploy/"),   LINE(POLICY_PROTECT, "./a//b/../c"),
		LINE(POLICY_UNPROTECT, ".vscode"), LINE(POLICY_MASK, "**/.env*"),
		LINE(POLICY_UNMASK, ".npmrc"),
	};
	static const char *const bad[] = { "",     "/",         ".",    "./",  "a/..",
					   "../x", "a/../../x", "/etc", "~/x", "~" };
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve(good, COUNT_OF(good), &p);
	assert_string_equal(p.protect[0], "deploy");
	assert_string_equal(p.protect[1], "a/c");
	assert_null(p.protect[2]);
	assert_string_equal(p.unprotect[0], ".vscode");
	assert_string_equal(p.mask[0], "**/.env*");
	assert_string_equal(p.unmask[0], ".npmrc");
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		for (size_t k = 0; k < COUNT_OF(good); k++) {
			const struct policy_setting s = LINE(good[k].field, bad[i]);
			CLEANUP(policy_done) struct policy q = { 0 };
			struct err e = { 0 };

			if (try_resolve(&s, 1, &q, &e) != -1)
				fail_msg("'%s' was taken", bad[i]);
			assert_int_equal(e.code, ERR_INVALID);
		}
}

static void lists_of_names_have_a_maximum(void **state)
{
	struct policy_setting settings[POLICY_NAMES_MAX + 1];
	CLEANUP(policy_done) struct policy p = { 0 }, q = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(settings); i++)
		settings[i] = (struct policy_setting)LINE(POLICY_MASK, "x");
	resolve(settings, POLICY_NAMES_MAX, &p);
	assert_int_equal(try_resolve(settings, COUNT_OF(settings), &q, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_combination_adds_up_as_designed),
		cmocka_unit_test(a_later_layer_wins_wherever_its_settings_stand),
		cmocka_unit_test(within_a_layer_the_mode_comes_first_then_the_profile),
		cmocka_unit_test(a_preset_leaves_nothing_of_the_one_before),
		cmocka_unit_test(a_preset_takes_back_the_user_that_an_earlier_layer_named),
		cmocka_unit_test(what_no_preset_defines_stays),
		cmocka_unit_test(a_variable_that_somebody_set_stays_as_it_is),
		cmocka_unit_test(a_network_that_a_later_layer_takes_away_needs_no_rules),
		cmocka_unit_test(a_mode_without_a_network_is_fine),
		cmocka_unit_test(a_clone_needs_a_workspace_unless_a_later_layer_took_it),
		cmocka_unit_test(names_in_the_workspace_are_relative_and_normal),
		cmocka_unit_test(lists_of_names_have_a_maximum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
