/*
 * fuzz_rules - text for network rules, and rules for decisions.
 *
 * The first byte of an input selects how the rest is used. Even: it is a file of rules, as
 * egress_save() writes them. Odd: it is a list of patterns as people type them, one list per line;
 * the next two bits are the default and the action. Accepted rules must make the same decisions
 * after writing and parsing them, and no rule with a name may allow what only rules with addresses
 * may.
 */
#include "fuzz.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "policy/domain.h"
#include "policy/egress.h"

#include <stdio.h>
#include <string.h>

#define IS_TYPED 1u
#define IS_DEFAULT_ALLOW 2u
#define IS_ALLOW 4u
#define IS_ADDRESSES 8u

static const uint16_t ports[] = { 0, 1, 80, 443 };
#define FIX_PORT 443 /* one is enough */

/* Selects the denial whose suggested fix is checked: the check takes as long as everything else. */
static unsigned fix_countdown;

/* Targets for the rules: fixed ones, and those named in the rules. */
static const char *const names[] = {
	"a.example",
	"b.a.example",
	"example",
	"example.org",
	"www.example.org",
	EGRESS_HOST_NAME,
	"localhost",
	"metadata",
	"metadata.google.internal",
	"xn--bcher-kva.example",
};
static const char *const addresses[] = {
	"8.8.8.8",         "10.0.0.1",         "127.0.0.1",     "0.0.0.0",
	"169.254.169.254", "192.168.1.1",      "198.18.1.0",    "224.0.0.1",
	"100.64.0.1",      "168.63.129.16",    "::1",           "::",
	"fd00::1",         "64:ff9b::808:808", "2002:a00:1::1", "2001::1",
	"2606:4700::1111", "fe80::1",          "fd00:ec2::254",
};

static void check_rule(const struct egress_rule *r)
{
	char normal[DOMAIN_MAX_BYTES + 1];
	struct domain_problem problem;

	FUZZ_CHECK(r->text && r->origin);
	FUZZ_CHECK((r->name != NULL) == (r->kind == EGRESS_HOST || r->kind == EGRESS_WILDCARD));
	if (!r->name)
		return;
	FUZZ_CHECK(domain_normalize(r->name, strlen(r->name), DOMAIN_WIRE, normal, &problem));
	FUZZ_CHECK(strcmp(normal, r->name) == 0);
	FUZZ_CHECK(!(r->kind == EGRESS_HOST && r->action == EGRESS_ALLOW && r->port == 0 &&
		     egress_is_host_name(r->name)));
}

static void check_same(const struct egress_decision *a, const struct egress_decision *b)
{
	FUZZ_CHECK(a->is_allowed == b->is_allowed);
	FUZZ_CHECK(a->reason == b->reason);
	FUZZ_CHECK((a->rule != NULL) == (a->reason == EGRESS_BY_RULE));
	FUZZ_CHECK((a->rule != NULL) == (b->rule != NULL));
	if (a->rule)
		FUZZ_CHECK(strcmp(a->rule->text, b->rule->text) == 0);
}

static bool has_address_rule(const struct egress *g, const struct address *a)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->rules[i].kind == EGRESS_NETWORK && g->rules[i].action == EGRESS_ALLOW &&
		    address_is_in(a, &g->rules[i].network))
			return true;
	return false;
}

/* What must hold for every allowed address, whatever the rules are. */
static void check_address(const struct egress *g, const struct address *a, enum egress_owner owner,
			  const struct egress_decision *d)
{
	if (!d->is_allowed)
		return;
	FUZZ_CHECK(!address_is_loopback(a));
	if (address_special_kind(a) || owner != EGRESS_NOT_OURS || address_is_metadata(a))
		FUZZ_CHECK(d->rule && d->rule->kind == EGRESS_NETWORK && has_address_rule(g, a));
	if (address_is_metadata(a))
		FUZZ_CHECK(d->rule->network.prefix_bits == a->bits);
}

/* The suggested option must allow the target. */
static void check_fix(const struct egress *g, const struct egress_decision *d, const char *name,
		      const struct address *a, uint16_t port)
{
	CLEANUP(egress_done) struct egress more = { 0 };
	cleanup_buf struct buf fix, text;
	struct egress_decision after;
	const char *pattern;
	struct err e;

	buf_init(&fix, 4096);
	buf_init(&text, 4 * EGRESS_TEXT_MAX_BYTES);
	egress_format_fix(d, name, a, port, &fix);
	pattern = strchr(buf_text(&fix), ' ');
	if (!pattern || g->count == EGRESS_RULES_MAX)
		return;
	egress_save(g, &text);
	FUZZ_CHECK(egress_load(buf_text(&text), &more, &e) == 0);
	FUZZ_CHECK(egress_add(&more, EGRESS_ALLOW, pattern + 1, EGRESS_PATTERNS, "fix", &e) == 0);
	if (a)
		egress_decide_address(&more, a, port, EGRESS_NOT_OURS, &after);
	else
		egress_decide_name(&more, name, port, &after);
	FUZZ_CHECK(after.is_allowed);
}

static void check_name(const struct egress *g, const struct egress *back, const char *name)
{
	bool can_allow = false;

	for (size_t i = 0; i < COUNT_OF(ports); i++) {
		struct egress_decision d, again;

		egress_decide_name(g, name, ports[i], &d);
		egress_decide_name(back, name, ports[i], &again);
		check_same(&d, &again);
		can_allow = can_allow || d.is_allowed;
		if (d.is_allowed && name && egress_is_host_name(name))
			FUZZ_CHECK(d.rule && d.rule->kind == EGRESS_HOST && d.rule->port);
		if (ports[i] == FIX_PORT && fix_countdown-- == 0)
			check_fix(g, &d, name, NULL, ports[i]);
	}
	if (!name)
		return;
	FUZZ_CHECK(egress_can_allow(g, name) == egress_can_allow(back, name));
	FUZZ_CHECK(!can_allow || egress_can_allow(g, name));
}

static void check_one_address(const struct egress *g, const struct egress *back,
			      const struct address *a)
{
	for (size_t i = 0; i < COUNT_OF(ports); i++) {
		for (int owner = EGRESS_NOT_OURS; owner <= EGRESS_OWNER_UNKNOWN; owner++) {
			struct egress_decision d, again;

			egress_decide_address(g, a, ports[i], owner, &d);
			egress_decide_address(back, a, ports[i], owner, &again);
			check_same(&d, &again);
			check_address(g, a, owner, &d);
			if (owner == EGRESS_NOT_OURS && ports[i] == FIX_PORT &&
			    fix_countdown-- == 0)
				check_fix(g, &d, NULL, a, ports[i]);
			egress_decide_resolved(g, a, ports[i], owner, &d);
			check_address(g, a, owner, &d);
		}
	}
}

static void check_decisions(const struct egress *g, const struct egress *back)
{
	check_name(g, back, NULL);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		check_name(g, back, names[i]);
	for (size_t i = 0; i < COUNT_OF(addresses); i++) {
		struct address a;

		FUZZ_CHECK(address_parse(addresses[i], &a));
		check_one_address(g, back, &a);
	}
	for (unsigned i = 0; i < g->count && i < 4; i++) {
		if (g->rules[i].name)
			check_name(g, back, g->rules[i].name);
		else if (g->rules[i].kind == EGRESS_NETWORK)
			check_one_address(g, back, &g->rules[i].network.base);
	}
}

static void check_rules(const struct egress *g)
{
	CLEANUP(egress_done) struct egress back = { 0 };
	cleanup_buf struct buf text, again;
	struct err e;

	for (unsigned i = 0; i < g->count; i++)
		check_rule(&g->rules[i]);
	buf_init(&text, 4 * EGRESS_TEXT_MAX_BYTES);
	buf_init(&again, 4 * EGRESS_TEXT_MAX_BYTES);
	egress_save(g, &text);
	FUZZ_CHECK(egress_load(buf_text(&text), &back, &e) == 0);
	FUZZ_CHECK(back.count == g->count);
	egress_save(&back, &again);
	FUZZ_CHECK(strcmp(buf_text(&text), buf_text(&again)) == 0);
	if (g->count <= 16)
		check_decisions(g, &back);
	(void)egress_find_idle(g);
}

static void load(const char *text)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	struct err e = { 0 };

	if (egress_load(text, &g, &e) == 0) {
		check_rules(&g);
		return;
	}
	FUZZ_CHECK(e.code != ERR_NONE && e.msg[0]);
	FUZZ_CHECK(g.count == 0);
}

static void type(char *text, unsigned how)
{
	CLEANUP(egress_done) struct egress g = { 0 };
	char *line;

	egress_set_fallback(&g, how & IS_DEFAULT_ALLOW ? EGRESS_ALLOW : EGRESS_BLOCK, "typed");
	while ((line = strsep(&text, "\n"))) {
		struct err e = { 0 };

		if (egress_add(&g, how & IS_ALLOW ? EGRESS_ALLOW : EGRESS_BLOCK, line,
			       how & IS_ADDRESSES ? EGRESS_ADDRESSES : EGRESS_PATTERNS, "typed",
			       &e) < 0)
			FUZZ_CHECK(e.code != ERR_NONE && e.msg[0]);
		how ^= IS_ALLOW; /* the next line is for the other action */
	}
	check_rules(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_free char *text = NULL;

	if (size < 1)
		return 0;
	fix_countdown = data[size - 1] % 32u;
	text = mem_dup_bytes((const char *)data + 1, size - 1);
	if (data[0] & IS_TYPED)
		type(text, data[0]);
	else
		load(text);
	return 0;
}
