/* test_ceiling - what an untrusted project or caller may request, and what exceeds the ceiling. */
#include "unit.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "policy/ceiling.h"

#include <stdio.h>

static char *const caller_environ[] = { "HOME=/home/me",
					"PLAIN=1",
					"API_TOKEN=x",
					"DATABASE=postgres://me:pw@host/",
					"DISPLAY=:0",
					"ANTHROPIC_API_KEY=k",
					NULL };
static const struct policy_caller caller = {
	.cwd = "/work/here",
	.home = "/home/me",
	.environ_list = caller_environ,
};

/* At most three settings; one without an origin ends them. */
#define SETTINGS_MAX 3

struct words {
	struct policy_setting list[SETTINGS_MAX];
};

static size_t copy(const struct words *w, const char *origin, enum policy_layer layer,
		   struct policy_setting *out)
{
	size_t count = 0;

	for (; count < SETTINGS_MAX && w->list[count].origin; count++) {
		out[count] = w->list[count];
		out[count].origin = origin;
		out[count].layer = layer;
	}
	return count;
}

#define ASK(field_, text_)                                                                         \
	{                                                                                          \
		(field_), (text_), "-"                                                             \
	}
#define NOTHING                                                                                    \
	{                                                                                          \
		{                                                                                  \
			{                                                                          \
				0                                                                  \
			}                                                                          \
		}                                                                                  \
	}

/* The user's settings are the ceiling; the project's are added to them. */
static int check(const struct words *user, const struct words *project,
		 enum policy_field *ret_field, struct err *e)
{
	struct policy_setting settings[2 * SETTINGS_MAX];
	CLEANUP(policy_done) struct policy ceiling = { 0 }, p = { 0 };
	size_t count = copy(user, "user", POLICY_BY_USER_FILE, settings);
	size_t all = count + copy(project, "project", POLICY_BY_PROJECT_FILE, settings + count);

	if (policy_resolve(settings, count, &caller, &ceiling, e) < 0 ||
	    policy_resolve(settings, all, &caller, &p, e) < 0)
		fail_msg("%s", e->msg);
	return ceiling_check(&p, &ceiling, NULL, ret_field, e);
}

static void print_words(const struct words *w)
{
	for (size_t i = 0; i < SETTINGS_MAX && w->list[i].origin; i++)
		print_message("  %s %s\n", policy_field_name(w->list[i].field),
			      w->list[i].text ? w->list[i].text : "none");
}

struct row {
	struct words user, project;
	enum policy_field beyond; /* field in the error; POLICY_FIELD_COUNT: within */
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		enum policy_field field = POLICY_FIELD_COUNT;
		struct err e = { 0 };
		int r = check(&rows[i].user, &rows[i].project, &field, &e);

		if ((r < 0) != (rows[i].beyond != POLICY_FIELD_COUNT) || field != rows[i].beyond) {
			print_words(&rows[i].user);
			print_words(&rows[i].project);
			fail_msg("row %zu: %s", i, r < 0 ? e.msg : "within");
		}
		if (r < 0) {
			assert_int_equal(e.code, ERR_DENIED);
			if (rows[i].beyond != POLICY_CAPABILITIES)
				/* a mode's rules have the mode as their origin */
				assert_true(strncmp(e.msg, "project: ", 9) == 0 ||
					    strncmp(e.msg, "mode gemini: ", 13) == 0);
		}
	}
}

#define WITHIN POLICY_FIELD_COUNT

/* ---- every field: one value within, one beyond ---- */

static void every_field_has_its_ceiling(void **state)
{
	static const struct row rows[] = {
		/* presets: their values matter, not their names */
		{ NOTHING, { { ASK(POLICY_PROFILE, "restrictive") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_PROFILE, "moderate") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_PROFILE, "permissive") } }, POLICY_WORKSPACE },
		{ { { ASK(POLICY_PROFILE, "restrictive") } },
		  { { ASK(POLICY_PROFILE, "moderate") } },
		  POLICY_USER },
		{ NOTHING, { { ASK(POLICY_MODE, "native") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_MODE, "codex") } }, POLICY_WORKSPACE },
		{ { { ASK(POLICY_MODE, "claude") } }, { { ASK(POLICY_MODE, "claude") } }, WITHIN },
		{ { { ASK(POLICY_MODE, "claude") } },
		  { { ASK(POLICY_MODE, "gemini") } },
		  POLICY_ALLOW_HOST },
		{ { { ASK(POLICY_MODE, "claude") } },
		  { { ASK(POLICY_PROFILE, "moderate") } },
		  POLICY_NETWORK_POLICY },
		{ { { ASK(POLICY_PROFILE, "permissive") } },
		  { { ASK(POLICY_PROFILE, "moderate") } },
		  WITHIN },

		{ NOTHING, { { ASK(POLICY_IMAGE, "debian:12") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_IMAGE, "evil.example/x") } }, POLICY_IMAGE },
		{ { { ASK(POLICY_IMAGE, "debian:12") } },
		  { { ASK(POLICY_IMAGE, "host") } },
		  POLICY_IMAGE },

		{ NOTHING, { { ASK(POLICY_USER, "nobody") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_USER, "root") } }, WITHIN },
		{ { { ASK(POLICY_USER, "nobody") } }, { { ASK(POLICY_USER, "0") } }, POLICY_USER },
		{ { { ASK(POLICY_PROFILE, "restrictive") } },
		  { { ASK(POLICY_USER, "root") } },
		  POLICY_USER },
		{ { { ASK(POLICY_PROFILE, "restrictive") } },
		  { { ASK(POLICY_USER, "7:8") } },
		  WITHIN },

		{ NOTHING, { { ASK(POLICY_READ_ONLY, "true") } }, WITHIN },
		{ { { ASK(POLICY_READ_ONLY, "true") } },
		  { { ASK(POLICY_READ_ONLY, "false") } },
		  POLICY_READ_ONLY },

		{ NOTHING, { { ASK(POLICY_NETWORK, "false") } }, WITHIN },
		{ { { ASK(POLICY_NETWORK, "false") } },
		  { { ASK(POLICY_NETWORK, "true") } },
		  POLICY_NETWORK },
		{ NOTHING, { { ASK(POLICY_NETWORK_POLICY, "deny") } }, WITHIN },
		{ { { ASK(POLICY_NETWORK_POLICY, "deny") } },
		  { { ASK(POLICY_NETWORK_POLICY, "allow") } },
		  POLICY_NETWORK_POLICY },
		/* rules of a missing network allow nothing */
		{ { { ASK(POLICY_NETWORK_POLICY, "deny") } },
		  { { ASK(POLICY_PROFILE, "restrictive") } },
		  WITHIN },

		{ { { ASK(POLICY_WORKSPACE, "") } }, { { ASK(POLICY_WORKSPACE, NULL) } }, WITHIN },
		{ { { ASK(POLICY_WORKSPACE, "") } },
		  { { ASK(POLICY_WORKSPACE, "/work/here") } },
		  WITHIN },
		{ NOTHING, { { ASK(POLICY_WORKSPACE, "") } }, POLICY_WORKSPACE },
		{ { { ASK(POLICY_WORKSPACE, "") } },
		  { { ASK(POLICY_WORKSPACE, "/work/other") } },
		  POLICY_WORKSPACE },
		{ { { ASK(POLICY_WORKSPACE, "") } },
		  { { ASK(POLICY_WORKSPACE, "/work") } },
		  POLICY_WORKSPACE },
		{ { { ASK(POLICY_WORKSPACE, "") } }, { { ASK(POLICY_CLONE, "true") } }, WITHIN },
		{ { { ASK(POLICY_WORKSPACE, ""), ASK(POLICY_CLONE, "true") } },
		  { { ASK(POLICY_CLONE, "false") } },
		  POLICY_CLONE },
		{ { { ASK(POLICY_WORKSPACE, ""), ASK(POLICY_CLONE, "true") } },
		  { { ASK(POLICY_CLONE, "false"), ASK(POLICY_WORKSPACE, NULL) } },
		  WITHIN },
		{ NOTHING, { { ASK(POLICY_PROTECT, "x") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_UNPROTECT, ".vscode") } }, POLICY_UNPROTECT },
		{ { { ASK(POLICY_UNPROTECT, ".vscode") } },
		  { { ASK(POLICY_UNPROTECT, ".vscode") } },
		  WITHIN },
		{ { { ASK(POLICY_UNPROTECT, ".vscode") } },
		  { { ASK(POLICY_UNPROTECT, ".git/hooks") } },
		  POLICY_UNPROTECT },
		{ NOTHING, { { ASK(POLICY_MASK, "x") } }, WITHIN },
		{ { { ASK(POLICY_HOME, "true") } }, { { ASK(POLICY_HOME, "false") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_HOME, "true") } }, POLICY_HOME },
		{ NOTHING, { { ASK(POLICY_UNMASK, ".ssh") } }, POLICY_UNMASK },
		{ { { ASK(POLICY_UNMASK, ".npmrc") } },
		  { { ASK(POLICY_UNMASK, ".npmrc") } },
		  WITHIN },

		{ NOTHING, { { ASK(POLICY_MOUNT, "/etc:/x:ro") } }, POLICY_MOUNT },
		{ { { ASK(POLICY_MOUNT, "/a:/b") } },
		  { { ASK(POLICY_MOUNT, "/a:/b:ro") } },
		  WITHIN },
		{ { { ASK(POLICY_MOUNT, "/a:/b:ro") } },
		  { { ASK(POLICY_MOUNT, "/a:/b") } },
		  POLICY_MOUNT },
		{ { { ASK(POLICY_MOUNT, "/a:/b") } },
		  { { ASK(POLICY_MOUNT, "/a:/c") } },
		  POLICY_MOUNT },
		{ { { ASK(POLICY_MOUNT, "/a:/b") } },
		  { { ASK(POLICY_MOUNT, "/:/b") } },
		  POLICY_MOUNT },
		{ NOTHING, { { ASK(POLICY_TMPFS, "/x") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_WORKDIR, "/x") } }, WITHIN },

		{ NOTHING, { { ASK(POLICY_ENV, "A=1") } }, WITHIN },
		{ NOTHING, { { ASK(POLICY_ENV, "PLAIN") } }, POLICY_ENV },
		{ NOTHING, { { ASK(POLICY_ENV, "NOT_SET") } }, WITHIN },
		{ { { ASK(POLICY_ENV, "API_TOKEN") } },
		  { { ASK(POLICY_ENV, "API_TOKEN") } },
		  WITHIN },
		{ { { ASK(POLICY_ENV, "API_TOKEN=other") } },
		  { { ASK(POLICY_ENV, "API_TOKEN") } },
		  POLICY_ENV },
		{ NOTHING, { { ASK(POLICY_ACCEPT_MISSING, "landlock") } }, POLICY_ACCEPT_MISSING },
	};

	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* Each limit: no limit is the highest, and an equal limit is within. */
static void limits_can_only_be_lowered(void **state)
{
	static const struct {
		enum policy_field field;
		const char *low, *high;
	} limits[] = {
		{ POLICY_MEMORY, "1g", "3g" },     { POLICY_CPUS, "0.5", "2" },
		{ POLICY_PIDS, "10", "2000" },     { POLICY_DISK, "10m", "3g" },
		{ POLICY_NOFILE, "10", "100000" }, { POLICY_FILE_SIZE, "1m", "1g" },
		{ POLICY_IO_READ, "1m", "1g" },    { POLICY_IO_WRITE, "1m", "1g" },
		{ POLICY_BANDWIDTH, "1m", "1g" },  { POLICY_TIMEOUT, "1s", "1h" },
		{ POLICY_CPU_TIME, "1s", "1h" },
	};
	static const struct row no_limit = { { { ASK(POLICY_MEMORY, "1g") } },
					     { { ASK(POLICY_PROFILE, "permissive"),
						 ASK(POLICY_WORKSPACE, NULL),
						 ASK(POLICY_HOME, "false") } },
					     POLICY_ENVIRONMENT };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(limits); i++) {
		const struct row rows[] = {
			{ { { ASK(limits[i].field, limits[i].high) } },
			  { { ASK(limits[i].field, limits[i].low) } },
			  WITHIN },
			{ { { ASK(limits[i].field, limits[i].high) } },
			  { { ASK(limits[i].field, limits[i].high) } },
			  WITHIN },
			{ { { ASK(limits[i].field, limits[i].low) } },
			  { { ASK(limits[i].field, limits[i].high) } },
			  limits[i].field },
		};

		check_rows(rows, COUNT_OF(rows));
	}
	check_rows(&no_limit, 1); /* the environment is checked before the memory without a limit */
}

static void no_limit_is_more_than_any(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 }, ceiling = { 0 };
	enum policy_field field;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(NULL, 0, &caller, &p, &e), 0);
	assert_int_equal(policy_resolve(NULL, 0, &caller, &ceiling, &e), 0);
	p.memory_bytes = 0;
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_MEMORY);
	assert_non_null(strstr(e.msg, "memory = 'no limit' goes beyond '2 GiB' (default)"));
	ceiling.memory_bytes = 0;
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, NULL, &e), 0);
}

/* Flags that only presets set. */
static void what_only_presets_give_is_held_as_well(void **state)
{
	CLEANUP(policy_done) struct policy p = { 0 }, ceiling = { 0 };
	enum policy_field field;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(NULL, 0, &caller, &p, &e), 0);
	assert_int_equal(policy_resolve(NULL, 0, &caller, &ceiling, &e), 0);
	ceiling.may_trace = false;
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_TRACE);
	ceiling.has_capabilities = false;
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_CAPABILITIES);
	p.has_capabilities = p.may_trace = false;
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), 0);
	p.passes_env = true;
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_ENVIRONMENT);
}

/* Names that a preset or a list of the ceiling protects and masks must stay so. */
static void what_the_ceiling_protects_stays_protected(void **state)
{
	const struct policy_setting words[] = { ASK(POLICY_PROTECT, "deploy"),
						ASK(POLICY_MASK, ".env") };
	CLEANUP(policy_done) struct policy p = { 0 }, one = { 0 }, ceiling = { 0 };
	enum policy_field field;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(words, 2, &caller, &ceiling, &e), 0);
	assert_int_equal(policy_resolve(NULL, 0, &caller, &p, &e), 0);
	assert_int_equal(policy_resolve(words, 1, &caller, &one, &e), 0);
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_PROTECT);
	assert_int_equal(ceiling_check(&one, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_MASK);
	assert_int_equal(ceiling_check(&ceiling, &ceiling, NULL, &field, &e), 0);
}

static void lists_that_nobody_asked_for_are_cut_to_the_ceilings(void **state)
{
	const struct policy_setting most[] = { ASK(POLICY_PROTECT, "deploy"),
					       ASK(POLICY_MASK, ".env"),
					       ASK(POLICY_UNPROTECT, ".vscode") };
	const struct policy_setting asked[] = {
		{ POLICY_UNPROTECT, ".vscode", "project", POLICY_BY_PROJECT_FILE },
		{ POLICY_UNPROTECT, ".git/hooks", "project", POLICY_BY_PROJECT_FILE },
		{ POLICY_UNMASK, ".ssh", "project", POLICY_BY_PROJECT_FILE },
		{ POLICY_MASK, ".secret", "project", POLICY_BY_PROJECT_FILE },
	};
	CLEANUP(policy_done) struct policy p = { 0 }, ceiling = { 0 };
	CLEANUP(keyrows_list_free) char **lowered = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(most, COUNT_OF(most), &caller, &ceiling, &e), 0);
	assert_int_equal(policy_resolve(asked, COUNT_OF(asked), &caller, &p, &e), 0);
	assert_int_equal(ceiling_lower(&p, &ceiling, &lowered, &e), 0);
	assert_true(keyrows_list_has(p.unprotect, ".vscode"));
	assert_false(keyrows_list_has(p.unprotect, ".git/hooks"));
	assert_false(keyrows_list_has(p.unmask, ".ssh"));
	assert_true(keyrows_list_has(p.protect, "deploy"));
	assert_true(keyrows_list_has(p.mask, ".env") && keyrows_list_has(p.mask, ".secret"));
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, NULL, &e), 0);
}

/* ---- images ---- */

static void an_image_must_not_name_a_registry_of_its_own(void **state)
{
	static const char *const within[] = { "debian", "debian:12", "library/debian", "me/tool:1",
					      "debian@sha256:0123456789abcdef0123456789abcdef"
					      "0123456789abcdef0123456789abcdef" };
	static const char *const beyond[] = { "evil.example/x", "evil.example:5000/x",
					      "localhost/x",    "localhost:5000/x",
					      "host:80/x",      "192.0.2.1/x",
					      "[::1]:5000/x" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(within); i++) {
		const struct row row = { NOTHING, { { ASK(POLICY_IMAGE, within[i]) } }, WITHIN };

		check_rows(&row, 1);
	}
	for (size_t i = 0; i < COUNT_OF(beyond); i++) {
		const struct row rows[] = {
			{ NOTHING, { { ASK(POLICY_IMAGE, beyond[i]) } }, POLICY_IMAGE },
			{ { { ASK(POLICY_IMAGE, beyond[i]) } },
			  { { ASK(POLICY_IMAGE, beyond[i]) } },
			  WITHIN },
		};

		check_rows(rows, COUNT_OF(rows));
	}
}

/* Who "root" or "0" is in an image is resolved later, but the project cannot decide it. */
static void a_user_in_an_image_is_held_before_the_image_is_there(void **state)
{
	static const struct row rows[] = {
		{ { { ASK(POLICY_PROFILE, "restrictive") } },
		  { { ASK(POLICY_IMAGE, "x"), ASK(POLICY_USER, "root") } },
		  POLICY_USER },
		{ { { ASK(POLICY_PROFILE, "restrictive") } },
		  { { ASK(POLICY_IMAGE, "x"), ASK(POLICY_USER, "toor") } },
		  POLICY_USER },
		{ { { ASK(POLICY_USER, "nobody") } },
		  { { ASK(POLICY_IMAGE, "x"), ASK(POLICY_USER, "root") } },
		  POLICY_USER },
		{ { { ASK(POLICY_USER, "nobody"), ASK(POLICY_IMAGE, "x") } },
		  { { ASK(POLICY_USER, "root") } },
		  POLICY_USER },
		{ { { ASK(POLICY_USER, "nobody"), ASK(POLICY_IMAGE, "x") } },
		  { { ASK(POLICY_USER, "nobody") } },
		  WITHIN },
		{ { { ASK(POLICY_USER, "nobody") } },
		  { { ASK(POLICY_IMAGE, "x") } }, /* where nobody may be root */
		  POLICY_CAPABILITIES },
		{ NOTHING, { { ASK(POLICY_IMAGE, "x"), ASK(POLICY_USER, "app") } }, WITHIN },
		{ { { ASK(POLICY_PROFILE, "restrictive") } },
		  { { ASK(POLICY_IMAGE, "x") } },
		  WITHIN },
	};

	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* ---- variables ---- */

static void passing_the_environment_does_not_pass_its_secrets(void **state)
{
	static const struct row rows[] = {
		{ { { ASK(POLICY_PROFILE, "permissive") } },
		  { { ASK(POLICY_ENV, "PLAIN") } },
		  WITHIN },
		{ { { ASK(POLICY_PROFILE, "permissive") } },
		  { { ASK(POLICY_ENV, "API_TOKEN") } },
		  POLICY_ENV },
		/* its name is harmless, its value is not */
		{ { { ASK(POLICY_PROFILE, "permissive") } },
		  { { ASK(POLICY_ENV, "DATABASE") } },
		  POLICY_ENV },
		/* variables that lead to a service of this machine are not passed either */
		{ { { ASK(POLICY_PROFILE, "permissive") } },
		  { { ASK(POLICY_ENV, "DISPLAY") } },
		  POLICY_ENV },
		/* a mode's keys */
		{ { { ASK(POLICY_WORKSPACE, "") } },
		  { { ASK(POLICY_MODE, "claude") } },
		  POLICY_ENV },
		{ { { ASK(POLICY_WORKSPACE, ""), ASK(POLICY_ENV, "ANTHROPIC_API_KEY") } },
		  { { ASK(POLICY_MODE, "claude") } },
		  WITHIN },
		{ { { ASK(POLICY_WORKSPACE, "") } }, { { ASK(POLICY_MODE, "gemini") } }, WITHIN },
	};

	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* ---- the network: what an attacker would try ---- */

#define ALLOW(text) ASK(POLICY_ALLOW_HOST, text)
#define BLOCK(text) ASK(POLICY_BLOCK_HOST, text)
#define DENY ASK(POLICY_NETWORK_POLICY, "deny")

static void a_more_specific_rule_does_not_undo_a_block(void **state)
{
	static const struct row rows[] = {
		{ { { BLOCK("bad.org") } }, { { ALLOW("bad.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("bad.org") } }, { { ALLOW("bad.org:443") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*.bad.org") } }, { { ALLOW("x.bad.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*.bad.org") } }, { { ALLOW("*.x.bad.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*.bad.org") } }, { { ALLOW("*.bad.org:443") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*") } }, { { ALLOW("*.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*") } }, { { ALLOW("*:443") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*:25") } }, { { ALLOW("mail.org:25") } }, POLICY_ALLOW_HOST },
		/* without a port it allows all of them */
		{ { { BLOCK("bad.org:25") } }, { { ALLOW("bad.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*:25") } }, { { ALLOW("mail.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*.org:25") } }, { { ALLOW("*.x.org") } }, POLICY_ALLOW_HOST },
		{ { { BLOCK("*.org:25") } }, { { ALLOW("a.x.org") } }, POLICY_ALLOW_HOST },
		/* a port that the block does not name, or another name */
		{ { { BLOCK("bad.org:25") } }, { { ALLOW("bad.org:443") } }, WITHIN },
		{ { { BLOCK("bad.org") } }, { { ALLOW("x.bad.org") } }, WITHIN },
		{ { { BLOCK("*.bad.org") } }, { { ALLOW("bad.org") } }, WITHIN },
		/* a wildcard around a blocked name: the block is more specific in both */
		{ { { BLOCK("bad.org") } }, { { ALLOW("*.org") } }, WITHIN },
		{ { { BLOCK("*.bad.org") } }, { { ALLOW("*.org") } }, WITHIN },
		/* blocks can always be added */
		{ NOTHING, { { BLOCK("*") } }, WITHIN },
		{ { { DENY, ALLOW("good.org") } }, { { BLOCK("good.org") } }, WITHIN },
	};

	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* ... and the block takes precedence in the resulting policy. */
static void a_wildcard_around_a_blocked_name_leaves_it_blocked(void **state)
{
	const struct policy_setting settings[] = { BLOCK("bad.org"), BLOCK("*.worse.org"),
						   ALLOW("*.org"), ALLOW("*") };
	static const char *const blocked[] = { "bad.org", "x.worse.org" };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct egress_decision d;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(settings, COUNT_OF(settings), &caller, &p, &e), 0);
	for (size_t i = 0; i < COUNT_OF(blocked); i++) {
		egress_decide_name(&p.egress, blocked[i], 443, &d);
		assert_false(d.is_allowed);
	}
}

static void where_all_is_denied_only_what_was_allowed_can_be(void **state)
{
	static const struct row rows[] = {
		{ { { DENY } }, { { ALLOW("x.org") } }, POLICY_ALLOW_HOST },
		{ { { DENY } }, { { ALLOW("*") } }, POLICY_ALLOW_HOST },
		{ { { DENY, ALLOW("x.org") } }, { { ALLOW("x.org") } }, WITHIN },
		{ { { DENY, ALLOW("x.org") } }, { { ALLOW("x.org:443") } }, WITHIN },
		{ { { DENY, ALLOW("x.org:443") } }, { { ALLOW("x.org") } }, POLICY_ALLOW_HOST },
		{ { { DENY, ALLOW("x.org:443") } }, { { ALLOW("x.org:80") } }, POLICY_ALLOW_HOST },
		{ { { DENY, ALLOW("*.org") } }, { { ALLOW("x.org") } }, WITHIN },
		{ { { DENY, ALLOW("*.org") } }, { { ALLOW("*.x.org:443") } }, WITHIN },
		{ { { DENY, ALLOW("x.org") } }, { { ALLOW("*.org") } }, POLICY_ALLOW_HOST },
		{ { { DENY, ALLOW("*.x.org") } }, { { ALLOW("x.org") } }, POLICY_ALLOW_HOST },
		{ { { DENY, ALLOW("*.invalid") } }, { { ALLOW("*") } }, POLICY_ALLOW_HOST },
		{ { { DENY, ALLOW("*:443") } }, { { ALLOW("*:443") } }, WITHIN },
		{ { { DENY, ALLOW("*:443") } }, { { ALLOW("x.org:443") } }, WITHIN },
		{ { { DENY, ALLOW("*:443") } }, { { ALLOW("*") } }, POLICY_ALLOW_HOST },
		/* the project may deny by default, and what it allows then was allowed before */
		{ NOTHING, { { DENY, ALLOW("x.org") } }, WITHIN },
		{ { { ASK(POLICY_MODE, "claude") } },
		  { { ALLOW("evil.org") } },
		  POLICY_ALLOW_HOST },
		{ { { ASK(POLICY_MODE, "claude") } }, { { ALLOW("x.anthropic.com") } }, WITHIN },
	};

	(void)state;
	check_rows(rows, COUNT_OF(rows));
}

/* Addresses allow what no name can: only those of the ceiling, literally. */
static void addresses_and_this_machine_are_the_ceilings_alone(void **state)
{
	static const char *const texts[] = {
		"10.0.0.1",        "10.0.0.0/8",
		"0.0.0.0/0",       "::/0",
		"192.0.2.1",       "192.168.1.1:22",
		"fd00::/8",        "[fd00::1]:443",
		"169.254.169.254", "host.agentkernel.internal:22",
		"localhost:22",    "host.docker.internal:2375",
	};
	static const struct row rows[] = {
		{ { { ALLOW("10.0.0.0/8") } }, { { ALLOW("10.1.0.0/16") } }, POLICY_ALLOW_HOST },
		{ { { ALLOW("10.0.0.0/16") } }, { { ALLOW("10.0.0.0/8") } }, POLICY_ALLOW_HOST },
		{ { { ALLOW("10.0.0.1:80") } }, { { ALLOW("10.0.0.1") } }, POLICY_ALLOW_HOST },
		{ { { ASK(POLICY_BLOCK_CIDR, "192.0.2.0/24") } },
		  { { ALLOW("192.0.2.1") } },
		  POLICY_ALLOW_HOST },
		{ { { ALLOW("localhost:22") } }, { { ALLOW("localhost:23") } }, POLICY_ALLOW_HOST },
		{ { { ALLOW("localhost:22") } }, { { ALLOW("host.docker.internal:22") } }, WITHIN },
		{ NOTHING, { { ALLOW("*.agentkernel.internal:22") } }, WITHIN }, /* opens nothing */
		{ NOTHING, { { ALLOW("metadata.google.internal") } }, POLICY_ALLOW_HOST },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		const struct row both[] = {
			{ NOTHING, { { ALLOW(texts[i]) } }, POLICY_ALLOW_HOST },
			{ { { ALLOW(texts[i]) } }, { { ALLOW(texts[i]) } }, WITHIN },
		};

		check_rows(both, COUNT_OF(both));
	}
	check_rows(rows, COUNT_OF(rows));
}

static void what_the_ceiling_blocks_must_be_blocked(void **state)
{
	const struct policy_setting block = BLOCK("bad.org");
	CLEANUP(policy_done) struct policy p = { 0 }, off = { 0 }, ceiling = { 0 };
	const struct policy_setting no_network = ASK(POLICY_NETWORK, "false");
	enum policy_field field;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(&block, 1, &caller, &ceiling, &e), 0);
	assert_int_equal(policy_resolve(NULL, 0, &caller, &p, &e), 0);
	assert_int_equal(policy_resolve(&no_network, 1, &caller, &off, &e), 0);
	assert_int_equal(ceiling_check(&p, &ceiling, NULL, &field, &e), -1);
	assert_int_equal(field, POLICY_BLOCK_HOST);
	assert_int_equal(ceiling_check(&off, &ceiling, NULL, &field, &e), 0);
}

/* ---- messages ---- */

static void a_refusal_says_who_asks_for_what_and_who_forbids_it(void **state)
{
	static const struct words user = { { DENY, ALLOW("good.org") } };
	static const struct words project = { { ALLOW("good.org"), ALLOW("10.0.0.0/8") } };
	struct policy_setting settings[] = {
		{ POLICY_NETWORK_POLICY, "deny", "--network-policy", POLICY_BY_COMMAND_LINE },
		{ POLICY_ALLOW_HOST, "good.org", "--allow-host", POLICY_BY_COMMAND_LINE },
		{ POLICY_ALLOW_HOST, "evil.org", "a.toml:3", POLICY_BY_PROJECT_FILE },
	};
	CLEANUP(policy_done) struct policy p = { 0 }, ceiling = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(check(&user, &project, NULL, &e), -1);
	assert_string_equal(e.msg,
			    "project: allow-host = '10.0.0.0/8' goes beyond 'good.org' (user)");
	/* the rule's own origin, even if a later layer set the same field */
	assert_int_equal(policy_resolve(settings, 2, &caller, &ceiling, &e), 0);
	assert_int_equal(policy_resolve(settings, 3, &caller, &p, &e), 0);
	assert_int_equal(ceiling_check(&p, &ceiling, "ask first", NULL, &e), -1);
	assert_string_equal(e.msg, "a.toml:3: allow-host = 'evil.org' goes beyond 'good.org' "
				   "(--allow-host); ask first");
}

static void everything_is_within_itself(void **state)
{
	static const char *const presets[] = { "restrictive", "moderate", "permissive" };
	static const char *const modes[] = { "native", "claude", "codex", "gemini" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(presets) + COUNT_OF(modes); i++) {
		bool is_mode = i >= COUNT_OF(presets);
		const struct words w = { { ASK(is_mode ? POLICY_MODE : POLICY_PROFILE,
					       is_mode ? modes[i - COUNT_OF(presets)]
						       : presets[i]) } };
		const struct row row = { w, w, WITHIN };

		check_rows(&row, 1);
	}
}

/* ---- callers of a server ---- */

/*
 * Resolves the server's settings, then the caller's preset. *ret_lowered is the message to the
 * caller as one text.
 */
static void lower(const struct words *server, enum policy_field field, const char *text,
		  struct policy *ceiling, struct policy *p, char **ret_lowered)
{
	struct policy_setting settings[SETTINGS_MAX + 1];
	size_t count = copy(server, "the server", POLICY_BY_COMMAND_LINE, settings);
	CLEANUP(keyrows_list_free) char **lowered = NULL;
	enum policy_field beyond = POLICY_FIELD_COUNT;
	struct err e = { 0 };

	settings[count] = (struct policy_setting){ field, text, "preset", POLICY_BY_CALLER };
	if (policy_resolve(settings, count, &caller, ceiling, &e) < 0)
		fail_msg("%s", e.msg);
	ceiling_raise(ceiling, 24ull << 30);
	if (policy_resolve(settings, count + 1, &caller, p, &e) < 0 ||
	    ceiling_lower(p, ceiling, &lowered, &e) < 0)
		fail_msg("%s %s: %s", policy_field_name(field), text, e.msg);
	if (ceiling_check(p, ceiling, NULL, &beyond, &e) < 0) {
		print_words(server);
		fail_msg("%s %s: %s", policy_field_name(field), text, e.msg);
	}
	*ret_lowered = mem_dup("");
	for (size_t i = 0; lowered && lowered[i]; i++) {
		char *longer = mem_format("%s%s\n", *ret_lowered, lowered[i]);

		free(*ret_lowered);
		*ret_lowered = longer;
	}
}

static void every_preset_fits_below_every_ceiling(void **state)
{
	static const struct words servers[] = {
		NOTHING,
		{ { ASK(POLICY_NETWORK, "false") } },
		{ { ASK(POLICY_PROFILE, "restrictive") } },
		{ { ASK(POLICY_PROFILE, "permissive") } },
		{ { ASK(POLICY_MODE, "claude") } },
		{ { ASK(POLICY_MODE, "codex") } },
		{ { ASK(POLICY_USER, "1000") } },
		{ { ASK(POLICY_READ_ONLY, "true") } },
		{ { ASK(POLICY_MEMORY, "64MiB"), ASK(POLICY_PIDS, "7"), ASK(POLICY_CPUS, "0.5") } },
		{ { ASK(POLICY_DISK, "10MiB") } },
		{ { ASK(POLICY_WORKSPACE, "/work/here"), ASK(POLICY_PROTECT_NEW, "strict") } },
		{ { ASK(POLICY_NETWORK_POLICY, "deny"),
		    ASK(POLICY_ALLOW_HOST, "good.example.org") } },
		{ { ASK(POLICY_BLOCK_HOST, "*.github.com") } },
		{ { ASK(POLICY_IMAGE, "bb"), ASK(POLICY_USER, "node") } },
	};
	static const struct {
		enum policy_field field;
		const char *text;
	} presets[] = {
		{ POLICY_PROFILE, "restrictive" }, { POLICY_PROFILE, "moderate" },
		{ POLICY_PROFILE, "permissive" },  { POLICY_MODE, "native" },
		{ POLICY_MODE, "claude" },         { POLICY_MODE, "codex" },
		{ POLICY_MODE, "gemini" },         { POLICY_NETWORK, "true" },
		{ POLICY_NETWORK, "false" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(servers); i++)
		for (size_t k = 0; k < COUNT_OF(presets); k++) {
			CLEANUP(policy_done) struct policy ceiling = { 0 }, p = { 0 };
			cleanup_free char *lowered = NULL;

			lower(&servers[i], presets[k].field, presets[k].text, &ceiling, &p,
			      &lowered);
			assert_string_equal(p.workdir, p.workspace ? p.workspace : p.home_dir);
			assert_true(p.disk_bytes > 0);
		}
}

static void a_caller_is_told_what_a_preset_does_not_get(void **state)
{
	static const struct words no_network = { { ASK(POLICY_NETWORK, "false") } },
				  restrictive = { { ASK(POLICY_PROFILE, "restrictive") } },
				  deny = { { ASK(POLICY_NETWORK_POLICY, "deny"),
					     ASK(POLICY_ALLOW_HOST, "api.github.com") } },
				  nothing = NOTHING;
	CLEANUP(policy_done) struct policy ceiling = { 0 }, p = { 0 };
	cleanup_free char *text = NULL;

	(void)state;
	lower(&no_network, POLICY_PROFILE, "moderate", &ceiling, &p, &text);
	assert_false(p.has_network);
	assert_string_equal(
		text, "preset: network = 'through the gate' goes beyond 'none' (the server)\n");
	policy_done(&ceiling), policy_done(&p), free(text);

	lower(&restrictive, POLICY_PROFILE, "permissive", &ceiling, &p, &text);
	assert_int_equal(p.uid, POLICY_USER_ID);
	assert_int_equal(p.profile, PROFILE_RESTRICTIVE);
	assert_false(p.has_capabilities || p.has_network || p.passes_env || p.may_trace);
	assert_true(p.is_read_only && !p.workspace && !p.home);
	assert_int_equal(p.memory_bytes, 512ull << 20);
	assert_non_null(strstr(text, "memory = 'no limit' goes beyond '512 MiB'"));
	policy_done(&ceiling), policy_done(&p), free(text);

	lower(&deny, POLICY_MODE, "claude", &ceiling, &p, &text);
	assert_int_equal(p.egress.count, 1);
	assert_string_equal(p.egress.rules[0].text, "api.github.com");
	assert_null(p.workspace);
	assert_int_equal(p.env_count, 0); /* the server keeps its key */
	assert_non_null(strstr(text, "env = 'ANTHROPIC_API_KEY' goes beyond 'none'"));
	policy_done(&ceiling), policy_done(&p), free(text);

	lower(&nothing, POLICY_PROFILE, "restrictive", &ceiling, &p, &text);
	assert_string_equal(text, "");
}

static int ask_for_memory(struct policy *ceiling, const char *text, struct err *e)
{
	const struct policy_setting s = { POLICY_MEMORY, text, "memory", POLICY_BY_CALLER };
	CLEANUP(policy_done) struct policy p = { 0 };
	CLEANUP(keyrows_list_free) char **lowered = NULL;

	if (policy_resolve(&s, 1, &caller, &p, e) < 0 ||
	    ceiling_lower(&p, ceiling, &lowered, e) < 0)
		fail_msg("%s", e->msg);
	return ceiling_check(&p, ceiling, NULL, NULL, e);
}

static void a_default_is_no_ceiling_and_a_maximum_is(void **state)
{
	const struct policy_setting written = { POLICY_MEMORY, "1GiB", "--memory" };
	const struct policy_setting most = { POLICY_MEMORY, "3GiB", "--max-memory",
					     POLICY_MAXIMUM };
	CLEANUP(policy_done) struct policy ceiling = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(NULL, 0, &caller, &ceiling, &e), 0);
	ceiling_raise(&ceiling, 24ull << 30);
	assert_int_equal(ask_for_memory(&ceiling, "4GiB", &e), 0);
	assert_int_equal(ask_for_memory(&ceiling, "13GiB", &e), -1);
	assert_non_null(strstr(e.msg, "goes beyond '12 GiB' (the maximum for callers)"));
	assert_int_equal(ceiling_set_maximum(&ceiling, &most, &e), 0);
	assert_int_equal(ask_for_memory(&ceiling, "3GiB", &e), 0);
	assert_int_equal(ask_for_memory(&ceiling, "4GiB", &e), -1);
	policy_done(&ceiling);

	assert_int_equal(policy_resolve(&written, 1, &caller, &ceiling, &e), 0);
	ceiling_raise(&ceiling, 24ull << 30);
	assert_int_equal(ask_for_memory(&ceiling, "2GiB", &e), -1); /* what the user wrote is one */
	assert_int_equal(ceiling_set_maximum(&ceiling, &most, &e), 0);
	assert_int_equal(ask_for_memory(&ceiling, "2GiB", &e), 0);
	policy_done(&ceiling);

	assert_int_equal(policy_resolve(NULL, 0, &caller, &ceiling, &e), 0);
	ceiling_raise(&ceiling, 1ull << 30); /* a small machine: the default stays allowed */
	assert_int_equal(ask_for_memory(&ceiling, "2GiB", &e), 0);
}

static void a_limit_that_no_update_changes_can_be_a_maximum(void **state)
{
	const struct policy_setting most = { POLICY_NOFILE, "100", "--max-nofile", POLICY_MAXIMUM };
	const struct policy_setting wrong = { POLICY_NOFILE, "many", "--max-nofile",
					      POLICY_MAXIMUM };
	CLEANUP(policy_done) struct policy ceiling = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(policy_resolve(NULL, 0, &caller, &ceiling, &e), 0);
	assert_int_equal(ceiling_set_maximum(&ceiling, &most, &e), 0);
	assert_int_equal(ceiling.nofile_count, 100);
	assert_string_equal(ceiling.origin[POLICY_NOFILE].text, "--max-nofile");
	assert_int_equal(ceiling_set_maximum(&ceiling, &wrong, &e), -1);
	assert_int_equal(strncmp(e.msg, "--max-nofile: ", 14), 0);
	assert_int_equal(ceiling.nofile_count, 100);
}

static void the_host_image_is_a_setting_of_its_own(void **state)
{
	const struct policy_setting named = { POLICY_IMAGE, "bb", "--image" };
	const struct policy_setting detected = { POLICY_IMAGE, "bb", "detected", 0,
						 POLICY_ORIGIN_DETECTED };
	const struct policy_setting yes = { POLICY_IMAGE, "yes", "--host-image", POLICY_MAXIMUM },
				    no = { POLICY_IMAGE, "no", "--no-host-image", POLICY_MAXIMUM };
	const struct {
		const struct policy_setting *server, *use;
		bool is_allowed;
	} rows[] = {
		{ NULL, NULL, true },   { NULL, &no, false },      { &named, NULL, false },
		{ &named, &yes, true }, { &detected, NULL, true }, { &detected, &no, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		CLEANUP(policy_done) struct policy ceiling = { 0 }, p = { 0 };
		struct err e = { 0 };

		assert_int_equal(policy_resolve(NULL, 0, &caller, &p, &e), 0);
		assert_int_equal(policy_resolve(rows[i].server, rows[i].server != NULL, &caller,
						&ceiling, &e),
				 0);
		if (rows[i].use)
			assert_int_equal(ceiling_set_maximum(&ceiling, rows[i].use, &e), 0);
		assert_int_equal(ceiling_check(&p, &ceiling, NULL, NULL, &e),
				 rows[i].is_allowed ? 0 : -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_preset_fits_below_every_ceiling),
		cmocka_unit_test(a_caller_is_told_what_a_preset_does_not_get),
		cmocka_unit_test(a_default_is_no_ceiling_and_a_maximum_is),
		cmocka_unit_test(a_limit_that_no_update_changes_can_be_a_maximum),
		cmocka_unit_test(the_host_image_is_a_setting_of_its_own),
		cmocka_unit_test(every_field_has_its_ceiling),
		cmocka_unit_test(limits_can_only_be_lowered),
		cmocka_unit_test(no_limit_is_more_than_any),
		cmocka_unit_test(what_only_presets_give_is_held_as_well),
		cmocka_unit_test(what_the_ceiling_protects_stays_protected),
		cmocka_unit_test(lists_that_nobody_asked_for_are_cut_to_the_ceilings),
		cmocka_unit_test(an_image_must_not_name_a_registry_of_its_own),
		cmocka_unit_test(a_user_in_an_image_is_held_before_the_image_is_there),
		cmocka_unit_test(passing_the_environment_does_not_pass_its_secrets),
		cmocka_unit_test(a_more_specific_rule_does_not_undo_a_block),
		cmocka_unit_test(a_wildcard_around_a_blocked_name_leaves_it_blocked),
		cmocka_unit_test(where_all_is_denied_only_what_was_allowed_can_be),
		cmocka_unit_test(addresses_and_this_machine_are_the_ceilings_alone),
		cmocka_unit_test(what_the_ceiling_blocks_must_be_blocked),
		cmocka_unit_test(a_refusal_says_who_asks_for_what_and_who_forbids_it),
		cmocka_unit_test(everything_is_within_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
