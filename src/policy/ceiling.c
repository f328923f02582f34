/* ceiling - checks that one policy allows no more than another; see ceiling.h. */
#include "policy/ceiling.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "policy/environment.h"
#include "policy/policyimage.h"
#include "policy/policyshow.h"

#include <stdlib.h>
#include <string.h>

enum rule_kind {
	RULE_NONE,    /* not compared: a preset's name (mode, profile) or harmless (variables) */
	RULE_LIMIT,   /* uint64_t, 0 is no limit: at most the ceiling's value */
	RULE_GRANT,   /* bool, true allows more: only if the ceiling has it */
	RULE_WALL,    /* bool, true allows less: required if the ceiling has it */
	RULE_GUARD,   /* like RULE_WALL, but only with a workspace */
	RULE_SAME,    /* char *, NULL allows less: NULL or equal to the ceiling's */
	RULE_ONLY,    /* list: only names of the ceiling's list */
	RULE_AT_LEAST /* list: all names of the ceiling's list */
};

/* How a field is compared. Fields without a rule have a function each in is_field_within(). */
struct rule {
	enum rule_kind kind;
	size_t offset;
	uint64_t maximum; /* RULE_LIMIT, for callers of a server: maximum if no one set the
			   * field; 0: none */
};

static const struct rule rules[POLICY_FIELD_COUNT] = {
#define CEILING(id, kind, member) [POLICY_##id] = { kind, offsetof(struct policy, member), 0 },
#define NUMBER(id, name, kind, member, min, max, most)                                             \
	[POLICY_##id] = { RULE_LIMIT, offsetof(struct policy, member), most },
#include "policy/fields.def"
};

static const void *member_of(const struct policy *p, enum policy_field field)
{
	return (const char *)p + rules[field].offset;
}

static void *writable_member_of(struct policy *p, enum policy_field field)
{
	return (char *)p + rules[field].offset;
}

/* 0 means no limit. */
static bool is_limit_within(uint64_t value, uint64_t most)
{
	return most == 0 || (value != 0 && value <= most);
}

static bool is_text_within(const char *value, const char *most)
{
	return !value || (most && strcmp(value, most) == 0);
}

/* Is every name of `part` in `whole`? */
static bool is_list_within(char *const *part, char *const *whole)
{
	for (; part && *part; part++)
		if (!keyrows_list_has(whole, *part))
			return false;
	return true;
}

static bool has_mount(const struct policy *p, const struct policy_mount *m)
{
	for (unsigned i = 0; i < p->mount_count; i++)
		if (strcmp(p->mounts[i].source, m->source) == 0 &&
		    strcmp(p->mounts[i].target, m->target) == 0 &&
		    (m->is_read_only || !p->mounts[i].is_read_only))
			return true;
	return false;
}

static bool are_mounts_within(const struct policy *p, const struct policy *most)
{
	for (unsigned i = 0; i < p->mount_count; i++)
		if (!has_mount(most, &p->mounts[i]))
			return false;
	return true;
}

/* Returns a name that matches the pattern but that other rules hardly name; NULL: any name. */
static char *example_name(const struct egress_rule *r)
{
	if (r->kind == EGRESS_ANY)
		return NULL;
	return mem_format("%s%s", r->kind == EGRESS_WILDCARD ? "any-name-below." : "", r->name);
}

static bool has_rule(const struct egress *g, const struct egress_rule *r)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->rules[i].action == r->action && strcmp(g->rules[i].text, r->text) == 0)
			return true;
	return false;
}

/*
 * An address rule can open non-public addresses, which no name rule can, so it must also be one of
 * the ceiling's rules. A name rule is within the ceiling if the ceiling allows an example name at
 * that port; more specific rules of the ceiling apply in both policies.
 */
static bool is_rule_within(const struct egress_rule *r, const struct egress *most)
{
	cleanup_free char *name = NULL;
	struct egress_decision d;

	if (r->action == EGRESS_BLOCK || has_rule(most, r))
		return true;
	if (r->kind == EGRESS_NETWORK || (r->name && egress_is_host_name(r->name)))
		return false;
	name = example_name(r);
	/* without a port: check all named ports, and port 0 for those that no rule names */
	egress_decide_name(most, name, r->port, &d);
	for (unsigned i = 0; d.is_allowed && r->port == 0 && i < most->count; i++)
		if (most->rules[i].port)
			egress_decide_name(most, name, most->rules[i].port, &d);
	return d.is_allowed;
}

/* Returns the first rule that allows more than the ceiling, or NULL. */
static const struct egress_rule *find_rule_beyond(const struct policy *p, const struct policy *most)
{
	for (unsigned i = 0; p->has_network && i < p->egress.count; i++)
		if (!is_rule_within(&p->egress.rules[i], &most->egress))
			return &p->egress.rules[i];
	return NULL;
}

/* Every block rule of the ceiling must also be in the policy. */
static bool are_blocks_within(const struct policy *p, const struct policy *most)
{
	for (unsigned i = 0; p->has_network && i < most->egress.count; i++)
		if (most->egress.rules[i].action == EGRESS_BLOCK &&
		    !has_rule(&p->egress, &most->egress.rules[i]))
			return false;
	return true;
}

/* A caller's variable requested by name must be one that the ceiling would pass anyway. */
static bool are_variables_within(const struct policy *p, const struct policy *most)
{
	for (char *const *name = p->passed; name && *name; name++) {
		size_t len = strlen(*name);

		if (keyrows_list_has(most->passed, *name))
			continue;
		for (unsigned i = 0; i < p->env_count; i++)
			if (strncmp(p->env[i], *name, len) == 0 && p->env[i][len] == '=' &&
			    !environment_is_passed(most, p->env[i]))
				return false;
	}
	return true;
}

/* "1000", "1000:5": independent of the image's accounts. */
static bool is_number(const char *user)
{
	size_t digits = strspn(user, "0123456789");

	return digits > 0 && (user[digits] == '\0' || user[digits] == ':');
}

static bool is_root_number(const char *user)
{
	return is_number(user) && strspn(user, "0") == strspn(user, "0123456789");
}

/* Could the command run as root, judged before the image's accounts are known? */
static bool may_be_root(const struct policy *p)
{
	if (p->is_user_known || !p->user_text)
		return p->uid == 0;
	return !is_number(p->user_text) || is_root_number(p->user_text);
}

bool ceiling_allows_root(const struct policy *most)
{
	if (most->is_user_known || !most->user_text)
		return most->uid == 0;
	/* only the image knows who a name is: assume root only for the name "root" */
	return is_root_number(most->user_text) || strcmp(most->user_text, "root") == 0;
}

/* If the ceiling names a user, callers may not choose another. */
static bool is_user_within(const struct policy *p, const struct policy *most)
{
	if (most->user_text && p->user_text)
		return strcmp(p->user_text, most->user_text) == 0 || ceiling_allows_root(most);
	return !may_be_root(p) || ceiling_allows_root(most);
}

/* Does the reference name a registry? Pulling from one would tell its owner about us. */
static bool names_registry(const char *image)
{
	size_t len = strcspn(image, "/");

	if (image[len] == '\0')
		return false;
	return memchr(image, '.', len) || memchr(image, ':', len) ||
	       strncmp(image, "localhost/", len + 1) == 0;
}

/*
 * If the user named an image, `host` (the host's own programs) exceeds the ceiling, unless the user
 * allowed it. An image that was only detected is a default, not a ceiling: if it cannot be pulled,
 * the sandbox falls back to `host` and must stay usable.
 */
static bool is_host_within(const struct policy *most)
{
	if (most->host_use != POLICY_HOST_BY_DEFAULT)
		return most->host_use == POLICY_HOST_ALLOWED;
	return policy_is_host_image(most) || !policy_is_asked(most, POLICY_IMAGE);
}

static bool is_image_within(const struct policy *p, const struct policy *most)
{
	if (policy_is_host_image(p))
		return is_host_within(most);
	return strcmp(p->image, most->image) == 0 || !names_registry(p->image);
}

/* Compares the fields that have a rule in the table. */
static bool is_member_within(const struct policy *p, const struct policy *most,
			     enum policy_field field)
{
	const void *value = member_of(p, field), *ceiling = member_of(most, field);

	switch (rules[field].kind) {
	case RULE_LIMIT:
		return is_limit_within(*(const uint64_t *)value, *(const uint64_t *)ceiling);
	case RULE_GRANT:
		return !*(const bool *)value || *(const bool *)ceiling;
	case RULE_WALL:
		return *(const bool *)value || !*(const bool *)ceiling;
	case RULE_GUARD:
		return *(const bool *)value || !p->workspace || !*(const bool *)ceiling;
	case RULE_SAME:
		return is_text_within(*(char *const *)value, *(char *const *)ceiling);
	case RULE_ONLY:
		return is_list_within(*(char **const *)value, *(char **const *)ceiling);
	case RULE_AT_LEAST:
		return is_list_within(*(char **const *)ceiling, *(char **const *)value);
	case RULE_NONE:
		break;
	}
	return true;
}

static bool is_field_within(const struct policy *p, const struct policy *most,
			    enum policy_field field)
{
	switch (field) {
	case POLICY_IMAGE:
		return is_image_within(p, most);
	case POLICY_USER:
		return is_user_within(p, most);
	case POLICY_NETWORK_POLICY:
		return !p->has_network || p->egress.fallback == EGRESS_BLOCK ||
		       most->egress.fallback == EGRESS_ALLOW;
	case POLICY_ALLOW_HOST:
		return !find_rule_beyond(p, most);
	case POLICY_BLOCK_HOST:
		return are_blocks_within(p, most);
	case POLICY_MOUNT:
		return are_mounts_within(p, most);
	case POLICY_ENV:
		return are_variables_within(p, most);
	case POLICY_BANDWIDTH:
		return !p->has_network || is_member_within(p, most, field);
	default:
		return is_member_within(p, most, field);
	}
}

/* "profile: memory = '4 GiB' goes beyond '2 GiB' (default)" */
static void format_beyond(const struct policy *p, const struct policy *most,
			  enum policy_field field, struct buf *out)
{
	const struct egress_rule *rule = NULL;
	cleanup_buf struct buf asked;
	cleanup_buf struct buf allowed;

	buf_init(&asked, BUF_TEXT_MAX_BYTES);
	buf_init(&allowed, BUF_TEXT_MAX_BYTES);
	if (field == POLICY_ALLOW_HOST)
		rule = find_rule_beyond(p, most);
	if (rule)
		buf_add_text(&asked, rule->text);
	else
		policyshow_field(p, field, &asked);
	policyshow_field(most, field, &allowed);
	buf_addf(out, "%s: %s = '%.120s' goes beyond '%.120s' (%s)",
		 rule ? rule->origin : p->origin[field].text, policy_field_name(field),
		 buf_text(&asked), buf_text(&allowed), most->origin[field].text);
}

/* ---- maxima for callers above the defaults ---- */

void ceiling_raise(struct policy *most, uint64_t machine_bytes)
{
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		uint64_t maximum =
			field == POLICY_MEMORY ? machine_bytes / 2 : rules[field].maximum;
		enum policy_origin_kind kind = most->origin[field].kind;
		uint64_t *value = writable_member_of(most, field);

		if (rules[field].kind != RULE_LIMIT || !maximum || *value == 0 ||
		    *value >= maximum ||
		    (kind != POLICY_ORIGIN_NONE && kind != POLICY_ORIGIN_DERIVED))
			continue;
		*value = maximum;
		most->origin[field].text = CEILING_ORIGIN_MAXIMUM;
	}
}

int ceiling_set_maximum(struct policy *most, const struct policy_setting *s, struct err *e)
{
	if (s->field != POLICY_IMAGE)
		return policy_set_number(most, s, e);
	most->host_use = strcmp(s->text, "yes") == 0 || strcmp(s->text, "true") == 0
				 ? POLICY_HOST_ALLOWED
				 : POLICY_HOST_FORBIDDEN;
	return 0;
}

/* ---- lowering values of presets ---- */

/* Did the caller set this field itself? `network` counts as a preset even then. */
static bool is_callers_own(const struct policy *p, enum policy_field field)
{
	return p->origin[field].layer == POLICY_BY_CALLER && policy_is_asked(p, field) &&
	       field != POLICY_NETWORK;
}

static void keep_names(char ***list, char *const *known)
{
	char **kept = NULL;

	for (char *const *name = *list; name && *name; name++)
		if (keyrows_list_has(known, *name))
			(void)keyrows_list_add(&kept, *name);
	keyrows_list_free(list);
	*list = kept;
}

static void add_names(char ***list, char *const *more)
{
	for (; more && *more; more++)
		if (!keyrows_list_has(*list, *more))
			(void)keyrows_list_add(list, *more);
}

static void lower_member(struct policy *p, const struct policy *most, enum policy_field field)
{
	void *value = writable_member_of(p, field);
	const void *ceiling = member_of(most, field);

	switch (rules[field].kind) {
	case RULE_LIMIT:
		*(uint64_t *)value = *(const uint64_t *)ceiling;
		break;
	case RULE_GRANT:
		*(bool *)value = false;
		break;
	case RULE_WALL:
	case RULE_GUARD:
		*(bool *)value = true;
		break;
	case RULE_SAME:
		free(*(char **)value);
		*(char **)value = NULL;
		break;
	case RULE_ONLY:
		keep_names(value, *(char **const *)ceiling);
		break;
	case RULE_AT_LEAST:
		add_names(value, *(char **const *)ceiling);
		break;
	case RULE_NONE:
		break;
	}
}

/* The user comes from the profile, so the ceiling's profile replaces it. */
static void lower_user(struct policy *p, const struct policy *most)
{
	free(p->user_text);
	p->user_text = most->user_text ? mem_dup(most->user_text) : NULL;
	p->uid = most->uid;
	p->gid = most->gid;
	p->profile = most->profile;
	p->origin[POLICY_PROFILE] = most->origin[POLICY_PROFILE];
}

/* Removes variables of the server's environment that the ceiling does not pass. */
static void lower_variables(struct policy *p, const struct policy *most)
{
	char **beyond = NULL;
	unsigned kept = 0;

	for (char *const *name = p->passed; name && *name; name++)
		if (!keyrows_list_has(most->passed, *name))
			(void)keyrows_list_add(&beyond, *name);
	for (unsigned i = 0; i < p->env_count; i++) {
		cleanup_free char *name = mem_dup_bytes(p->env[i], strcspn(p->env[i], "="));

		if (keyrows_list_has(beyond, name) && !environment_is_passed(most, p->env[i]))
			free(p->env[i]);
		else
			p->env[kept++] = p->env[i];
	}
	p->env_count = kept;
	keep_names(&p->passed, most->passed);
	keyrows_list_free(&beyond);
}

static void lower_field(struct policy *p, const struct policy *most, enum policy_field field)
{
	switch (field) {
	case POLICY_USER:
		lower_user(p, most);
		break;
	case POLICY_NETWORK_POLICY:
		egress_set_fallback(&p->egress, EGRESS_BLOCK, most->origin[field].text);
		break;
	case POLICY_ALLOW_HOST:
		for (unsigned i = p->egress.count; i-- > 0;)
			if (!is_rule_within(&p->egress.rules[i], &most->egress))
				egress_remove(&p->egress, i);
		break;
	case POLICY_ENV:
		lower_variables(p, most);
		break;
	default:
		lower_member(p, most, field);
	}
}

/* Derives the dependent fields again after others were lowered. */
static int derive_again(struct policy *p, const struct policy *most, struct err *e)
{
	if (!p->is_workdir_asked) {
		free(p->workdir);
		p->workdir = NULL;
	}
	if (p->origin[POLICY_DISK].kind == POLICY_ORIGIN_DERIVED)
		p->disk_bytes = 0;
	if (policyimage_settle(p, e) < 0)
		return -1;
	if (!is_field_within(p, most, POLICY_DISK) && !is_callers_own(p, POLICY_DISK))
		lower_member(p, most, POLICY_DISK);
	return 0;
}

int ceiling_lower(struct policy *p, const struct policy *most, char ***ret_lowered, struct err *e)
{
	bool is_changed = false;

	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		bool is_callers = p->origin[field].layer == POLICY_BY_CALLER;
		cleanup_buf struct buf why;

		buf_init(&why, BUF_TEXT_MAX_BYTES);
		if (is_callers_own(p, field) || is_field_within(p, most, field))
			continue;
		format_beyond(p, most, field, &why);
		lower_field(p, most, field);
		if (!is_field_within(p, most, field))
			continue; /* no preset sets this field: ceiling_check() will refuse it */
		/* report only what the caller's presets set, not lowered defaults */
		if (is_callers)
			(void)keyrows_list_add(ret_lowered, buf_text(&why));
		p->origin[field] = most->origin[field];
		is_changed = true;
	}
	return is_changed ? derive_again(p, most, e) : 0;
}

const char *ceiling_find_rule(const struct policy *p, const struct policy *ceiling)
{
	const struct egress_rule *rule = find_rule_beyond(p, ceiling);

	return rule ? rule->text : NULL;
}

int ceiling_check(const struct policy *p, const struct policy *ceiling, const char *hint,
		  enum policy_field *ret_field, struct err *e)
{
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		cleanup_buf struct buf why;

		buf_init(&why, BUF_TEXT_MAX_BYTES);
		if (is_field_within(p, ceiling, field))
			continue;
		format_beyond(p, ceiling, field, &why);
		if (ret_field)
			*ret_field = field;
		return err_set(e, ERR_DENIED, "%s%s%s", buf_text(&why), hint ? "; " : "",
			       hint ? hint : "");
	}
	return 0;
}
