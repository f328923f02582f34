/*
 * test_mode - what an agent's mode allows, and what not.
 *
 * Names of package registries do not appear here: a name below the domain stands for them, and the
 * mode's own list has the domain itself.
 */
#include "unit.h"

#include "base/mem.h"
#include "policy/policy.h"

static char *const no_variables[] = { NULL };
static const struct policy_caller caller = {
	.cwd = "/work/here",
	.home = "/home/me",
	.environ_list = no_variables,
};

static void resolve(const char *mode, struct policy *p)
{
	const struct policy_setting setting = { POLICY_MODE, mode, "--mode" };
	struct err e = { 0 };

	assert_int_equal(policy_resolve(&setting, 1, &caller, p, &e), 0);
}

static bool is_allowed(const struct policy *p, const char *name, uint16_t port)
{
	struct egress_decision d;

	egress_decide_name(&p->egress, name, port, &d);
	return d.is_allowed;
}

static const char *const agents[] = { "claude", "codex", "gemini" };

/* DESIGN 7: "the real download domains of npm, PyPI, ..." */
static const char *const downloads[] = {
	"x.npmjs.org",                                    /* npm */
	"x.yarnpkg.com",                                  /* ... yarn's */
	"x.nodejs.org",                                   /* ... headers */
	"x.pypi.org",                                     /* PyPI */
	"x.pythonhosted.org",                             /* ... its files */
	"x.crates.io",                                    /* cargo */
	"x.rust-lang.org",                                /* ... toolchains */
	"x.golang.org",                                   /* Go */
	"x.go.dev",           "x.storage.googleapis.com", /* ... its large modules */
	"x.rubygems.org",                                 /* RubyGems */
	"x.maven.org",                                    /* Maven */
	"x.maven.apache.org", "x.gradle.org",
	"x.packagist.org",   /* Packagist */
	"x.hex.pm",          /* Hex */
	"x.debian.org",      /* Debian */
	"x.ubuntu.com",      /* Ubuntu */
	"x.alpinelinux.org", /* Alpine */
};

static const char *const code_hosts[] = { "x.github.com", "x.githubusercontent.com", "x.gitlab.com",
					  "x.bitbucket.org", "x.codeberg.org" };

static void every_agent_can_download_packages(void **state)
{
	(void)state;
	for (size_t a = 0; a < COUNT_OF(agents); a++) {
		CLEANUP(policy_done) struct policy p = { 0 };

		resolve(agents[a], &p);
		for (size_t i = 0; i < COUNT_OF(downloads); i++)
			for (uint16_t port = 80; port <= 443; port = (uint16_t)(port + 363))
				if (!is_allowed(&p, downloads[i], port))
					fail_msg("%s cannot reach %s", agents[a], downloads[i]);
	}
}

static void code_hosts_are_for_claude_and_gemini(void **state)
{
	(void)state;
	for (size_t a = 0; a < COUNT_OF(agents); a++) {
		CLEANUP(policy_done) struct policy p = { 0 };

		resolve(agents[a], &p);
		for (size_t i = 0; i < COUNT_OF(code_hosts); i++)
			assert_int_equal(is_allowed(&p, code_hosts[i], 443),
					 strcmp(agents[a], "codex") != 0);
	}
}

static void each_agent_reaches_its_own_service_and_not_the_others(void **state)
{
	static const struct {
		const char *agent, *name;
	} services[] = {
		{ "claude", "api.anthropic.com" },
		{ "claude", "console.anthropic.com" },
		{ "claude", "claude.ai" },
		{ "claude", "x.claude.com" },
		{ "codex", "api.openai.com" },
		{ "codex", "auth.openai.com" },
		{ "codex", "chatgpt.com" },
		{ "gemini", "generativelanguage.googleapis.com" },
		{ "gemini", "oauth2.googleapis.com" },
		{ "gemini", "accounts.google.com" },
		{ "gemini", "ai.google.dev" },
	};

	(void)state;
	for (size_t a = 0; a < COUNT_OF(agents); a++) {
		CLEANUP(policy_done) struct policy p = { 0 };

		resolve(agents[a], &p);
		for (size_t i = 0; i < COUNT_OF(services); i++)
			assert_int_equal(is_allowed(&p, services[i].name, 443),
					 strcmp(services[i].agent, agents[a]) == 0);
	}
}

/*
 * Every pattern of the lists covers a domain in lower case and the names below it, but no
 * lookalike.
 */
static void patterns_cover_their_domain_and_no_other(void **state)
{
	(void)state;
	for (unsigned id = 0; id < MODE_COUNT; id++) {
		const struct mode *mode = mode_get(id);
		CLEANUP(policy_done) struct policy p = { 0 };

		resolve(mode->name, &p);
		for (size_t i = 0; i < MODE_LISTS_MAX && mode->domains[i]; i++)
			for (const char *const *d = mode->domains[i]; *d; d++) {
				const char *domain = *d + 2;
				cleanup_free char *below = mem_format("a.b.%s", domain);
				cleanup_free char *after = mem_format("%s.evil.example", domain);
				cleanup_free char *before = mem_format("evil%s", domain);

				assert_memory_equal(*d, "*.", 2);
				assert_int_equal(
					strspn(domain, "abcdefghijklmnopqrstuvwxyz0123456789.-"),
					strlen(domain));
				assert_non_null(strchr(domain, '.')); /* no top-level domain */
				assert_true(is_allowed(&p, domain, 443));
				assert_true(is_allowed(&p, below, 443));
				assert_false(is_allowed(&p, after, 443));
				if (strchr(domain, '.') == strrchr(domain, '.'))
					assert_false(is_allowed(&p, before, 443));
			}
	}
}

static void the_rest_is_denied(void **state)
{
	static const char *const others[] = {
		"example.com",    "x.statsig.com", "x.sentry.io",
		"github.io",      "com",           "metadata.google.internal",
		EGRESS_HOST_NAME, "localhost"
	};

	(void)state;
	for (size_t a = 0; a < COUNT_OF(agents); a++) {
		CLEANUP(policy_done) struct policy p = { 0 };
		struct egress_decision d;
		struct address private_address, public_address;

		resolve(agents[a], &p);
		assert_true(p.has_network);
		assert_int_equal(p.egress.fallback, EGRESS_BLOCK);
		for (size_t i = 0; i < COUNT_OF(others); i++)
			assert_false(is_allowed(&p, others[i], 443));
		assert_true(address_parse("10.0.0.1", &private_address));
		assert_true(address_parse("192.0.2.1", &public_address));
		egress_decide_address(&p.egress, &private_address, 443, EGRESS_NOT_OURS, &d);
		assert_false(d.is_allowed);
		egress_decide_address(&p.egress, &public_address, 443, EGRESS_NOT_OURS, &d);
		assert_false(d.is_allowed);
		/* an allowed name that resolves to such an address */
		egress_decide_resolved(&p.egress, &private_address, 443, EGRESS_NOT_OURS, &d);
		assert_false(d.is_allowed);
	}
}

static void no_agent_has_less_memory_than_it_needs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(agents); i++) {
		CLEANUP(policy_done) struct policy p = { 0 };

		resolve(agents[i], &p);
		assert_int_equal(p.memory_bytes, 2048ull << 20);
	}
}

static void native_is_the_profile_alone(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 };

	(void)state;
	resolve("native", &p);
	assert_int_equal(p.egress.count, 0);
	assert_int_equal(p.egress.fallback, EGRESS_ALLOW);
	assert_null(p.workspace);
	assert_int_equal(p.env_count, 0);
}

static void an_unknown_mode_is_refused_by_name(void **state)
{
	static const char *const wrong[] = { "", "Claude", "claud", "restrictive", "opencode" };
	enum mode_id id;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		const struct policy_setting setting = { POLICY_MODE, wrong[i], "--mode" };
		CLEANUP(policy_done) struct policy p = { 0 };
		cleanup_free char *expected = mem_format(
			"--mode: no mode '%s' (use native, claude, codex or gemini)", wrong[i]);
		struct err e = { 0 };

		assert_null(mode_find(wrong[i], &id));
		assert_int_equal(policy_resolve(&setting, 1, &caller, &p, &e), -1);
		assert_string_equal(e.msg, expected);
	}
}

/* The lists are used directly, without the parser for typed patterns. */
static void domains_are_in_normal_form(void **state)
{
	(void)state;
	for (unsigned id = 0; id < MODE_COUNT; id++) {
		const struct mode *mode = mode_get((enum mode_id)id);

		for (size_t i = 0; i < COUNT_OF(mode->domains) && mode->domains[i]; i++)
			for (const char *const *d = mode->domains[i]; *d; d++) {
				struct egress g = { 0 };
				struct err e = { 0 };

				assert_int_equal(strncmp(*d, "*.", 2), 0);
				assert_int_equal(
					egress_add(&g, EGRESS_ALLOW, *d, EGRESS_PATTERNS, "", &e),
					0);
				assert_int_equal(g.rules[0].kind, EGRESS_WILDCARD);
				assert_string_equal(g.rules[0].text, *d);
				egress_done(&g);
			}
	}
}

static void help_names_every_mode_and_profile(void **state)
{
	static const struct {
		enum policy_field field;
		const char *option, *help;
	} options[] = {
#define RUNS(id, option, letter, value, help, how) { POLICY_##id, option, help },
#include "policy/fields.def"
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(options); i++) {
		const char *const *name = strcmp(options[i].option, "compatibility-mode") == 0
						  ? mode_names
					  : options[i].field == POLICY_PROFILE ? profile_names
					  : options[i].field == POLICY_BACKEND ? policy_backends
									       : NULL;

		for (; name && *name; name++)
			if (!strstr(options[i].help, *name))
				fail_msg("--%s: its help does not name '%s'", options[i].option,
					 *name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(domains_are_in_normal_form),
		cmocka_unit_test(every_agent_can_download_packages),
		cmocka_unit_test(code_hosts_are_for_claude_and_gemini),
		cmocka_unit_test(each_agent_reaches_its_own_service_and_not_the_others),
		cmocka_unit_test(patterns_cover_their_domain_and_no_other),
		cmocka_unit_test(the_rest_is_denied),
		cmocka_unit_test(no_agent_has_less_memory_than_it_needs),
		cmocka_unit_test(native_is_the_profile_alone),
		cmocka_unit_test(help_names_every_mode_and_profile),
		cmocka_unit_test(an_unknown_mode_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
