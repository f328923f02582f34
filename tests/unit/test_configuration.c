/* test_configuration - an agentkernel.toml becomes settings, or an error with its position. */
#include "unit.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/toml.h"
#include "policy/configuration.h"

#include <stdio.h>
#include <stdlib.h>

static char *const caller_environ[] = { "LANG=C", "MINE=1", NULL };
static const struct policy_caller caller = {
	.cwd = "/work/here",
	.home = "/home/me",
	.environ_list = caller_environ,
};

static int parse_as(const char *text, enum configuration_owner owner, struct configuration *ret,
		    struct err *e)
{
	return configuration_parse(text, strlen(text), "a.toml", "/work/project", owner,
				   owner == CONFIGURATION_USERS ? POLICY_BY_USER_FILE
								: POLICY_BY_PROJECT_FILE,
				   ret, e);
}

static int parse(const char *text, struct configuration *ret, struct err *e)
{
	return parse_as(text, CONFIGURATION_PROJECTS, ret, e);
}

static void parsed(const char *text, struct configuration *ret)
{
	struct err e = { 0 };

	if (parse(text, ret, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
}

static void refused(const char *text, const char *message)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };
	struct err e = { 0 };

	if (parse(text, &c, &e) != -1)
		fail_msg("taken: %s", text);
	if (strcmp(e.msg, message) != 0)
		fail_msg("%s: '%s', not '%s'", text, e.msg, message);
	assert_int_equal(c.setting_count, 0); /* nothing was returned */
	assert_null(c.name);
}

/* ---- the table of keys ---- */

/* A line in a table, and the one setting it gives; text NULL: a setting without one. */
static const struct {
	const char *table, *line;
	enum policy_field field;
	const char *text;
} rows[] = {
	{ "sandbox", "image = 'python:3.12-alpine'", POLICY_IMAGE, "python:3.12-alpine" },
	{ "sandbox", "base_image = 'x'", POLICY_IMAGE, "x" },
	{ "sandbox", "workdir = '/workspace'", POLICY_WORKDIR, "/workspace" },
	{ "sandbox", "user = 'nobody'", POLICY_USER, "nobody" },
	{ "sandbox", "backend = 'native'", POLICY_BACKEND, "native" },
	{ "agent", "compatibility_mode = 'claude'", POLICY_MODE, "claude" },
	{ "agent", "mode = 'codex'", POLICY_MODE, "codex" },
	{ "security", "profile = 'restrictive'", POLICY_PROFILE, "restrictive" },
	{ "security", "network = true", POLICY_NETWORK, "true" },
	{ "security", "network = false", POLICY_NETWORK, "false" },
	{ "security", "read_only = true", POLICY_READ_ONLY, "true" },
	{ "security", "read_only = false", POLICY_READ_ONLY, "false" },
	{ "security", "mount_cwd = true", POLICY_WORKSPACE, "" },
	{ "security", "mount_cwd = false", POLICY_WORKSPACE, NULL },
	{ "security", "clone = true", POLICY_CLONE, "true" },
	{ "security", "mount_home = true", POLICY_HOME, "true" },
	{ "security", "mount_home = false", POLICY_HOME, "false" },
	{ "security", "pass_env = ['LANG']", POLICY_ENV, "LANG" },
	{ "security", "protect = ['deploy/']", POLICY_PROTECT, "deploy/" },
	{ "security", "unprotect = ['.vscode']", POLICY_UNPROTECT, ".vscode" },
	{ "security", "mask = ['.env*']", POLICY_MASK, ".env*" },
	{ "security", "unmask = ['.npmrc']", POLICY_UNMASK, ".npmrc" },
	{ "network", "policy = 'deny'", POLICY_NETWORK_POLICY, "deny" },
	{ "network", "allow = ['*.example.org:443']", POLICY_ALLOW_HOST, "*.example.org:443" },
	{ "network", "allow = ['10.1.2.0/24']", POLICY_ALLOW_HOST, "10.1.2.0/24" },
	{ "network", "block = ['ads.example.com']", POLICY_BLOCK_HOST, "ads.example.com" },
	{ "network", "bandwidth = '10MB/s'", POLICY_BANDWIDTH, "10MB/s" },
	{ "resources", "memory = '2GiB'", POLICY_MEMORY, "2GiB" },
	{ "resources", "memory = 67108864", POLICY_MEMORY, "67108864" },
	{ "resources", "memory_mb = 512", POLICY_MEMORY, "512MiB" },
	{ "resources", "cpus = 2", POLICY_CPUS, "2" },
	{ "resources", "cpus = 0.5", POLICY_CPUS, "0.500" },
	{ "resources", "cpus = '1.5'", POLICY_CPUS, "1.5" },
	{ "resources", "vcpus = 0x2", POLICY_CPUS, "2" },
	{ "resources", "vcpus = 1e0", POLICY_CPUS, "1.000" },
	{ "resources", "pids = 512", POLICY_PIDS, "512" },
	{ "resources", "pids = '512'", POLICY_PIDS, "512" },
	{ "resources", "disk = '4GiB'", POLICY_DISK, "4GiB" },
	{ "resources", "nofile = 1_024", POLICY_NOFILE, "1024" },
	{ "resources", "file_size = '1G'", POLICY_FILE_SIZE, "1G" },
	{ "resources", "io_read = '10MB/s'", POLICY_IO_READ, "10MB/s" },
	{ "resources", "io_write = '1MB/s'", POLICY_IO_WRITE, "1MB/s" },
	{ "resources", "timeout = '10m'", POLICY_TIMEOUT, "10m" },
	{ "resources", "timeout = 30", POLICY_TIMEOUT, "30s" },
	{ "resources", "cpu_time = '30s'", POLICY_CPU_TIME, "30s" },
	{ "resources", "cpu_time = 5", POLICY_CPU_TIME, "5s" },
	{ "env", "NODE_ENV = 'test'", POLICY_ENV, "NODE_ENV=test" },
	{ "env", "EMPTY = ''", POLICY_ENV, "EMPTY=" },
	{ "env", "'odd.name' = 'a=b'", POLICY_ENV, "odd.name=a=b" },
};

static void every_key_is_the_setting_that_it_should_be(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		cleanup_free char *text =
			mem_format("# first line\n[%s]\n%s\n", rows[i].table, rows[i].line);
		CLEANUP(configuration_done) struct configuration c = { 0 };
		const struct policy_setting *s;

		parsed(text, &c);
		if (c.setting_count != 1)
			fail_msg("%s: %zu settings", rows[i].line, c.setting_count);
		s = &c.settings[0];
		assert_int_equal(s->field, rows[i].field);
		assert_int_equal(s->layer, POLICY_BY_PROJECT_FILE);
		assert_string_equal(s->origin, "a.toml:3");
		if (rows[i].text)
			assert_string_equal(s->text, rows[i].text);
		else
			assert_null(s->text);
	}
}

/* A policy accepts each of them. */
static void every_setting_makes_a_policy(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		cleanup_free char *text =
			mem_format("%s[%s]\n%s\n",
				   rows[i].field == POLICY_CLONE ? "agent.mode = 'claude'\n" : "",
				   rows[i].table, rows[i].line);
		CLEANUP(configuration_done) struct configuration c = { 0 };
		CLEANUP(policy_done) struct policy p = { 0 };
		struct err e = { 0 };

		parsed(text, &c);
		if (policy_resolve(c.settings, c.setting_count, &caller, &p, &e) < 0)
			fail_msg("%s: %s", rows[i].line, e.msg);
	}
}

static void all_forms_of_tables_mean_the_same(void **state)
{
	static const char *const texts[] = {
		"[resources]\nmemory = '1G'\n[network]\nallow = ['a.org', 'b.org']\n",
		"resources.memory = '1G'\nnetwork.allow = ['a.org', 'b.org']\n",
		"resources = { memory = '1G' }\nnetwork = { allow = ['a.org', 'b.org'] }\n",
		"\"resources\".'memory' = \"\"\"1G\"\"\"\n[network]\nallow = "
		"[\n'a.org',\n'b.org',\n]\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		CLEANUP(configuration_done) struct configuration c = { 0 };

		parsed(texts[i], &c);
		assert_int_equal(c.setting_count, 3);
		assert_string_equal(c.settings[0].text, "1G");
		assert_string_equal(c.settings[1].text, "a.org");
		assert_string_equal(c.settings[2].text, "b.org");
	}
}

/* An error in a list's item names the item's line. */
static void settings_know_their_own_line(void **state)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e = { 0 };

	(void)state;
	parsed("[network]\nallow = [\n  'a.org',\n  'not a host',\n]\n", &c);
	assert_string_equal(c.settings[0].origin, "a.toml:3");
	assert_string_equal(c.settings[1].origin, "a.toml:4");
	assert_int_equal(policy_resolve(c.settings, c.setting_count, &caller, &p, &e), -1);
	assert_true(strncmp(e.msg, "a.toml:4: 'not a host'", 22) == 0);
}

static void what_is_no_setting_is_kept_beside(void **state)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };

	(void)state;
	parsed("[sandbox]\nname = 'my-project'\ninit = '''\npip install -r x\n'''\n"
	       "[agent]\npreferred = 'opencode'\n"
	       "[tools]\nallow = ['sandbox_run', 'sandbox_exec']\nblock = ['x']\n"
	       "commands = { allow = ['python3', 'npm'], block = ['curl'] }\n"
	       "rate_limit = { calls = 10, window = '60s' }\n"
	       "[daemon]\nmin_warm = 3\nmax_warm = 5\n"
	       "[daemon.agents.claude]\nmin_warm = 2\nimage = 'node:22-alpine'\n"
	       "[daemon.agents.opencode]\nmax_warm = 256\n",
	       &c);
	assert_int_equal(c.setting_count, 0);
	assert_string_equal(c.name, "my-project");
	assert_string_equal(c.init, "pip install -r x\n");
	assert_string_equal(c.agent, "opencode");
	assert_string_equal(c.tools.tools[0], "sandbox_run");
	assert_string_equal(c.tools.tools[1], "sandbox_exec");
	assert_null(c.tools.tools[2]);
	assert_string_equal(c.tools.blocked_tools[0], "x");
	assert_string_equal(c.tools.commands[1], "npm");
	assert_string_equal(c.tools.blocked_commands[0], "curl");
	assert_int_equal(c.tools.rate_calls, 10);
	assert_int_equal(c.tools.rate_window_ms, 60000);
	assert_int_equal(c.pool_count, 3);
	assert_null(c.pools[0].agent);
	assert_int_equal(c.pools[0].min_warm, 3);
	assert_int_equal(c.pools[0].max_warm, 5);
	assert_string_equal(c.pools[1].agent, "claude");
	assert_string_equal(c.pools[1].image, "node:22-alpine");
	assert_int_equal(c.pools[1].min_warm, 2);
	assert_string_equal(c.pools[2].agent, "opencode");
	assert_int_equal(c.pools[2].max_warm, 256);
}

static void nothing_said_is_nothing_set(void **state)
{
	static const char *const texts[] = { "", "# only a comment\n",
					     "[sandbox]\n[env]\n[network]\n",
					     "mounts = []\n[security]\npass_env = []\n" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		CLEANUP(configuration_done) struct configuration c = { 0 };

		parsed(texts[i], &c);
		assert_int_equal(c.setting_count, 0);
		assert_null(c.tools.tools);
		assert_null(c.tools.commands);
		assert_int_equal(c.pool_count, 1);
	}
}

/* An empty list of tools allows nothing. */
static void an_empty_list_of_tools_is_not_none(void **state)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };

	(void)state;
	parsed("[tools]\nallow = []\ncommands = { allow = [] }\n", &c);
	assert_non_null(c.tools.tools);
	assert_null(c.tools.tools[0]);
	assert_non_null(c.tools.commands);
	assert_null(c.tools.blocked_commands);
}

/* ---- mounts ---- */

static void mounts_begin_at_the_files_directory(void **state)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct err e = { 0 };

	(void)state;
	parsed("[[mounts]]\nsource = './data'\ntarget = '/data'\nread_only = true\n"
	       "[[mounts]]\ntarget = '/up'\nsource = '../up'\n"
	       "[[mounts]]\nsource = '/abs/./x'\ntarget = '/x'\nread_only = false\n",
	       &c);
	assert_int_equal(c.setting_count, 3);
	assert_string_equal(c.settings[0].text, "/work/project/data:/data:ro");
	assert_string_equal(c.settings[0].origin, "a.toml:1");
	assert_string_equal(c.settings[1].text, "/work/up:/up");
	assert_string_equal(c.settings[2].text, "/abs/x:/x");
	assert_int_equal(policy_resolve(c.settings, c.setting_count, &caller, &p, &e), 0);
	assert_string_equal(p.mounts[0].source, "/work/project/data");
	assert_true(p.mounts[0].is_read_only);
	assert_false(p.mounts[1].is_read_only);
}

static void a_mount_that_is_none_is_refused(void **state)
{
	(void)state;
	refused("[[mounts]]\nsource = 'x'\n", "a.toml:1:3: a mount has a source and a target");
	refused("[[mounts]]\ntarget = '/x'\n", "a.toml:1:3: a mount has a source and a target");
	refused("[mounts]\nsource = 'x'\n", "a.toml:1:2: an array is expected, not a table");
	refused("mounts = ['x']\n", "a.toml:1:11: a table is expected, not a string");
	refused("[[mounts]]\nsource = '../../../x'\ntarget = '/x'\n",
		"a.toml:1:3: '../../../x' climbs above '/'");
	refused("[[mounts]]\nsource = 'a:b'\ntarget = '/x'\n",
		"a.toml:1:3: a mount's path cannot have a ':'");
	refused("[[mounts]]\nsource = 'a'\ntarget = '/x:ro'\n",
		"a.toml:1:3: a mount's path cannot have a ':'");
	refused("[[mounts]]\nsource = 'a'\ntarget = '/x'\nreadonly = true\n",
		"a.toml:4:1: unknown key 'readonly' in [mounts], did you mean 'read_only'?");
	refused("[[mounts]]\nsource = 'a'\ntarget = '/x'\nread_only = 'yes'\n",
		"a.toml:4:13: true or false is expected, not a string");
}

/* ---- errors and their positions ---- */

static void unknown_names_are_told_the_nearest(void **state)
{
	(void)state;
	refused("[sandbox]\nimagee = 'x'\n",
		"a.toml:2:1: unknown key 'imagee' in [sandbox], did you mean 'image'?");
	refused("[security]\n\n  proflie = 'x'\n",
		"a.toml:3:3: unknown key 'proflie' in [security], did you mean 'profile'?");
	refused("[sandbox]\nzzzzzz = 1\n", "a.toml:2:1: unknown key 'zzzzzz' in [sandbox]");
	refused("[netwrok]\n", "a.toml:1:2: unknown table 'netwrok', did you mean [network]?");
	refused("[mount]\n", "a.toml:1:2: unknown table 'mount', did you mean [mounts]?");
	refused("[registrys]\n",
		"a.toml:1:2: unknown table 'registrys', did you mean [registries]?");
	refused("[zzzzzz]\n", "a.toml:1:2: unknown table 'zzzzzz'");
	refused("memory = 1\n", "a.toml:1:1: unknown table 'memory'");
	refused("[tools]\ncommand = { block = [] }\n",
		"a.toml:2:1: unknown key 'command' in [tools], did you mean 'commands'?");
	refused("[tools.ratelimit]\ncalls = 1\n",
		"a.toml:1:8: unknown key 'ratelimit' in [tools], did you mean 'rate_limit'?");
	refused("[tools.commands]\nblocked = []\n",
		"a.toml:2:1: unknown key 'blocked' in [tools.commands], did you mean 'block'?");
	refused("[daemon.agent.claude]\n",
		"a.toml:1:9: unknown key 'agent' in [daemon], did you mean 'agents'?");
	refused("[daemon.agents.claude]\nmin_warn = 1\n",
		"a.toml:2:1: unknown key 'min_warn' in [daemon.agents], did you mean 'min_warm'?");
	refused("[env.deep]\nx = 'y'\n", "a.toml:1:6: a string is expected, not a table");
}

/* Names that only look like ours. */
static void a_key_is_known_as_a_whole(void **state)
{
	(void)state;
	refused("[\"tools.commands\"]\nblock = ['curl']\n",
		"a.toml:1:2: unknown table 'tools.commands'");
	refused("[tools]\n\"commands.block\" = ['curl']\n",
		"a.toml:2:1: unknown key 'commands.block' in [tools]");
	refused("[sandbox]\n\"image\\u0000x\" = 'y'\n",
		"a.toml:2:1: unknown key 'image' in [sandbox], did you mean 'image'?");
	refused("[\"env\\u0000\"]\nx = 'y'\n",
		"a.toml:1:2: unknown table 'env', did you mean [env]?");
	refused("[tools.\"commands\\u0000\"]\nblock = ['curl']\n",
		"a.toml:1:8: unknown key 'commands' in [tools], did you mean 'commands'?");
	refused("[[mounts]]\n\"source\\u0000\" = 'a'\ntarget = '/x'\n",
		"a.toml:2:1: unknown key 'source' in [mounts], did you mean 'source'?");
	refused("[daemon.agents.\"claude\\u0000\"]\n",
		"a.toml:1:16: no agent 'claude' (use claude, codex, gemini, opencode or native)");
	refused("[Sandbox]\n", "a.toml:1:2: unknown table 'Sandbox', did you mean [sandbox]?");
}

static void wrong_types_are_refused_with_their_place(void **state)
{
	(void)state;
	refused("sandbox = 1\n", "a.toml:1:11: a table is expected, not an integer");
	refused("[[sandbox]]\n", "a.toml:1:3: a table is expected, not an array");
	refused("[sandbox]\nimage = 1\n", "a.toml:2:9: a string is expected, not an integer");
	refused("[sandbox]\nimage = ['x']\n", "a.toml:2:9: a string is expected, not an array");
	refused("[sandbox]\nname = true\n", "a.toml:2:8: a string is expected, not true or false");
	refused("[security]\nnetwork = 'true'\n",
		"a.toml:2:11: true or false is expected, not a string");
	refused("[security]\nnetwork = 1\n",
		"a.toml:2:11: true or false is expected, not an integer");
	refused("[security]\nmask = '.env'\n", "a.toml:2:8: an array is expected, not a string");
	refused("[security]\nmask = ['a', 1]\n",
		"a.toml:2:14: a string is expected, not an integer");
	refused("[resources]\nmemory_mb = '1'\n",
		"a.toml:2:13: an integer is expected, not a string");
	refused("[resources]\nmemory_mb = 1.5\n",
		"a.toml:2:13: an integer is expected, not a float");
	refused("[resources]\nmemory = 1.5\n", "a.toml:2:10: a string is expected, not a float");
	refused("[resources]\nmemory = true\n",
		"a.toml:2:10: a string is expected, not true or false");
	refused("[resources]\ntimeout = 10:00:00\n",
		"a.toml:2:11: a string is expected, not a time");
	refused("[network]\nbandwidth = 1000\n",
		"a.toml:2:13: a string is expected, not an integer");
	refused("[tools]\nallow = 'x'\n", "a.toml:2:9: an array is expected, not a string");
	refused("[tools.rate_limit]\ncalls = '1'\nwindow = '60s'\n",
		"a.toml:2:9: an integer is expected, not a string");
	refused("[tools.rate_limit]\ncalls = 1\nwindow = 60\n",
		"a.toml:3:10: a string is expected, not an integer");
	refused("[env]\nx = 1\n", "a.toml:2:5: a string is expected, not an integer");
	refused("env = 'x'\n", "a.toml:1:7: a table is expected, not a string");
	refused("[daemon]\nagents = 1\n", "a.toml:2:10: a table is expected, not an integer");
	refused("[daemon.agents]\nclaude = 1\n",
		"a.toml:2:10: a table is expected, not an integer");
	refused("[sandbox]\nimage = \"a\\u0000b\"\n", "a.toml:2:9: the string holds a NUL");
}

static void values_that_mean_nothing_are_refused(void **state)
{
	(void)state;
	refused("[security]\npass_env = ['A=1']\n",
		"a.toml:2:13: 'A=1' is not the name of a variable ([env] sets them)");
	refused("[env]\n'A B' = 'x'\n", "a.toml:2:1: this is not the name of a variable");
	refused("[env]\n'A=B' = 'x'\n", "a.toml:2:1: this is not the name of a variable");
	refused("[env]\n'' = 'x'\n", "a.toml:2:1: this is not the name of a variable");
	refused("[env]\n\"A\\u0000\" = 'x'\n", "a.toml:2:1: this is not the name of a variable");
	refused("[agent]\npreferred = 'cluade'\n",
		"a.toml:2:13: no agent 'cluade' (use claude, codex, gemini or opencode)");
	refused("[daemon.agents.cluade]\n",
		"a.toml:1:16: no agent 'cluade' (use claude, codex, gemini, opencode or native)");
	refused("[tools]\nrate_limit = { calls = 10 }\n",
		"a.toml: a rate_limit has calls and a window");
	refused("[tools]\nrate_limit = { window = '60s' }\n",
		"a.toml: a rate_limit has calls and a window");
	refused("[tools]\nrate_limit = { calls = 0, window = '60s' }\n",
		"a.toml: a rate_limit has calls and a window");
	refused("[tools.rate_limit]\ncalls = -1\nwindow = '60s'\n",
		"a.toml:2:9: -1 is not between 0 and 10000");
	refused("[tools.rate_limit]\ncalls = 10001\nwindow = '60s'\n",
		"a.toml:2:9: 10001 is not between 0 and 10000");
	refused("[tools.rate_limit]\ncalls = 1\nwindow = '999ms'\n",
		"a.toml:3:10: duration '999ms' is outside 1s to 1d");
	refused("[tools.rate_limit]\ncalls = 1\nwindow = '25h'\n",
		"a.toml:3:10: duration '25h' is outside 1s to 1d");
	refused("[daemon]\nmin_warm = 257\n", "a.toml:2:12: 257 is not between 0 and 256");
	refused("[daemon]\nmin_warm = 3\nmax_warm = 2\n",
		"a.toml: min_warm is larger than max_warm");
	refused("[daemon.agents.claude]\nmin_warm = 3\nmax_warm = 2\n",
		"a.toml: min_warm is larger than max_warm");
}

/* An error of the policy names the line. */
static void what_a_policy_refuses_names_the_line(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{ "[resources]\nmemory = '2 loaves'\n",
		  "a.toml:2: size '2 loaves' has an unknown unit (use K, M, G or T)" },
		{ "[resources]\nmemory = -1\n", "a.toml:2: size '-1' does not start with a digit" },
		{ "[resources]\nmemory_mb = -5\n",
		  "a.toml:2: size '-5MiB' does not start with a digit" },
		{ "[resources]\nmemory_mb = 9223372036854775807\n",
		  "a.toml:2: size '9223372036854775807MiB' is too large" },
		{ "[resources]\ncpus = nan\n",
		  "a.toml:2: number 'nan' does not start with a digit" },
		{ "[resources]\ncpus = inf\n",
		  "a.toml:2: number 'inf' does not start with a digit" },
		{ "[resources]\ncpus = 0.0001\n",
		  "a.toml:2: number '0.000' is outside 0.01 to 1024" },
		{ "[resources]\npids = 0\n", "a.toml:2: number '0' is outside 1 to 4194304" },
		{ "[resources]\ntimeout = -1\n",
		  "a.toml:2: duration '-1s' does not start with a digit" },
		{ "[security]\nprofile = 'lax'\n",
		  "a.toml:2: no profile 'lax' (use restrictive, moderate or permissive)" },
		{ "[agent]\nmode = 'cluade'\n",
		  "a.toml:2: no mode 'cluade' (use native, claude, codex or gemini)" },
		{ "[network]\npolicy = 'maybe'\n",
		  "a.toml:2: no network policy 'maybe' (use allow or deny)" },
		{ "[sandbox]\nworkdir = 'rel'\n", "a.toml:2: 'rel' is not an absolute path" },
		{ "[sandbox]\nimage = ''\n", "a.toml:2: the name of the image is empty" },
		{ "[security]\npass_env = ['A B']\n",
		  "a.toml:2: 'A B' does not start with a name (use NAME=VALUE)" },
		{ "[[mounts]]\nsource = 'x'\ntarget = 'rel'\n",
		  "a.toml:1: target 'rel' is not an absolute path" },
		{ "[[mounts]]\nsource = 'x'\ntarget = '/proc/x'\n",
		  "a.toml:1: nothing can be mounted over '/proc/x': '/proc' is the sandbox's own" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		CLEANUP(configuration_done) struct configuration c = { 0 };
		CLEANUP(policy_done) struct policy p = { 0 };
		struct err e = { 0 };

		parsed(wrong[i].text, &c);
		assert_int_equal(policy_resolve(c.settings, c.setting_count, &caller, &p, &e), -1);
		assert_string_equal(e.msg, wrong[i].message);
	}
}

static void what_is_no_toml_is_refused_with_its_place(void **state)
{
	CLEANUP(configuration_done) struct configuration c = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parse("[sandbox]\nimage = 'x\n", &c, &e), -1);
	assert_true(strncmp(e.msg, "a.toml:2:", 9) == 0);
	assert_int_equal(parse("[sandbox]\nimage = 'x'\nimage = 'y'\n", &c, &e), -1);
	assert_true(strncmp(e.msg, "a.toml:3:", 9) == 0);
}

/* A project may not configure how images are pulled, and with which passwords. */
static void registries_are_the_users_alone(void **state)
{
	static const char text[] = "[registries.\"registry.example.org\"]\nmirrors = ['x']\n";
	CLEANUP(configuration_done) struct configuration c = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(parse_as(text, CONFIGURATION_USERS, &c, &e), 0);
	assert_int_equal(c.setting_count, 0);
	refused(text, "a.toml:1:2: only your own config.toml can say how images are fetched");
}

static void there_are_maxima(void **state)
{
	CLEANUP(configuration_done) struct configuration c = { 0 }, none = { 0 };
	cleanup_buf struct buf text;
	struct err e = { 0 };

	(void)state;
	buf_init(&text, TOML_DOCUMENT_MAX_BYTES);
	buf_add_text(&text, "[network]\nblock = [\n");
	for (unsigned i = 0; i < CONFIGURATION_SETTINGS_MAX; i++)
		buf_addf(&text, "'h%u.example.org',\n", i);
	buf_add_text(&text, "]\n");
	assert_int_equal(parse(buf_text(&text), &c, &e), 0);
	assert_int_equal(c.setting_count, CONFIGURATION_SETTINGS_MAX);
	buf_add_text(&text, "allow = ['one.more']\n");
	assert_int_equal(parse(buf_text(&text), &none, &e), -1);
	assert_string_equal(e.msg, "a.toml:2052:10: more than 2048 settings");

	text.len = 0;
	buf_add_text(&text, "[tools]\nallow = [");
	for (unsigned i = 0; i <= TOOLPOLICY_NAMES_MAX; i++)
		buf_addf(&text, "'t%u',", i);
	buf_add_text(&text, "]\n");
	assert_int_equal(parse(buf_text(&text), &none, &e), -1);
	assert_string_equal(e.msg, "a.toml:2:9: more than 256 names");
}

static void it_is_released_whole(void **state)
{
	struct configuration c = { 0 };

	(void)state;
	configuration_done(&c);
	parsed("[sandbox]\nname = 'a'\nimage = 'b'\n[tools]\nallow = ['x']\n", &c);
	configuration_done(&c);
	assert_int_equal(c.setting_count, 0);
	configuration_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_the_setting_that_it_should_be),
		cmocka_unit_test(every_setting_makes_a_policy),
		cmocka_unit_test(all_forms_of_tables_mean_the_same),
		cmocka_unit_test(settings_know_their_own_line),
		cmocka_unit_test(what_is_no_setting_is_kept_beside),
		cmocka_unit_test(nothing_said_is_nothing_set),
		cmocka_unit_test(an_empty_list_of_tools_is_not_none),
		cmocka_unit_test(mounts_begin_at_the_files_directory),
		cmocka_unit_test(a_mount_that_is_none_is_refused),
		cmocka_unit_test(unknown_names_are_told_the_nearest),
		cmocka_unit_test(a_key_is_known_as_a_whole),
		cmocka_unit_test(wrong_types_are_refused_with_their_place),
		cmocka_unit_test(values_that_mean_nothing_are_refused),
		cmocka_unit_test(what_a_policy_refuses_names_the_line),
		cmocka_unit_test(what_is_no_toml_is_refused_with_its_place),
		cmocka_unit_test(registries_are_the_users_alone),
		cmocka_unit_test(there_are_maxima),
		cmocka_unit_test(it_is_released_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
