/*
 * fuzz_configuration - an agentkernel.toml of a project.
 *
 * An error names a position within the document and has no control characters. An accepted document
 * is within the maxima, every setting knows its line, and together they make a policy or an error
 * that names the file. An untrusted project gets nothing that the defaults do not give.
 */
#include "fuzz.h"

#include "base/cleanup.h"
#include "policy/ceiling.h"
#include "policy/configuration.h"

#include <string.h>

#define NAME "fuzz.toml"

static char *const environ_list[] = { "LANG=C", "SECRET_TOKEN=x", NULL };
static const struct policy_caller caller = {
	.cwd = "/work/here",
	.home = "/home/me",
	.environ_list = environ_list,
};

static unsigned count_lines(const uint8_t *data, size_t size)
{
	unsigned count = 1;

	for (size_t i = 0; i < size; i++)
		count += data[i] == '\n';
	return count;
}

static void check_words(const struct err *e)
{
	FUZZ_CHECK(e->code != ERR_NONE && strncmp(e->msg, NAME ":", strlen(NAME) + 1) == 0);
	for (const char *p = e->msg; *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void check_settings(const struct configuration *c, unsigned lines)
{
	FUZZ_CHECK(c->setting_count <= CONFIGURATION_SETTINGS_MAX);
	for (size_t i = 0; i < c->setting_count; i++) {
		const struct policy_setting *s = &c->settings[i];
		unsigned line = 0;

		FUZZ_CHECK(s->field < POLICY_FIELD_COUNT && s->layer == POLICY_BY_PROJECT_FILE);
		FUZZ_CHECK(s->text || s->field == POLICY_WORKSPACE);
		FUZZ_CHECK(sscanf(s->origin, NAME ":%u", &line) == 1);
		FUZZ_CHECK(line >= 1 && line <= lines);
		if (s->field == POLICY_MOUNT)
			FUZZ_CHECK(s->text[0] == '/');
	}
}

static void check_rest(const struct configuration *c)
{
	const char *const argv[] = { "sh", "-c", "curl x", NULL };
	struct err e = { 0 };

	FUZZ_CHECK(c->pool_count >= 1 && c->pool_count <= CONFIGURATION_AGENTS_MAX);
	for (unsigned i = 0; i < c->pool_count; i++) {
		FUZZ_CHECK(!c->pools[i].agent == (i == 0));
		FUZZ_CHECK(c->pools[i].min_warm <= CONFIGURATION_WARM_MAX);
		FUZZ_CHECK(c->pools[i].max_warm <= CONFIGURATION_WARM_MAX);
	}
	FUZZ_CHECK(c->tools.rate_calls <= TOOLPOLICY_CALLS_MAX);
	FUZZ_CHECK(!c->tools.rate_calls == !c->tools.rate_window_ms);
	if (toolpolicy_check_command(&c->tools, argv, &e) < 0)
		FUZZ_CHECK(e.code == ERR_DENIED &&
			   (c->tools.commands || c->tools.blocked_commands));
}

static void check_policy(const struct configuration *c)
{
	CLEANUP(policy_done) struct policy p = { 0 };
	CLEANUP(policy_done) struct policy ceiling = { 0 };
	struct err e = { 0 };

	FUZZ_CHECK(policy_resolve(NULL, 0, &caller, &ceiling, &e) == 0);
	if (policy_resolve(c->settings, c->setting_count, &caller, &p, &e) < 0) {
		FUZZ_CHECK(e.code != ERR_NONE && strncmp(e.msg, NAME ":", strlen(NAME) + 1) == 0);
		return;
	}
	if (ceiling_check(&p, &ceiling, "trust it", NULL, &e) < 0) {
		FUZZ_CHECK(e.code == ERR_DENIED && strncmp(e.msg, NAME ":", strlen(NAME) + 1) == 0);
		return;
	}
	/* what an attacker would want most */
	FUZZ_CHECK(!p.workspace && !p.home && p.mount_count == 0 && !p.passes_env);
	FUZZ_CHECK(!p.passed || !p.passed[0]);
	FUZZ_CHECK(p.memory_bytes && p.memory_bytes <= ceiling.memory_bytes);
	for (unsigned i = 0; i < p.egress.count; i++)
		FUZZ_CHECK(p.egress.rules[i].action == EGRESS_BLOCK ||
			   p.egress.rules[i].kind != EGRESS_NETWORK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };
	struct err e = { 0 };

	if (configuration_parse((const char *)data, size, NAME, "/work/project",
				CONFIGURATION_PROJECTS, POLICY_BY_PROJECT_FILE, &c, &e) < 0) {
		check_words(&e);
		return 0;
	}
	check_settings(&c, count_lines(data, size));
	check_rest(&c);
	check_policy(&c);
	return 0;
}
