/* test_egress - which rule takes precedence, and what no rule with a name can allow. */
#include "unit.h"

#include "base/buf.h"
#include "base/mem.h"
#include "policy/egress.h"

#include <stdio.h>

struct reply {
	bool is_allowed;
	enum egress_reason reason;
	const char *text; /* of the rule */
};

/* "allow *.example.org, block a.example" on top of a default. */
static void set_rules(struct egress *g, enum egress_action fallback, const char *rules)
{
	cleanup_free char *copy = mem_dup(rules);
	char *rest = copy;
	char *rule;
	struct err e;

	egress_set_fallback(g, fallback, "--network-policy");
	while ((rule = strsep(&rest, ","))) {
		enum egress_action action = EGRESS_BLOCK;

		rule += strspn(rule, " ");
		if (rule[0] == '\0')
			continue;
		if (strncmp(rule, "allow ", 6) == 0)
			action = EGRESS_ALLOW;
		if (egress_add(g, action, rule + 6, EGRESS_PATTERNS, "--rule", &e) < 0)
			fail_msg("'%s': %s", rule, e.msg);
	}
}

static struct reply reply_of(const struct egress_decision *d)
{
	assert_int_equal(d->rule != NULL, d->reason == EGRESS_BY_RULE);
	assert_true(d->reason != EGRESS_SPECIAL_ADDRESS || d->kind);
	return (struct reply){ d->is_allowed, d->reason, d->rule ? d->rule->text : "" };
}

static struct address parsed(const char *text)
{
	struct address a;

	if (!address_parse(text, &a))
		fail_msg("'%s' is not an address", text);
	return a;
}

/* Texts of rules are borrowed from them, so all checks run while the rules exist. */
static void expect_name(enum egress_action fallback, const char *rules, const char *name,
			uint16_t port, bool is_allowed, const char *rule)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct egress_decision d;
	struct reply r;

	set_rules(&g, fallback, rules);
	egress_decide_name(&g, name, port, &d);
	r = reply_of(&d);
	if (r.is_allowed != is_allowed || strcmp(r.text, rule) != 0)
		fail_msg("with '%s', %s:%u is %s by '%s'", rules, name ? name : "-", port,
			 r.is_allowed ? "allowed" : "blocked", r.text);
}

static void expect_address(enum egress_action fallback, const char *rules, const char *address,
			   uint16_t port, bool is_allowed, enum egress_reason reason)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct address a = parsed(address);
	struct egress_decision d;

	set_rules(&g, fallback, rules);
	egress_decide_address(&g, &a, port, EGRESS_NOT_OURS, &d);
	if (d.is_allowed != is_allowed || d.reason != reason)
		fail_msg("with '%s', %s:%u is %s for reason %u", rules, address, port,
			 d.is_allowed ? "allowed" : "blocked", d.reason);
}

static void expect_error(enum egress_action action, const char *pattern, enum egress_flags flags,
			 const char *words)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e = { 0 };

	if (egress_add(&g, action, pattern, flags, "--rule", &e) == 0)
		fail_msg("'%s' is taken", pattern);
	assert_int_equal(e.code, ERR_INVALID);
	assert_string_equal(e.msg, words);
	assert_int_equal(g.count, 0);
}

/* ---- names ---- */

static void without_rules_the_default_decides(void **state)
{
	(void)state;
	expect_name(EGRESS_ALLOW, "", "a.example", 443, true, "");
	expect_name(EGRESS_BLOCK, "", "a.example", 443, false, "");
	expect_name(EGRESS_ALLOW, "", NULL, 443, true, "");
	expect_name(EGRESS_BLOCK, "", NULL, 443, false, "");
}

static void an_empty_allowlist_allows_nothing(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };

	(void)state;
	egress_set_fallback(&g, EGRESS_BLOCK, "--network-policy");
	assert_false(egress_can_allow(&g, "a.example"));
	expect_address(EGRESS_BLOCK, "", "8.8.8.8", 443, false, EGRESS_BY_DEFAULT);
	expect_address(EGRESS_BLOCK, "", "2606:4700::1", 443, false, EGRESS_BY_DEFAULT);
}

/* From the most to the least specific, for the name "a.b.example" and port 443. */
static const char *const by_precedence[] = {
	"a.b.example:443", "a.b.example", "*.b.example:443", "*.b.example",
	"*.example:443",   "*.example",   "*:443",           "*",
};

static void the_more_specific_of_two_rules_wins_whatever_their_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(by_precedence); i++) {
		for (size_t k = i + 1; k < COUNT_OF(by_precedence); k++) {
			const char *strong = by_precedence[i], *weak = by_precedence[k];
			char rules[128];

			(void)snprintf(rules, sizeof(rules), "allow %s, block %s", strong, weak);
			expect_name(EGRESS_BLOCK, rules, "a.b.example", 443, true, strong);
			(void)snprintf(rules, sizeof(rules), "block %s, allow %s", strong, weak);
			expect_name(EGRESS_ALLOW, rules, "a.b.example", 443, false, strong);
			(void)snprintf(rules, sizeof(rules), "allow %s, block %s", weak, strong);
			expect_name(EGRESS_ALLOW, rules, "a.b.example", 443, false, strong);
			(void)snprintf(rules, sizeof(rules), "block %s, allow %s", weak, strong);
			expect_name(EGRESS_BLOCK, rules, "a.b.example", 443, true, strong);
		}
	}
}

static void every_rule_wins_over_the_default(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(by_precedence); i++) {
		char rules[64];

		(void)snprintf(rules, sizeof(rules), "allow %s", by_precedence[i]);
		expect_name(EGRESS_BLOCK, rules, "a.b.example", 443, true, by_precedence[i]);
		(void)snprintf(rules, sizeof(rules), "block %s", by_precedence[i]);
		expect_name(EGRESS_ALLOW, rules, "a.b.example", 443, false, by_precedence[i]);
	}
}

static void on_a_tie_block_wins(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(by_precedence); i++) {
		char rules[128];

		(void)snprintf(rules, sizeof(rules), "allow %s, block %s", by_precedence[i],
			       by_precedence[i]);
		expect_name(EGRESS_ALLOW, rules, "a.b.example", 443, false, by_precedence[i]);
		(void)snprintf(rules, sizeof(rules), "block %s, allow %s", by_precedence[i],
			       by_precedence[i]);
		expect_name(EGRESS_ALLOW, rules, "a.b.example", 443, false, by_precedence[i]);
	}
	expect_address(EGRESS_ALLOW, "allow 10.0.0.0/8, block 10.0.0.0/8", "10.1.1.1", 1, false,
		       EGRESS_BY_RULE);
	expect_address(EGRESS_ALLOW, "block 10.0.0.1:80, allow 10.0.0.1:80", "10.0.0.1", 80, false,
		       EGRESS_BY_RULE);
}

static void a_port_in_a_rule_is_that_port_only(void **state)
{
	(void)state;
	expect_name(EGRESS_BLOCK, "allow a.example:443", "a.example", 443, true, "a.example:443");
	expect_name(EGRESS_BLOCK, "allow a.example:443", "a.example", 80, false, "");
	expect_name(EGRESS_BLOCK, "allow *:443", "a.example", 444, false, "");
	expect_name(EGRESS_BLOCK, "allow *.example:65535", "a.example", 65535, true,
		    "*.example:65535");
	expect_name(EGRESS_BLOCK, "allow a.example", "a.example", 1, true, "a.example");
	expect_name(EGRESS_ALLOW, "block a.example:25", "a.example", 25, false, "a.example:25");
	expect_name(EGRESS_ALLOW, "block a.example:25", "a.example", 26, true, "");
	expect_address(EGRESS_BLOCK, "allow 8.8.8.8:53", "8.8.8.8", 53, true, EGRESS_BY_RULE);
	expect_address(EGRESS_BLOCK, "allow 8.8.8.8:53", "8.8.8.8", 54, false, EGRESS_BY_DEFAULT);
}

static void a_wildcard_is_subdomains_only_at_any_depth(void **state)
{
	static const char *const in[] = { "a.example.org", "a.b.c.d.example.org", "-.example.org" };
	static const char *const out[] = { "example.org",        "xexample.org",
					   "a.example.org.evil", "org",
					   "example.com",        "a.xexample.org",
					   "example.org.a.test" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(in); i++)
		expect_name(EGRESS_BLOCK, "allow *.example.org", in[i], 1, true, "*.example.org");
	for (size_t i = 0; i < COUNT_OF(out); i++)
		expect_name(EGRESS_BLOCK, "allow *.example.org", out[i], 1, false, "");
	expect_name(EGRESS_BLOCK, "allow *.example.org", NULL, 1, false, "");
}

static void an_exact_host_is_that_host_only(void **state)
{
	(void)state;
	expect_name(EGRESS_BLOCK, "allow example.org", "a.example.org", 1, false, "");
	expect_name(EGRESS_BLOCK, "allow example.org", "example.org.evil", 1, false, "");
	expect_name(EGRESS_BLOCK, "allow example.org", NULL, 1, false, "");
	expect_name(EGRESS_BLOCK, "allow EXAMPLE.org.", "example.org", 1, true, "example.org");
	expect_name(EGRESS_BLOCK, "allow bücher.example", "xn--bcher-kva.example", 1, true,
		    "xn--bcher-kva.example");
}

static void a_name_that_is_not_known_has_only_the_rules_for_everything(void **state)
{
	(void)state;
	expect_name(EGRESS_BLOCK, "allow *", NULL, 1, true, "*");
	expect_name(EGRESS_BLOCK, "allow *:2", NULL, 1, false, "");
	expect_name(EGRESS_ALLOW, "block *:2", NULL, 2, false, "*:2");
}

static void no_address_rule_speaks_about_a_name(void **state)
{
	(void)state;
	expect_name(EGRESS_BLOCK, "allow 0.0.0.0/0, allow ::/0", "a.example", 1, false, "");
	expect_name(EGRESS_ALLOW, "block 0.0.0.0/0", "a.example", 1, true, "");
}

/* ---- addresses ---- */

static void of_two_networks_the_longer_prefix_wins(void **state)
{
	static const char *const by_length[] = {
		"10.1.2.3:80", "10.1.2.3",   "10.1.2.0/24:80", "10.1.2.0/24", "10.1.0.0/16:80",
		"10.1.0.0/16", "10.0.0.0/8", "0.0.0.0/0:80",   "0.0.0.0/0",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(by_length); i++) {
		for (size_t k = i + 1; k < COUNT_OF(by_length); k++) {
			char rules[128];

			(void)snprintf(rules, sizeof(rules), "allow %s, block %s", by_length[i],
				       by_length[k]);
			expect_address(EGRESS_BLOCK, rules, "10.1.2.3", 80, true, EGRESS_BY_RULE);
			(void)snprintf(rules, sizeof(rules), "allow %s, block %s", by_length[k],
				       by_length[i]);
			expect_address(EGRESS_ALLOW, rules, "10.1.2.3", 80, false, EGRESS_BY_RULE);
		}
	}
}

static void a_rule_for_an_address_wins_over_rules_for_everything(void **state)
{
	(void)state;
	expect_address(EGRESS_BLOCK, "block *, allow 8.8.8.8", "8.8.8.8", 53, true, EGRESS_BY_RULE);
	expect_address(EGRESS_BLOCK, "block *:53, allow 8.8.0.0/16", "8.8.8.8", 53, true,
		       EGRESS_BY_RULE);
	expect_address(EGRESS_ALLOW, "allow *, block 8.8.8.8", "8.8.8.8", 53, false,
		       EGRESS_BY_RULE);
	expect_address(EGRESS_BLOCK, "allow *", "8.8.8.8", 53, true, EGRESS_BY_RULE);
	expect_address(EGRESS_BLOCK, "allow *:53", "8.8.8.8", 54, false, EGRESS_BY_DEFAULT);
	expect_address(EGRESS_BLOCK, "allow 2606:4700::/32", "2606:4700::1", 1, true,
		       EGRESS_BY_RULE);
	expect_address(EGRESS_BLOCK, "allow [2606:4700::/32]:2", "2606:4700::1", 1, false,
		       EGRESS_BY_DEFAULT);
}

/* A block by name does not stop a literal address, whose names are unknown. */
static void a_rule_for_a_name_says_nothing_about_an_address(void **state)
{
	(void)state;
	expect_address(EGRESS_ALLOW, "block a.example, block *.example", "8.8.8.8", 443, true,
		       EGRESS_BY_DEFAULT);
	expect_address(EGRESS_BLOCK, "allow a.example, allow *.example", "8.8.8.8", 443, false,
		       EGRESS_BY_DEFAULT);
}

static const char *const special[] = {
	"0.0.0.1",         "10.0.0.1",    "100.64.0.1",      "169.254.1.1",     "172.16.0.1",
	"192.0.0.1",       "192.0.2.1",   "192.88.99.1",     "192.168.0.1",     "198.18.0.1",
	"198.51.100.1",    "203.0.113.1", "224.0.0.1",       "255.255.255.255", "64:ff9b::808:808",
	"2001::1",         "2001:db8::1", "2002:808:808::1", "3fff::1",         "fc00::1",
	"fd12:3456::1",    "fe80::1",     "ff02::1",         "::8.8.8.8",       "::2",
	"::ffff:10.0.0.1",
};

static void no_name_and_no_default_opens_an_address_that_is_not_public(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(special); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		struct address a = parsed(special[i]);
		struct egress_decision d;

		expect_address(EGRESS_ALLOW, "allow *, allow *:80, allow a.example", special[i], 80,
			       false, EGRESS_SPECIAL_ADDRESS);
		set_rules(&g, EGRESS_ALLOW, "allow *, allow a.example:80");
		egress_decide_resolved(&g, &a, 80, EGRESS_NOT_OURS, &d);
		assert_false(d.is_allowed);
		assert_int_equal(d.reason, EGRESS_SPECIAL_ADDRESS);
	}
}

static void a_rule_for_addresses_opens_what_is_not_public(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(special); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		struct address a = parsed(special[i]);
		struct egress_decision d;
		char rules[128];

		(void)snprintf(rules, sizeof(rules), "allow %s", special[i]);
		expect_address(EGRESS_BLOCK, rules, special[i], 80, true, EGRESS_BY_RULE);
		expect_address(EGRESS_BLOCK, "allow 0.0.0.0/0, allow ::/0", special[i], 80, true,
			       EGRESS_BY_RULE);
		set_rules(&g, EGRESS_BLOCK, rules);
		egress_decide_resolved(&g, &a, 80, EGRESS_NOT_OURS, &d);
		assert_true(d.is_allowed);
	}
}

static void an_allowed_name_goes_to_any_public_address_that_is_not_blocked(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct address open = parsed("8.8.8.8"), closed = parsed("9.9.9.9");
	struct egress_decision d;

	(void)state;
	set_rules(&g, EGRESS_BLOCK, "block 9.9.9.0/24, block 8.8.8.8:25");
	egress_decide_resolved(&g, &open, 443, EGRESS_NOT_OURS, &d);
	assert_true(d.is_allowed);
	egress_decide_resolved(&g, &open, 25, EGRESS_NOT_OURS, &d);
	assert_false(d.is_allowed);
	egress_decide_resolved(&g, &closed, 443, EGRESS_NOT_OURS, &d);
	assert_false(d.is_allowed);
	assert_string_equal(d.rule->text, "9.9.9.0/24");
}

static void the_host_s_own_addresses_need_a_rule_for_addresses(void **state)
{
	CLEANUP(egress_done) struct egress closed = { 0 };
	CLEANUP(egress_done) struct egress open = { 0 };
	struct address a = parsed("8.8.8.8");
	struct egress_decision d;

	(void)state;
	set_rules(&closed, EGRESS_ALLOW, "allow *, allow *:80");
	egress_decide_address(&closed, &a, 80, EGRESS_OURS, &d);
	assert_false(d.is_allowed);
	assert_int_equal(d.reason, EGRESS_OWN_ADDRESS);
	egress_decide_resolved(&closed, &a, 80, EGRESS_OURS, &d);
	assert_false(d.is_allowed);
	assert_int_equal(d.reason, EGRESS_OWN_ADDRESS);
	set_rules(&open, EGRESS_BLOCK, "allow 8.8.8.8:80");
	egress_decide_address(&open, &a, 80, EGRESS_OURS, &d);
	assert_true(d.is_allowed);
	egress_decide_resolved(&open, &a, 80, EGRESS_OURS, &d);
	assert_true(d.is_allowed);
	egress_decide_address(&open, &a, 81, EGRESS_OURS, &d);
	assert_false(d.is_allowed);
}

static void an_address_of_unknown_owner_needs_a_rule_for_addresses(void **state)
{
	CLEANUP(egress_done) struct egress closed = { 0 };
	CLEANUP(egress_done) struct egress open = { 0 };
	struct address a = parsed("8.8.8.8");
	struct egress_decision d;

	(void)state;
	set_rules(&closed, EGRESS_ALLOW, "allow *, allow *:80");
	egress_decide_address(&closed, &a, 80, EGRESS_OWNER_UNKNOWN, &d);
	assert_false(d.is_allowed);
	assert_int_equal(d.reason, EGRESS_UNKNOWN_OWNER);
	egress_decide_resolved(&closed, &a, 80, EGRESS_OWNER_UNKNOWN, &d);
	assert_false(d.is_allowed);
	set_rules(&open, EGRESS_BLOCK, "allow 8.8.8.8:80");
	egress_decide_resolved(&open, &a, 80, EGRESS_OWNER_UNKNOWN, &d);
	assert_true(d.is_allowed);
}

/* ---- metadata ---- */

static const char *const metadata[] = { "169.254.169.254", "169.254.170.2", "100.100.100.200",
					"192.0.0.192",     "168.63.129.16", "fd00:ec2::254" };

static void only_its_exact_address_opens_a_metadata_service(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(metadata); i++) {
		char rules[128];

		expect_address(EGRESS_ALLOW, "allow *", metadata[i], 80, false, EGRESS_METADATA);
		expect_address(EGRESS_ALLOW, "allow 0.0.0.0/0, allow ::/0", metadata[i], 80, false,
			       EGRESS_METADATA);
		(void)snprintf(rules, sizeof(rules), "allow %s", metadata[i]);
		expect_address(EGRESS_BLOCK, rules, metadata[i], 80, true, EGRESS_BY_RULE);
		(void)snprintf(rules, sizeof(rules),
			       strchr(metadata[i], ':') ? "allow [%s]:80" : "allow %s:80",
			       metadata[i]);
		expect_address(EGRESS_BLOCK, rules, metadata[i], 80, true, EGRESS_BY_RULE);
		expect_address(EGRESS_BLOCK, rules, metadata[i], 81, false, EGRESS_METADATA);
	}
	expect_address(EGRESS_BLOCK, "allow 169.254.0.0/16", "169.254.169.254", 80, false,
		       EGRESS_METADATA);
	expect_address(EGRESS_BLOCK, "allow 169.254.169.254/31", "169.254.169.254", 80, false,
		       EGRESS_METADATA);
	expect_address(EGRESS_BLOCK, "allow 169.254.169.254, block 169.254.169.254:80",
		       "169.254.169.254", 80, false, EGRESS_BY_RULE);
	expect_address(EGRESS_ALLOW, "", "::ffff:169.254.169.254", 80, false, EGRESS_METADATA);
}

static void an_allowed_name_does_not_lead_to_a_metadata_service(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct address a = parsed("169.254.169.254");
	struct egress_decision d;

	(void)state;
	set_rules(&g, EGRESS_ALLOW, "allow a.example, allow 169.254.0.0/16");
	egress_decide_resolved(&g, &a, 80, EGRESS_NOT_OURS, &d);
	assert_false(d.is_allowed);
	assert_int_equal(d.reason, EGRESS_METADATA);
}

static void the_names_of_metadata_services_need_their_address_too(void **state)
{
	static const char *const names[] = { "metadata.google.internal", "metadata.goog",
					     "metadata", "instance-data",
					     "instance-data.ec2.internal" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		CLEANUP(egress_done) struct egress closed = { 0 };
		CLEANUP(egress_done) struct egress open = { 0 };
		struct egress_decision d;
		char rules[128];

		(void)snprintf(rules, sizeof(rules), "allow %s, allow *, allow 169.254.0.0/16",
			       names[i]);
		set_rules(&closed, EGRESS_ALLOW, rules);
		egress_decide_name(&closed, names[i], 80, &d);
		assert_false(d.is_allowed);
		assert_int_equal(d.reason, EGRESS_METADATA);
		assert_false(egress_can_allow(&closed, names[i]));
		set_rules(&open, EGRESS_ALLOW, "allow 169.254.169.254");
		egress_decide_name(&open, names[i], 80, &d);
		assert_true(d.is_allowed);
	}
}

/* ---- this machine ---- */

static void the_host_s_loopback_needs_its_name_and_the_port(void **state)
{
	static const char *const names[] = { EGRESS_HOST_NAME, "host.docker.internal",
					     "localhost" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		char rules[128];

		assert_true(egress_is_host_name(names[i]));
		(void)snprintf(rules, sizeof(rules), "allow %s:8080", names[i]);
		set_rules(&g, EGRESS_BLOCK, rules);
		for (size_t k = 0; k < COUNT_OF(names); k++) {
			struct egress_decision d;

			egress_decide_name(&g, names[k], 8080, &d);
			assert_true(d.is_allowed);
			assert_string_equal(d.rule->text, EGRESS_HOST_NAME ":8080");
			egress_decide_name(&g, names[k], 8081, &d);
			assert_false(d.is_allowed);
			assert_int_equal(d.reason, EGRESS_HOST_LOOPBACK);
			assert_true(egress_can_allow(&g, names[k]));
		}
		expect_error(EGRESS_ALLOW, names[i], EGRESS_PATTERNS,
			     i == 0 ? "'host.agentkernel.internal' is this machine: name the port "
				      "too (host.agentkernel.internal:8080)"
			     : i == 1 ? "'host.docker.internal' is this machine: name the port too "
					"(host.agentkernel.internal:8080)"
				      : "'localhost' is this machine: name the port too "
					"(host.agentkernel.internal:8080)");
	}
	assert_false(egress_is_host_name("a.localhost"));
	assert_false(egress_is_host_name("agentkernel.internal"));
}

static void no_wildcard_and_no_default_opens_the_host(void **state)
{
	static const char *const rules[] = {
		"",
		"allow *",
		"allow *:8080",
		"allow *.internal",
		"allow *.agentkernel.internal:8080",
		"allow *.docker.internal:8080",
		"allow 0.0.0.0/0",
		"allow host.agentkernel.internal:8081",
		"allow host.agentkernel.internal:8080, block host.agentkernel.internal:8080",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rules); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		struct egress_decision d;

		set_rules(&g, EGRESS_ALLOW, rules[i]);
		egress_decide_name(&g, EGRESS_HOST_NAME, 8080, &d);
		assert_false(d.is_allowed);
		egress_decide_name(&g, "localhost", 8080, &d);
		assert_false(d.is_allowed);
	}
}

static void the_host_can_be_blocked_without_a_port(void **state)
{
	(void)state;
	expect_name(EGRESS_ALLOW, "block localhost, allow localhost:80", EGRESS_HOST_NAME, 80, true,
		    EGRESS_HOST_NAME ":80");
	expect_name(EGRESS_ALLOW, "block localhost, allow localhost:80", EGRESS_HOST_NAME, 81,
		    false, EGRESS_HOST_NAME);
}

static void no_rule_opens_loopback_by_its_address(void **state)
{
	/* connecting to 0.0.0.0 or :: connects to the own loopback */
	static const char *const loopback[] = { "127.0.0.1",        "127.1.2.3", "::1",
						"::ffff:127.0.0.1", "0.0.0.0",   "::",
						"::ffff:0.0.0.0" };
	static const char words[] = "'%s': inside, loopback is the sandbox's own; a port of this "
				    "machine is host.agentkernel.internal:PORT";

	(void)state;
	for (size_t i = 0; i < COUNT_OF(loopback); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		struct address a = parsed(loopback[i]);
		struct egress_decision d;
		char expected[256];

		expect_address(EGRESS_ALLOW, "allow *, allow 0.0.0.0/0, allow ::/0", loopback[i],
			       80, false, EGRESS_HOST_LOOPBACK);
		set_rules(&g, EGRESS_ALLOW, "allow 0.0.0.0/0, allow ::/0, allow 126.0.0.0/7");
		egress_decide_resolved(&g, &a, 80, EGRESS_NOT_OURS, &d);
		assert_false(d.is_allowed);
		(void)snprintf(expected, sizeof(expected), words, loopback[i]);
		expect_error(EGRESS_ALLOW, loopback[i], EGRESS_PATTERNS, expected);
	}
	expect_address(EGRESS_ALLOW, "block 127.0.0.0/8", "127.0.0.1", 80, false, EGRESS_BY_RULE);
}

/* ---- lookups of names ---- */

static void a_name_is_looked_up_only_if_some_port_of_it_could_be_allowed(void **state)
{
	static const struct {
		enum egress_action fallback;
		const char *rules;
		const char *name;
		bool expected;
	} cases[] = {
		{ EGRESS_ALLOW, "", "a.example", true },
		{ EGRESS_BLOCK, "", "a.example", false },
		{ EGRESS_BLOCK, "allow a.example:443", "a.example", true },
		{ EGRESS_BLOCK, "allow *.example:443", "a.example", true },
		{ EGRESS_BLOCK, "allow *:443", "a.example", true },
		{ EGRESS_BLOCK, "allow *", "a.example", true },
		{ EGRESS_BLOCK, "allow b.example", "a.example", false },
		{ EGRESS_BLOCK, "allow 0.0.0.0/0", "a.example", false },
		{ EGRESS_ALLOW, "block a.example", "a.example", false },
		{ EGRESS_ALLOW, "block a.example, allow a.example:1", "a.example", true },
		{ EGRESS_ALLOW, "block a.example:1", "a.example", true },
		{ EGRESS_ALLOW, "block a.example, allow *:1", "a.example", false },
		{ EGRESS_ALLOW, "block *.example, allow a.example", "a.example", true },
		{ EGRESS_BLOCK, "allow *:1, block *.example:1", "a.example", false },
		{ EGRESS_BLOCK, "allow *:1, allow *:2, block *.example:1", "a.example", true },
		{ EGRESS_ALLOW, "allow *", EGRESS_HOST_NAME, false },
		{ EGRESS_BLOCK, "allow localhost:1", EGRESS_HOST_NAME, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };

		set_rules(&g, cases[i].fallback, cases[i].rules);
		if (egress_can_allow(&g, cases[i].name) != cases[i].expected)
			fail_msg("with '%s', %s %s", cases[i].rules, cases[i].name,
				 cases[i].expected ? "cannot be allowed" : "can be allowed");
	}
}

/* ---- parsing and formatting ---- */

static void a_pattern_has_one_normal_form(void **state)
{
	static const struct {
		const char *pattern, *text;
		enum egress_kind kind;
	} cases[] = {
		{ "Example.ORG.", "example.org", EGRESS_HOST },
		{ "example.org:0443", "example.org:443", EGRESS_HOST },
		{ "*.Example.org:443", "*.example.org:443", EGRESS_WILDCARD },
		{ "*", "*", EGRESS_ANY },
		{ "*:80", "*:80", EGRESS_ANY },
		{ "10.0.0.0/8", "10.0.0.0/8", EGRESS_NETWORK },
		{ "10.0.0.0/8:80", "10.0.0.0/8:80", EGRESS_NETWORK },
		{ "10.0.0.1", "10.0.0.1", EGRESS_NETWORK },
		{ "10.0.0.1/32", "10.0.0.1", EGRESS_NETWORK },
		{ "2001:DB8::1", "2001:db8::1", EGRESS_NETWORK },
		{ "[2001:db8::1]", "2001:db8::1", EGRESS_NETWORK },
		{ "[2001:db8::1]:80", "[2001:db8::1]:80", EGRESS_NETWORK },
		{ "[2001:db8::/32]:80", "[2001:db8::/32]:80", EGRESS_NETWORK },
		{ "2001:db8::/32", "2001:db8::/32", EGRESS_NETWORK },
		{ "::ffff:10.0.0.1", "10.0.0.1", EGRESS_NETWORK },
		{ "[::ffff:10.0.0.1]:80", "10.0.0.1:80", EGRESS_NETWORK },
		{ "default", "default", EGRESS_HOST },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		struct err e;

		assert_int_equal(egress_add(&g, EGRESS_ALLOW, cases[i].pattern, EGRESS_PATTERNS,
					    "--rule", &e),
				 0);
		assert_int_equal(g.count, 1);
		assert_string_equal(g.rules[0].text, cases[i].text);
		assert_string_equal(g.rules[0].origin, "--rule");
		assert_int_equal(g.rules[0].kind, cases[i].kind);
	}
}

static void a_wrong_pattern_is_refused_with_its_words_and_the_place(void **state)
{
	static const struct {
		const char *pattern, *words;
	} cases[] = {
		{ "", "an empty pattern" },
		{ "a.example:", "'a.example:': the port: '' is not a whole number" },
		{ "a.example:0", "'a.example:0': the port: number '0' is outside 1 to 65535" },
		{ "a.example:65536",
		  "'a.example:65536': the port: number '65536' is outside 1 to 65535" },
		{ "a.example:http", "'a.example:http': the port: 'http' is not a whole number" },
		{ "*:*", "'*:*': the port: '*' is not a whole number" },
		{ "https://a.example", "'https://a.example' is a URL, not a host "
				       "(leave out the scheme and the path)" },
		{ "a.example/x", "'a.example/x' is not an IP address or network" },
		{ "a b.example", "'a b.example': a space at character 2" },
		{ "me@a.example", "'me@a.example': an '@' (leave out the user) at character 3" },
		{ "a%.example", "'a%.example': a character that no host name has at character 2" },
		{ "a..example", "'a..example': an empty label at character 3" },
		{ "a.*.example", "'a.*.example': a '*' that is not a whole label at the start at "
				 "character 3" },
		{ "*x.example", "'*x.example': a '*' that is not a whole label at the start at "
				"character 1" },
		{ "*.a b", "'*.a b': a space at character 4" },
		{ "*.", "'*.': no name at character 3" },
		{ "*.*", "'*.*': a '*' that is not a whole label at the start at character 3" },
		{ "127.1", "'127.1': a number that is not an IP address at character 1" },
		{ "0x7f000001", "'0x7f000001': a number that is not an IP address at character 1" },
		{ "10.0.0.1/8", "'10.0.0.1/8' is an address within a network (use '10.0.0.0/8' "
				"for all of it)" },
		{ "[::1", "'[::1': after '[' come an IPv6 address, ']' and perhaps ':PORT'" },
		{ "[2001:db8::1]x",
		  "'[2001:db8::1]x': after '[' come an IPv6 address, ']' and perhaps ':PORT'" },
		{ "[a.example]:80",
		  "'[a.example]:80': after '[' come an IPv6 address, ']' and perhaps ':PORT'" },
		{ "[*]", "'[*]': after '[' come an IPv6 address, ']' and perhaps ':PORT'" },
		{ "[10.0.0.1]", "'[10.0.0.1]': after '[' come an IPv6 address, ']' and perhaps "
				"':PORT'" },
		{ "[]", "'[]': after '[' come an IPv6 address, ']' and perhaps ':PORT'" },
		{ "[2001:db8::1]:", "'[2001:db8::1]:': the port: '' is not a whole number" },
		{ "a:b:c", "'a:b:c' is not an IP address or network" },
		{ "\u00d7.example", "'\u00d7.example': a character with more than one reading "
				    "(write the name in its xn-- form) at character 1" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++)
		expect_error(EGRESS_ALLOW, cases[i].pattern, EGRESS_PATTERNS, cases[i].words);
}

static void a_list_is_separated_by_commas_and_every_part_counts(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(egress_add(&g, EGRESS_BLOCK, "a.example,*.b.example:1,10.0.0.0/8",
				    EGRESS_PATTERNS, "--rule", &e),
			 0);
	assert_int_equal(g.count, 3);
	assert_string_equal(g.rules[1].text, "*.b.example:1");
	assert_int_equal(g.rules[2].action, EGRESS_BLOCK);
	expect_error(EGRESS_ALLOW, ",a.example", EGRESS_PATTERNS, "an empty pattern");
	assert_int_equal(egress_add(&g, EGRESS_ALLOW, "c.example,", EGRESS_PATTERNS, "x", &e), -1);
	assert_string_equal(e.msg, "an empty pattern");
}

static void where_addresses_are_due_names_are_refused(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(egress_add(&g, EGRESS_ALLOW, "10.0.0.0/8,2001:db8::1", EGRESS_ADDRESSES,
				    "--allow-cidr", &e),
			 0);
	expect_error(EGRESS_ALLOW, "a.example", EGRESS_ADDRESSES,
		     "'a.example' is not an IP address or network");
	expect_error(EGRESS_ALLOW, "*", EGRESS_ADDRESSES, "'*' is not an IP address or network");
	expect_error(EGRESS_ALLOW, "*.example", EGRESS_ADDRESSES,
		     "'*.example' is not an IP address or network");
}

static void there_is_a_limit_to_rules(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e = { 0 };

	(void)state;
	for (unsigned i = 0; i < EGRESS_RULES_MAX; i++)
		assert_int_equal(egress_add(&g, EGRESS_ALLOW, "*", EGRESS_PATTERNS, "x", &e), 0);
	assert_int_equal(egress_add(&g, EGRESS_ALLOW, "*", EGRESS_PATTERNS, "x", &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(e.msg, "more than 1024 network rules");
}

static void rules_survive_being_written_and_read(void **state)
{
	static const char expected[] = "block\tdefault\t--network-policy\n"
				       "allow\ta.example:443\t--rule\n"
				       "block\t*.example\t--rule\n"
				       "allow\t*:80\t--rule\n"
				       "allow\t[2001:db8::/32]:80\t--rule\n"
				       "block\t10.0.0.0/8\t--rule\n"
				       "allow\thost.agentkernel.internal:1\t--rule\n"
				       "block\tdefault\t--rule\n";
	CLEANUP(egress_done) struct egress g = { 0 };
	CLEANUP(egress_done) struct egress back = { 0 };
	cleanup_buf struct buf text, again;
	struct err e;

	(void)state;
	set_rules(&g, EGRESS_BLOCK,
		  "allow A.example:443, block *.example, allow *:80, allow [2001:db8::/32]:80, "
		  "block 10.0.0.0/8, allow localhost:1, block default");
	buf_init(&text, EGRESS_TEXT_MAX_BYTES);
	buf_init(&again, EGRESS_TEXT_MAX_BYTES);
	egress_save(&g, &text);
	assert_string_equal(buf_text(&text), expected);
	assert_int_equal(egress_load(buf_text(&text), &back, &e), 0);
	assert_int_equal(back.count, g.count);
	egress_save(&back, &again);
	assert_string_equal(buf_text(&again), expected);
}

/* Compares every member, to detect a new one that was forgotten. */
static void expect_equal(const struct egress *a, const struct egress *b)
{
	assert_int_equal(a->fallback, b->fallback);
	assert_string_equal(a->fallback_origin, b->fallback_origin);
	assert_int_equal(a->count, b->count);
	for (unsigned i = 0; i < a->count; i++) {
		const struct egress_rule *r = &a->rules[i], *other = &b->rules[i];

		assert_int_equal(r->action, other->action);
		assert_int_equal(r->kind, other->kind);
		assert_int_equal(r->port, other->port);
		assert_int_equal(r->name != NULL, other->name != NULL);
		if (r->name)
			assert_string_equal(r->name, other->name);
		assert_memory_equal(&r->network, &other->network, sizeof(r->network));
		assert_string_equal(r->text, other->text);
		assert_string_equal(r->origin, other->origin);
	}
}

static const char all_kinds[] =
	"allow a.example, block a.example:443, allow *.example:8080, block *.sub.example, allow *, "
	"block *:25, allow 10.0.0.0/8:443, block 10.1.2.3, allow 93.184.216.34:80, allow ::/0, "
	"block 2001:db8::1, allow [2001:db8::/32]:80, allow 169.254.169.254, block 127.0.0.1, "
	"allow host.agentkernel.internal:8080, block localhost, allow default, allow 0.0.0.0/0, "
	"allow xn--bcher-kva.example";

static void every_part_of_every_rule_survives_being_written_and_read(void **state)
{
	for (int fallback = EGRESS_ALLOW; fallback <= EGRESS_BLOCK; fallback++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		CLEANUP(egress_done) struct egress back = { 0 };
		cleanup_buf struct buf text;
		struct err e;

		(void)state;
		set_rules(&g, (enum egress_action)fallback, all_kinds);
		g.rules[3].origin = "a b/agentkernel.toml:7 [network] allow";
		buf_init(&text, EGRESS_TEXT_MAX_BYTES);
		egress_save(&g, &text);
		if (egress_load(buf_text(&text), &back, &e) < 0)
			fail_msg("%s", e.msg);
		expect_equal(&g, &back);
	}
}

static void an_origin_cannot_become_a_rule(void **state)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	CLEANUP(egress_done) struct egress back = { 0 };
	cleanup_buf struct buf text;
	struct err e;

	(void)state;
	egress_set_fallback(&g, EGRESS_BLOCK, "x\nallow\t*\ty");
	assert_int_equal(egress_add(&g, EGRESS_BLOCK, "a.example", EGRESS_PATTERNS,
				    "dir\nallow\t*\tz\x7f/agentkernel.toml:1", &e),
			 0);
	buf_init(&text, EGRESS_TEXT_MAX_BYTES);
	egress_save(&g, &text);
	assert_int_equal(egress_load(buf_text(&text), &back, &e), 0);
	assert_int_equal(back.count, 1);
	assert_string_equal(back.fallback_origin, "x?allow?*?y");
	assert_string_equal(back.rules[0].origin, "dir?allow?*?z?/agentkernel.toml:1");
}

static void text_that_is_not_rules_is_refused(void **state)
{
	static const struct {
		const char *text, *words;
		enum err_code code;
	} cases[] = {
		{ "", "network rules without a default", ERR_CORRUPT },
		{ "allow\ta.example\tx\n", "network rules without a default", ERR_CORRUPT },
		{ "maybe\tdefault\tx\n", "a line that is not a network rule", ERR_CORRUPT },
		{ "allow\tdefault\n", "a line that is not a network rule", ERR_CORRUPT },
		{ "allow\tdefault\tx\ty\n", "a line that is not a network rule", ERR_CORRUPT },
		{ "allow\n", "a line that is not a network rule", ERR_CORRUPT },
		{ "allow\tdefault\tx\n\nallow\t*\tx\n", "a line that is not a network rule",
		  ERR_CORRUPT },
		{ "allow\tdefault\tx\nallow\ta b\tx\n", "'a b': a space at character 2",
		  ERR_INVALID },
		{ "allow\tdefault\tx\nallow\ta,b\tx\n",
		  "'a,b': a character that no host name has at character 2", ERR_INVALID },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		struct err e = { 0 };

		assert_int_equal(egress_load(cases[i].text, &g, &e), -1);
		assert_string_equal(e.msg, cases[i].words);
		assert_int_equal(e.code, cases[i].code);
		assert_int_equal(g.count, 0);
	}
}

/* ---- destinations as people type them ---- */

static void a_destination_is_a_name_or_an_address_with_or_without_a_port(void **state)
{
	static const struct {
		const char *text, *name, *address;
		uint16_t port;
	} cases[] = {
		{ "A.Example", "a.example", NULL, 0 },
		{ "a.example.:443", "a.example", NULL, 443 },
		{ "localhost:80", "localhost", NULL, 80 },
		{ "bücher.example", "xn--bcher-kva.example", NULL, 0 },
		{ "10.0.0.1", NULL, "10.0.0.1", 0 },
		{ "10.0.0.1:80", NULL, "10.0.0.1", 80 },
		{ "::1", NULL, "::1", 0 },
		{ "[2001:db8::1]:80", NULL, "2001:db8::1", 80 },
		{ "::ffff:10.0.0.1", NULL, "10.0.0.1", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_target_done) struct egress_target t = { 0 };
		struct err e;

		assert_int_equal(egress_parse_target(cases[i].text, &t, &e), 0);
		assert_int_equal(t.port, cases[i].port);
		assert_int_equal(t.name != NULL, cases[i].name != NULL);
		if (cases[i].name) {
			assert_string_equal(t.name, cases[i].name);
		} else {
			struct address a = parsed(cases[i].address);

			assert_true(address_is_equal(&a, &t.address));
		}
	}
}

static void what_is_no_destination_is_refused_with_its_words(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "", "no host" },
		{ "https://a.example", "'https://a.example' is a URL, not a host "
				       "(leave out the scheme and the path)" },
		{ "a.example:0", "'a.example:0': the port: number '0' is outside 1 to 65535" },
		{ "*.example", "'*.example': a '*' that is not a whole label at the start at "
			       "character 1" },
		{ "10.0.0.0/8", "'10.0.0.0/8': a '/' (leave out the scheme and the path) at "
				"character 9" },
		{ "127.1", "'127.1': a number that is not an IP address at character 1" },
		{ "-a.example", "'-a.example': a label that starts with '-' at character 1" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct egress_target t = { 0 };
		struct err e = { 0 };

		assert_int_equal(egress_parse_target(cases[i].text, &t, &e), -1);
		assert_int_equal(e.code, ERR_INVALID);
		assert_string_equal(e.msg, cases[i].words);
		assert_null(t.name);
	}
}

/* The shown order of rules is the order of their precedence. */
static void rules_are_shown_in_the_order_in_which_they_win(void **state)
{
	const struct egress_rule *order[2 * COUNT_OF(by_precedence)];
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e;

	(void)state;
	for (size_t i = COUNT_OF(by_precedence); i-- > 0;) {
		assert_int_equal(
			egress_add(&g, EGRESS_ALLOW, by_precedence[i], EGRESS_PATTERNS, "x", &e),
			0);
		assert_int_equal(
			egress_add(&g, EGRESS_BLOCK, by_precedence[i], EGRESS_PATTERNS, "x", &e),
			0);
	}
	egress_order(&g, order);
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		assert_string_equal(order[i]->text, by_precedence[i / 2]);
		assert_int_equal(order[i]->action, i % 2 ? EGRESS_ALLOW : EGRESS_BLOCK);
	}
}

/* ---- suggestions ---- */

static void a_rule_that_changes_nothing_is_found(void **state)
{
	static const struct {
		enum egress_action fallback;
		const char *rules;
		const char *idle; /* NULL: none */
	} cases[] = {
		{ EGRESS_ALLOW, "allow a.example", "a.example" },
		{ EGRESS_ALLOW, "allow 10.0.0.0/8, allow *.example", "*.example" },
		{ EGRESS_ALLOW, "allow *:80", "*:80" },
		{ EGRESS_BLOCK, "allow a.example", NULL },
		{ EGRESS_ALLOW, "", NULL },
		{ EGRESS_ALLOW, "allow 10.0.0.0/8", NULL },
		{ EGRESS_ALLOW, "allow localhost:80", NULL },
		{ EGRESS_ALLOW, "allow a.example, block *.example", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		const struct egress_rule *r;

		set_rules(&g, cases[i].fallback, cases[i].rules);
		r = egress_find_idle(&g);
		assert_int_equal(r != NULL, cases[i].idle != NULL);
		if (r)
			assert_string_equal(r->text, cases[i].idle);
	}
}

/* Checks egress_format_fix() for a connection that the rules deny. */
static void expect_fix(enum egress_action fallback, const char *rules, const char *name,
		       const char *address, uint16_t port, const char *fix)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	cleanup_buf struct buf out;
	struct egress_decision d;
	struct address a = { 0 };

	buf_init(&out, 1024);
	set_rules(&g, fallback, rules);
	if (address) {
		a = parsed(address);
		egress_decide_address(&g, &a, port, EGRESS_NOT_OURS, &d);
	} else {
		egress_decide_name(&g, name, port, &d);
	}
	egress_format_fix(&d, name, address ? &a : NULL, port, &out);
	assert_string_equal(buf_text(&out), fix);
}

static void the_option_that_would_allow_it_is_named(void **state)
{
	(void)state;
	expect_fix(EGRESS_BLOCK, "", "a.example", NULL, 443, "--allow-host a.example:443");
	expect_fix(EGRESS_BLOCK, "", "a.example", NULL, 0, "--allow-host a.example");
	expect_fix(EGRESS_BLOCK, "", NULL, "8.8.8.8", 53, "--allow-cidr 8.8.8.8:53");
	expect_fix(EGRESS_ALLOW, "", NULL, "10.0.0.1", 80, "--allow-cidr 10.0.0.1:80");
	expect_fix(EGRESS_ALLOW, "", NULL, "fd00::1", 80, "--allow-cidr [fd00::1]:80");
	expect_fix(EGRESS_ALLOW, "", NULL, "fd00::1", 0, "--allow-cidr fd00::1");
	expect_fix(EGRESS_ALLOW, "", NULL, "169.254.169.254", 80,
		   "--allow-cidr 169.254.169.254:80");
	expect_fix(EGRESS_ALLOW, "", "localhost", NULL, 80,
		   "--allow-host host.agentkernel.internal:80");
	expect_fix(EGRESS_ALLOW, "", "localhost", NULL, 0,
		   "--allow-host host.agentkernel.internal:PORT");
}

static void no_option_is_named_where_none_would_help(void **state)
{
	(void)state;
	expect_fix(EGRESS_ALLOW, "", "a.example", NULL, 443, "");
	expect_fix(EGRESS_ALLOW, "block a.example", "a.example", NULL, 443, "");
	expect_fix(EGRESS_BLOCK, "", NULL, NULL, 443, "");
	expect_fix(EGRESS_ALLOW, "", "metadata", NULL, 80, "");
	expect_fix(EGRESS_ALLOW, "", NULL, "127.0.0.1", 80, "");
	expect_fix(EGRESS_ALLOW, "block 10.0.0.0/8", NULL, "10.0.0.1", 80, "");
}

static void the_reason_is_told_in_words(void **state)
{
	static const struct {
		const char *rules, *name, *address;
		const char *words;
	} cases[] = {
		{ "allow a.example", "a.example", NULL, "rule 'a.example' (--rule)" },
		{ "", "a.example", NULL,
		  "no rule names it, and the default is deny (--network-policy)" },
		{ "", NULL, "10.0.0.1",
		  "a private address, which only a rule for addresses opens" },
		{ "", NULL, "169.254.169.254",
		  "a cloud's metadata service, which only a rule for its exact address opens" },
		{ "", "localhost", NULL,
		  "this machine, which only a rule for host.agentkernel.internal and the port "
		  "opens" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };
		cleanup_buf struct buf out;
		struct egress_decision d;
		struct address a;

		buf_init(&out, 1024);
		set_rules(&g, EGRESS_BLOCK, cases[i].rules);
		if (cases[i].address) {
			a = parsed(cases[i].address);
			egress_decide_address(&g, &a, 80, EGRESS_NOT_OURS, &d);
		} else {
			egress_decide_name(&g, cases[i].name, 80, &d);
		}
		egress_format_reason(&g, &d, &out);
		assert_string_equal(buf_text(&out), cases[i].words);
	}
}

static void rules_may_be_let_go_twice(void **state)
{
	struct egress g = { 0 };

	(void)state;
	egress_done(&g);
	set_rules(&g, EGRESS_BLOCK, "allow a.example");
	egress_done(&g);
	egress_done(&g);
	assert_int_equal(g.count, 0);
}

static void records_of_a_service_follow_the_rules_of_its_host(void **state)
{
	static const struct {
		enum egress_action fallback;
		const char *rules, *name;
		bool expected;
	} cases[] = {
		{ EGRESS_BLOCK, "allow a.example", "a.example", true },
		{ EGRESS_BLOCK, "allow a.example", "_mongodb._tcp.a.example", true },
		{ EGRESS_BLOCK, "allow a.example:27017", "_mongodb._tcp.a.example", true },
		{ EGRESS_BLOCK, "allow a.example", "b.a.example", false },
		{ EGRESS_BLOCK, "allow a.example", "_x.b.a.example", false },
		{ EGRESS_BLOCK, "allow a.example", "_x._y._z.a.example", false },
		{ EGRESS_BLOCK, "allow a.example", "_averyveryverylongword.a.example", false },
		{ EGRESS_BLOCK, "allow a.example", "_tcp.example", false },
		{ EGRESS_BLOCK, "allow *.example", "_x._tcp.a.example", true },
		{ EGRESS_BLOCK, "allow *.a.example", "_x._tcp.a.example", true },
		{ EGRESS_BLOCK, "allow _x._tcp.a.example", "_x._tcp.a.example", true },
		{ EGRESS_BLOCK, "allow _x._tcp.a.example", "_y._tcp.a.example", false },
		{ EGRESS_BLOCK, "allow *", "_x._tcp.a.example", true },
		/* the more specific rule takes precedence, as for connections */
		{ EGRESS_ALLOW, "block a.example", "_x._tcp.a.example", false },
		{ EGRESS_BLOCK, "allow *.example, block a.example", "_x._tcp.a.example", false },
		{ EGRESS_BLOCK, "block *.example, allow a.example", "_x._tcp.a.example", true },
		{ EGRESS_BLOCK, "allow a.example, block *.a.example", "_x._tcp.a.example", false },
		{ EGRESS_BLOCK, "allow a.example, block _x._tcp.a.example", "_x._tcp.a.example",
		  false },
		{ EGRESS_BLOCK, "block a.example, allow _x._tcp.a.example", "_x._tcp.a.example",
		  true },
		/* no rule with a name allows these */
		{ EGRESS_ALLOW, "", "_x._tcp.metadata.google.internal", false },
		{ EGRESS_ALLOW, "allow *.google.internal", "_x.metadata.google.internal", false },
		{ EGRESS_ALLOW, "", "_x._tcp.host.agentkernel.internal", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		CLEANUP(egress_done) struct egress g = { 0 };

		set_rules(&g, cases[i].fallback, cases[i].rules);
		if (egress_can_allow(&g, egress_records_name(&g, cases[i].name)) !=
		    cases[i].expected)
			fail_msg("'%s' with '%s'", cases[i].name, cases[i].rules);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_rules_the_default_decides),
		cmocka_unit_test(an_empty_allowlist_allows_nothing),
		cmocka_unit_test(the_more_specific_of_two_rules_wins_whatever_their_order),
		cmocka_unit_test(every_rule_wins_over_the_default),
		cmocka_unit_test(on_a_tie_block_wins),
		cmocka_unit_test(a_port_in_a_rule_is_that_port_only),
		cmocka_unit_test(a_wildcard_is_subdomains_only_at_any_depth),
		cmocka_unit_test(an_exact_host_is_that_host_only),
		cmocka_unit_test(a_name_that_is_not_known_has_only_the_rules_for_everything),
		cmocka_unit_test(no_address_rule_speaks_about_a_name),
		cmocka_unit_test(of_two_networks_the_longer_prefix_wins),
		cmocka_unit_test(a_rule_for_an_address_wins_over_rules_for_everything),
		cmocka_unit_test(a_rule_for_a_name_says_nothing_about_an_address),
		cmocka_unit_test(no_name_and_no_default_opens_an_address_that_is_not_public),
		cmocka_unit_test(a_rule_for_addresses_opens_what_is_not_public),
		cmocka_unit_test(an_allowed_name_goes_to_any_public_address_that_is_not_blocked),
		cmocka_unit_test(the_host_s_own_addresses_need_a_rule_for_addresses),
		cmocka_unit_test(an_address_of_unknown_owner_needs_a_rule_for_addresses),
		cmocka_unit_test(only_its_exact_address_opens_a_metadata_service),
		cmocka_unit_test(an_allowed_name_does_not_lead_to_a_metadata_service),
		cmocka_unit_test(the_names_of_metadata_services_need_their_address_too),
		cmocka_unit_test(the_host_s_loopback_needs_its_name_and_the_port),
		cmocka_unit_test(no_wildcard_and_no_default_opens_the_host),
		cmocka_unit_test(the_host_can_be_blocked_without_a_port),
		cmocka_unit_test(no_rule_opens_loopback_by_its_address),
		cmocka_unit_test(a_name_is_looked_up_only_if_some_port_of_it_could_be_allowed),
		cmocka_unit_test(a_pattern_has_one_normal_form),
		cmocka_unit_test(a_wrong_pattern_is_refused_with_its_words_and_the_place),
		cmocka_unit_test(a_list_is_separated_by_commas_and_every_part_counts),
		cmocka_unit_test(where_addresses_are_due_names_are_refused),
		cmocka_unit_test(there_is_a_limit_to_rules),
		cmocka_unit_test(rules_survive_being_written_and_read),
		cmocka_unit_test(every_part_of_every_rule_survives_being_written_and_read),
		cmocka_unit_test(an_origin_cannot_become_a_rule),
		cmocka_unit_test(text_that_is_not_rules_is_refused),
		cmocka_unit_test(a_destination_is_a_name_or_an_address_with_or_without_a_port),
		cmocka_unit_test(what_is_no_destination_is_refused_with_its_words),
		cmocka_unit_test(rules_are_shown_in_the_order_in_which_they_win),
		cmocka_unit_test(a_rule_that_changes_nothing_is_found),
		cmocka_unit_test(the_option_that_would_allow_it_is_named),
		cmocka_unit_test(no_option_is_named_where_none_would_help),
		cmocka_unit_test(the_reason_is_told_in_words),
		cmocka_unit_test(rules_may_be_let_go_twice),
		cmocka_unit_test(records_of_a_service_follow_the_rules_of_its_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
