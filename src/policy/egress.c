/*
 * egress - network rules and decisions; see egress.h.
 *
 * Theory of operation. Patterns are parsed once into rules in normal form. A decision scans all
 * rules and keeps the one with the highest rank: (kind, length of name or prefix, has a port).
 * There are few rules and one decision per connection, so a list is fast enough.
 *
 * A saved rule is one line: action, pattern, origin, separated by tabs. egress_load() parses it
 * with the same egress_add() that parses user input, so the two formats cannot diverge.
 */
#include "policy/egress.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/wall.h"
#include "policy/domain.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define RULES_FIRST 256u /* enough for a mode's rules: each larger block costs two system calls */
#define PORT_MAX 65535u

static const char *const host_names[] = { EGRESS_HOST_NAME, "host.docker.internal", "localhost" };

/* Names that clouds give to their metadata service, which hands out credentials. */
static const char *const metadata_names[] = {
	"metadata.google.internal",   "metadata.goog", "metadata", "instance-data",
	"instance-data.ec2.internal",
};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

bool egress_is_host_name(const char *name)
{
	return is_one_of(name, host_names, COUNT_OF(host_names));
}

void egress_done(struct egress *g)
{
	for (unsigned i = 0; i < g->count; i++)
		free(g->rules[i].text);
	free(g->rules);
	for (unsigned i = 0; i < g->origin_count; i++)
		free(g->origins[i]);
	free(g->origins);
	free(g->fallback_origin);
	*g = (struct egress){ 0 };
}

void egress_remove(struct egress *g, unsigned index)
{
	assert(index < g->count);
	free(g->rules[index].text);
	g->count--;
	memmove(g->rules + index, g->rules + index + 1, (g->count - index) * sizeof(*g->rules));
}

void egress_set_fallback(struct egress *g, enum egress_action action, const char *origin)
{
	free(g->fallback_origin);
	g->fallback = action;
	g->fallback_origin = mem_dup(origin);
}

/*
 * Returns the owned copy of an origin. Only the last one is compared: neighbours mostly share it.
 */
static const char *own_origin(struct egress *g, const char *origin)
{
	if (g->origin_count > 0 && strcmp(g->origins[g->origin_count - 1], origin) == 0)
		return g->origins[g->origin_count - 1];
	if ((g->origin_count & (g->origin_count - 1)) == 0)
		g->origins = mem_grow(g->origins, g->origin_count ? g->origin_count * 2 : 1,
				      sizeof(*g->origins));
	g->origins[g->origin_count] = mem_dup(origin);
	return g->origins[g->origin_count++];
}

/*
 * Sets text and name of a rule in one allocation and without printf, because over a hundred rules
 * of a mode are built at every start.
 */
static void set_texts(struct egress_rule *r, const char *prefix, const char *name, const char *port)
{
	size_t name_len = strlen(name), text_len = strlen(prefix) + name_len + strlen(port);
	char *text = mem_alloc(text_len + 1 + name_len + 1);

	(void)stpcpy(stpcpy(stpcpy(text, prefix), name), port);
	memcpy(text + text_len + 1, name, name_len + 1);
	r->text = text;
	r->name = r->kind == EGRESS_HOST || r->kind == EGRESS_WILDCARD ? text + text_len + 1 : NULL;
}

/* Appends an empty rule. */
static struct egress_rule *append_rule(struct egress *g)
{
	if (g->count == g->capacity) {
		g->capacity = g->capacity ? 2 * g->capacity : RULES_FIRST;
		g->rules = mem_grow(g->rules, g->capacity, sizeof(*g->rules));
	}
	return &g->rules[g->count++];
}

/* ---- parsing patterns ---- */

static int read_port(const char *pattern, const char *text, uint16_t *ret, struct err *e)
{
	uint64_t port = 0;

	if (parse_count(text, 1, PORT_MAX, &port, e) < 0)
		return err_wrap(e, "'%s': the port", pattern);
	*ret = (uint16_t)port;
	return 0;
}

/*
 * Splits off the port. A ':' starts a port if it follows a ']' or is the only one; two or more
 * without brackets are an IPv6 address.
 */
static int split_port(const char *pattern, char *text, uint16_t *ret_port, struct err *e)
{
	char *close = strchr(text, ']');
	char *colon = strrchr(text, ':');

	*ret_port = 0;
	if (text[0] == '[') {
		if (!close || (close[1] != '\0' && close[1] != ':') ||
		    !memchr(text, ':', (size_t)(close - text)))
			return err_set(
				e, ERR_INVALID,
				"'%s': after '[' come an IPv6 address, ']' and perhaps ':PORT'",
				pattern);
		if (close[1] == ':' && read_port(pattern, close + 2, ret_port, e) < 0)
			return -1;
		*close = '\0';
		memmove(text, text + 1, strlen(text));
		return 0;
	}
	if (!colon || strchr(text, ':') != colon)
		return 0;
	if (read_port(pattern, colon + 1, ret_port, e) < 0)
		return -1;
	*colon = '\0';
	return 0;
}

/* `normal` has room for DOMAIN_MAX_BYTES and a NUL. */
static int read_name(const char *pattern, const char *name, size_t offset, char *normal,
		     struct err *e)
{
	struct domain_problem problem;

	if (!domain_normalize(name, strlen(name), DOMAIN_TYPED, normal, &problem))
		return err_set(e, ERR_INVALID, "'%s': %s at character %zu", pattern, problem.why,
			       offset + problem.at + 1);
	return 0;
}

static int read_host(const char *pattern, const char *name, struct egress_rule *r, char *normal,
		     struct err *e)
{
	r->kind = EGRESS_HOST;
	if (read_name(pattern, name, 0, normal, e) < 0)
		return -1;
	if (!egress_is_host_name(normal))
		return 0;
	strcpy(normal, EGRESS_HOST_NAME); /* shorter than DOMAIN_MAX_BYTES */
	if (r->action == EGRESS_ALLOW && r->port == 0)
		return err_set(e, ERR_INVALID, "'%s' is this machine: name the port too (%s:8080)",
			       pattern, EGRESS_HOST_NAME);
	return 0;
}

/* A network of loopback addresses. Not "0.0.0.0/0", which only starts with such an address. */
static bool is_loopback(const struct address_network *n)
{
	return address_is_loopback(&n->base) &&
	       (n->prefix_bits == n->base.bits || !address_is_unspecified(&n->base));
}

static int read_address(const char *pattern, const char *text, struct egress_rule *r, struct err *e)
{
	r->kind = EGRESS_NETWORK;
	if (address_parse_network(text, &r->network, e) < 0)
		return -1;
	if (r->action == EGRESS_ALLOW && is_loopback(&r->network))
		return err_set(
			e, ERR_INVALID,
			"'%s': inside, loopback is the sandbox's own; a port of this machine "
			"is %s:PORT",
			pattern, EGRESS_HOST_NAME);
	return 0;
}

static int refuse_url(const char *pattern, struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "'%s' is a URL, not a host (leave out the scheme and the "
		       "path)",
		       pattern);
}

static int read_target(const char *pattern, const char *text, enum egress_flags flags,
		       struct egress_rule *r, char *normal, struct err *e)
{
	struct address ignored;

	if (flags == EGRESS_ADDRESSES || strchr(text, '/') || strchr(text, ':') ||
	    address_parse(text, &ignored))
		return read_address(pattern, text, r, e);
	if (strcmp(text, "*") == 0) {
		r->kind = EGRESS_ANY;
		return 0;
	}
	if (strncmp(text, "*.", 2) == 0) {
		r->kind = EGRESS_WILDCARD;
		return read_name(pattern, text + 2, 2, normal, e);
	}
	return read_host(pattern, text, r, normal, e);
}

int egress_parse_target(const char *text, struct egress_target *ret, struct err *e)
{
	cleanup_free char *copy = mem_dup(text);
	struct egress_target t = { 0 };
	char normal[DOMAIN_MAX_BYTES + 1];

	if (text[0] == '\0')
		return err_set(e, ERR_INVALID, "no host");
	if (strstr(text, "://"))
		return refuse_url(text, e);
	if (split_port(text, copy, &t.port, e) < 0)
		return -1;
	if (!address_parse(copy, &t.address)) {
		if (read_name(text, copy, 0, normal, e) < 0)
			return -1;
		t.name = mem_dup(normal);
	}
	*ret = t;
	return 0;
}

void egress_target_done(struct egress_target *t)
{
	free(t->name);
	*t = (struct egress_target){ 0 };
}

/* Sets the pattern in normal form and the name in it; `normal` is "" if it has no name. */
static void set_pattern(struct egress_rule *r, const char *normal)
{
	char network[ADDRESS_TEXT_MAX_BYTES];
	char port[8] = "", end[16];

	if (r->port)
		(void)snprintf(port, sizeof(port), ":%u", r->port);
	switch (r->kind) {
	case EGRESS_ANY:
		return set_texts(r, "*", "", port);
	case EGRESS_WILDCARD:
		return set_texts(r, "*.", normal, port);
	case EGRESS_HOST:
		return set_texts(r, "", normal, port);
	case EGRESS_NETWORK:
		(void)address_format_network(&r->network, network);
		(void)snprintf(end, sizeof(end), "]%s", port);
		return r->port && r->network.base.bits == 128 ? set_texts(r, "[", network, end)
							      : set_texts(r, "", network, port);
	}
	assert(!"a kind of rule without a form");
}

static int add_pattern(struct egress *g, enum egress_action action, const char *pattern,
		       enum egress_flags flags, const char *origin, struct err *e)
{
	cleanup_free char *text = NULL;
	char normal[DOMAIN_MAX_BYTES + 1] = "";
	struct egress_rule r = { .action = action };

	if (g->count == EGRESS_RULES_MAX)
		return err_set(e, ERR_LIMIT, "more than %u network rules", EGRESS_RULES_MAX);
	if (pattern[0] == '\0')
		return err_set(e, ERR_INVALID, "an empty pattern");
	if (strstr(pattern, "://"))
		return refuse_url(pattern, e);
	text = mem_dup(pattern);
	if (split_port(pattern, text, &r.port, e) < 0 ||
	    read_target(pattern, text, flags, &r, normal, e) < 0)
		return -1;
	set_pattern(&r, normal);
	r.origin = own_origin(g, origin);
	*append_rule(g) = r;
	return 0;
}

int egress_add(struct egress *g, enum egress_action action, const char *patterns,
	       enum egress_flags flags, const char *origin, struct err *e)
{
	cleanup_free char *copy = NULL;
	char *rest, *pattern;

	if (!strchr(patterns, ','))
		return add_pattern(g, action, patterns, flags, origin, e);
	rest = copy = mem_dup(patterns);
	while ((pattern = strsep(&rest, ",")))
		if (add_pattern(g, action, pattern, flags, origin, e) < 0)
			return -1;
	return 0;
}

int egress_allow_domain(struct egress *g, const char *domain, const char *origin, struct err *e)
{
	struct egress_rule below = { .action = EGRESS_ALLOW, .kind = EGRESS_WILDCARD };
	struct egress_rule itself = { .action = EGRESS_ALLOW, .kind = EGRESS_HOST };

	if (g->count + 2 > EGRESS_RULES_MAX)
		return err_set(e, ERR_LIMIT, "more than %u network rules", EGRESS_RULES_MAX);
	set_pattern(&below, domain);
	set_pattern(&itself, domain);
	below.origin = itself.origin = own_origin(g, origin);
	*append_rule(g) = below;
	*append_rule(g) = itself;
	return 0;
}

/* ---- deciding ---- */

static bool matches_name(const struct egress_rule *r, const char *name)
{
	size_t len, suffix_len;

	switch (r->kind) {
	case EGRESS_ANY:
		return true;
	case EGRESS_HOST:
		return name && strcmp(name, r->name) == 0;
	case EGRESS_WILDCARD:
		if (!name)
			return false;
		len = strlen(name);
		suffix_len = strlen(r->name);
		return len > suffix_len + 1 && name[len - suffix_len - 1] == '.' &&
		       strcmp(name + len - suffix_len, r->name) == 0;
	case EGRESS_NETWORK:
		return false;
	}
	return false;
}

/* The higher rank wins; equal ranks are a tie. */
static uint32_t rank_of(const struct egress_rule *r)
{
	uint32_t length = 0;

	if (r->kind == EGRESS_WILDCARD)
		length = (uint32_t)strlen(r->name);
	if (r->kind == EGRESS_NETWORK)
		length = r->network.prefix_bits;
	return (uint32_t)r->kind << 16 | length << 1 | (r->port != 0);
}

static const struct egress_rule *better(const struct egress_rule *a, const struct egress_rule *b)
{
	if (!a || rank_of(b) > rank_of(a))
		return b;
	return rank_of(b) == rank_of(a) && b->action == EGRESS_BLOCK ? b : a;
}

static const struct egress_rule *best_for_name(const struct egress *g, const char *name,
					       uint16_t port)
{
	const struct egress_rule *best = NULL;

	for (unsigned i = 0; i < g->count; i++) {
		const struct egress_rule *r = &g->rules[i];

		if ((r->port == 0 || r->port == port) && matches_name(r, name))
			best = better(best, r);
	}
	return best;
}

static const struct egress_rule *best_for_address(const struct egress *g, const struct address *a,
						  uint16_t port)
{
	const struct egress_rule *best = NULL;

	for (unsigned i = 0; i < g->count; i++) {
		const struct egress_rule *r = &g->rules[i];

		if (r->kind == EGRESS_NETWORK && (r->port == 0 || r->port == port) &&
		    address_is_in(a, &r->network))
			best = better(best, r);
	}
	return best;
}

static void by_rule(const struct egress *g, const struct egress_rule *rule,
		    struct egress_decision *ret)
{
	enum egress_action action = rule ? rule->action : g->fallback;

	*ret = (struct egress_decision){
		.is_allowed = action == EGRESS_ALLOW,
		.reason = rule ? EGRESS_BY_RULE : EGRESS_BY_DEFAULT,
		.rule = rule,
	};
}

static void denied(enum egress_reason reason, const char *kind, struct egress_decision *ret)
{
	*ret = (struct egress_decision){ .reason = reason, .kind = kind };
}

static bool is_exact_metadata(const struct egress_rule *r)
{
	return r->kind == EGRESS_NETWORK && r->action == EGRESS_ALLOW &&
	       r->network.prefix_bits == r->network.base.bits &&
	       address_is_metadata(&r->network.base);
}

static bool opens_metadata(const struct egress *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (is_exact_metadata(&g->rules[i]))
			return true;
	return false;
}

static void decide_host(const struct egress *g, uint16_t port, struct egress_decision *ret)
{
	const struct egress_rule *rule = best_for_name(g, EGRESS_HOST_NAME, port);

	if (!rule || rule->kind != EGRESS_HOST)
		return denied(EGRESS_HOST_LOOPBACK, NULL, ret);
	by_rule(g, rule, ret);
}

void egress_decide_name(const struct egress *g, const char *name, uint16_t port,
			struct egress_decision *ret)
{
	if (name && egress_is_host_name(name))
		return decide_host(g, port, ret);
	if (name && is_one_of(name, metadata_names, COUNT_OF(metadata_names)) && !opens_metadata(g))
		return denied(EGRESS_METADATA, NULL, ret);
	by_rule(g, best_for_name(g, name, port), ret);
}

/*
 * Decides by address rules alone. True if that is final, false if they do not object to the
 * address.
 */
static bool decide_by_address(const struct egress *g, const struct address *a, uint16_t port,
			      enum egress_owner owner, struct egress_decision *ret)
{
	const struct egress_rule *rule = best_for_address(g, a, port);
	const char *kind = address_special_kind(a);

	if (!wall_stands(WALL_GATE_ADDRESSES))
		return false;
	if (rule && rule->action == EGRESS_BLOCK) {
		by_rule(g, rule, ret);
	} else if (address_is_loopback(a)) {
		denied(EGRESS_HOST_LOOPBACK, NULL, ret);
	} else if (address_is_metadata(a) && !(rule && is_exact_metadata(rule))) {
		denied(EGRESS_METADATA, NULL, ret);
	} else if (rule) {
		by_rule(g, rule, ret);
	} else if (owner == EGRESS_OURS) {
		denied(EGRESS_OWN_ADDRESS, NULL, ret);
	} else if (owner == EGRESS_OWNER_UNKNOWN) {
		denied(EGRESS_UNKNOWN_OWNER, NULL, ret);
	} else if (kind) {
		denied(EGRESS_SPECIAL_ADDRESS, kind, ret);
	} else {
		return false;
	}
	return true;
}

void egress_decide_address(const struct egress *g, const struct address *a, uint16_t port,
			   enum egress_owner owner, struct egress_decision *ret)
{
	if (!decide_by_address(g, a, port, owner, ret))
		by_rule(g, best_for_name(g, NULL, port), ret);
}

void egress_decide_resolved(const struct egress *g, const struct address *a, uint16_t port,
			    enum egress_owner owner, struct egress_decision *ret)
{
	if (!decide_by_address(g, a, port, owner, ret))
		*ret = (struct egress_decision){ .is_allowed = true, .reason = EGRESS_BY_DEFAULT };
}

/* Only matching rules with a port can allow more than port 0, so most names cost one decision. */
bool egress_can_allow(const struct egress *g, const char *name)
{
	const char *matched = egress_is_host_name(name) ? EGRESS_HOST_NAME : name;
	struct egress_decision d;

	/* no rule has port 0, so this decides for every port that no rule names */
	egress_decide_name(g, name, 0, &d);
	if (d.is_allowed)
		return true;
	for (unsigned i = 0; i < g->count; i++) {
		if (g->rules[i].action != EGRESS_ALLOW || g->rules[i].port == 0 ||
		    !matches_name(&g->rules[i], matched))
			continue;
		egress_decide_name(g, name, g->rules[i].port, &d);
		if (d.is_allowed)
			return true;
	}
	return false;
}

static bool is_special_name(const char *name)
{
	return egress_is_host_name(name) ||
	       is_one_of(name, metadata_names, COUNT_OF(metadata_names));
}

const char *egress_records_name(const struct egress *g, const char *name)
{
	const char *host = domain_service_host(name);
	size_t host_len = strlen(host);
	bool has_host_rule = false;

	if (host == name || is_special_name(host))
		return host;
	for (unsigned i = 0; i < g->count; i++) {
		const struct egress_rule *r = &g->rules[i];

		/* "_x.host", "*.host" and longer patterns are more specific than "host" */
		if ((r->kind == EGRESS_HOST || r->kind == EGRESS_WILDCARD) &&
		    strlen(r->name) >= host_len && matches_name(r, name))
			return name;
		has_host_rule =
			has_host_rule || (r->kind == EGRESS_HOST && strcmp(r->name, host) == 0);
	}
	return has_host_rule ? host : name;
}

static int by_rank(const void *left, const void *right)
{
	const struct egress_rule *a = *(const struct egress_rule *const *)left;
	const struct egress_rule *b = *(const struct egress_rule *const *)right;
	uint32_t rank_a = rank_of(a), rank_b = rank_of(b);

	if (rank_a != rank_b)
		return rank_a < rank_b ? 1 : -1;
	return (int)b->action - (int)a->action;
}

void egress_order(const struct egress *g, const struct egress_rule **order)
{
	for (unsigned i = 0; i < g->count; i++)
		order[i] = &g->rules[i];
	if (g->count > 1)
		qsort(order, g->count, sizeof(*order), by_rank);
}

static bool has_block(const struct egress *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->rules[i].action == EGRESS_BLOCK)
			return true;
	return false;
}

const struct egress_rule *egress_find_idle(const struct egress *g)
{
	if (g->fallback != EGRESS_ALLOW || has_block(g))
		return NULL;
	for (unsigned i = 0; i < g->count; i++) {
		const struct egress_rule *r = &g->rules[i];

		if (r->kind != EGRESS_NETWORK &&
		    !(r->kind == EGRESS_HOST && egress_is_host_name(r->name)))
			return r;
	}
	return NULL;
}

/* ---- messages ---- */

void egress_format_reason(const struct egress *g, const struct egress_decision *d, struct buf *out)
{
	switch (d->reason) {
	case EGRESS_BY_RULE:
		buf_addf(out, "rule '%s' (%s)", d->rule->text, d->rule->origin);
		break;
	case EGRESS_BY_DEFAULT:
		buf_addf(out, "no rule names it, and the default is %s (%s)",
			 g->fallback == EGRESS_ALLOW ? "allow" : "deny",
			 g->fallback_origin ? g->fallback_origin : "default");
		break;
	case EGRESS_SPECIAL_ADDRESS:
		buf_addf(out, "%s, which only a rule for addresses opens", d->kind);
		break;
	case EGRESS_OWN_ADDRESS:
		buf_add_text(out, "an address of this machine, which only a rule for addresses "
				  "opens");
		break;
	case EGRESS_UNKNOWN_OWNER:
		buf_add_text(out, "the kernel does not tell whether it is an address of this "
				  "machine, so only a rule for addresses opens it");
		break;
	case EGRESS_METADATA:
		buf_add_text(out, "a cloud's metadata service, which only a rule for its exact "
				  "address opens");
		break;
	case EGRESS_HOST_LOOPBACK:
		buf_addf(out, "this machine, which only a rule for %s and the port opens",
			 EGRESS_HOST_NAME);
		break;
	}
}

static void format_address_fix(const struct address *a, uint16_t port, struct buf *out)
{
	char text[ADDRESS_TEXT_MAX_BYTES];

	if (address_is_loopback(a))
		return;
	buf_addf(out, a->bits == 128 && port ? "--allow-cidr [%s]" : "--allow-cidr %s",
		 address_format(a, text));
	if (port)
		buf_addf(out, ":%u", port);
}

void egress_format_fix(const struct egress_decision *d, const char *name,
		       const struct address *address, uint16_t port, struct buf *out)
{
	if (d->is_allowed || d->reason == EGRESS_BY_RULE)
		return;
	if (address) {
		format_address_fix(address, port, out);
		return;
	}
	if (!name || d->reason == EGRESS_METADATA)
		return;
	if (d->reason == EGRESS_HOST_LOOPBACK)
		name = EGRESS_HOST_NAME;
	buf_addf(out, "--allow-host %s", name);
	if (port)
		buf_addf(out, ":%u", port);
	else if (d->reason == EGRESS_HOST_LOOPBACK)
		buf_add_text(out, ":PORT");
}

static const char *action_word(enum egress_action action)
{
	return action == EGRESS_ALLOW ? "allow" : "block";
}

/* An origin may contain a file name with any byte, even one that ends a rule. */
static void save_line(enum egress_action action, const char *pattern, const char *origin,
		      struct buf *out)
{
	size_t start;

	buf_add_text(out, action_word(action));
	buf_add_text(out, "\t");
	buf_add_text(out, pattern);
	buf_add_text(out, "\t");
	start = out->len;
	buf_add_text(out, origin);
	for (size_t i = start; i < out->len; i++)
		if ((unsigned char)out->bytes[i] < ' ' || out->bytes[i] == 0x7f)
			out->bytes[i] = '?';
	buf_add_text(out, "\n");
}

void egress_save(const struct egress *g, struct buf *out)
{
	save_line(g->fallback, "default", g->fallback_origin ? g->fallback_origin : "default", out);
	for (unsigned i = 0; i < g->count; i++)
		save_line(g->rules[i].action, g->rules[i].text, g->rules[i].origin, out);
}

static int load_line(char *line, struct egress *g, struct err *e)
{
	char *rest = line;
	const char *action = strsep(&rest, "\t");
	const char *pattern = strsep(&rest, "\t");
	enum egress_action a = strcmp(action, "allow") == 0 ? EGRESS_ALLOW : EGRESS_BLOCK;

	if (!pattern || !rest || strchr(rest, '\t') || strcmp(action, action_word(a)) != 0)
		return err_set(e, ERR_CORRUPT, "a line that is not a network rule");
	if (strcmp(pattern, "default") == 0 && !g->fallback_origin) {
		egress_set_fallback(g, a, rest);
		return 0;
	}
	return add_pattern(g, a, pattern, EGRESS_PATTERNS, rest, e);
}

int egress_load(const char *text, struct egress *ret, struct err *e)
{
	cleanup_free char *copy = mem_dup(text);
	CLEANUP(egress_done) struct egress g = { .fallback = EGRESS_BLOCK };
	char *rest = copy;
	char *line;

	while ((line = strsep(&rest, "\n")) && (rest || *line))
		if (load_line(line, &g, e) < 0)
			return -1;
	if (!g.fallback_origin)
		return err_set(e, ERR_CORRUPT, "network rules without a default");
	*ret = g;
	g = (struct egress){ 0 };
	return 0;
}
