/* ceiling - does one policy allow nothing that another forbids? See ceiling.h. */
#include "policy/ceiling.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "policy/environment.h"
#include "policy/policyshow.h"

#include <stdlib.h>
#include <string.h>

struct limit {
	enum policy_field field;
	size_t offset;
};

#define LIMIT(field, member)                                                                       \
	{                                                                                          \
		field, offsetof(struct policy, member)                                             \
	}

static const struct limit limits[] = {
	LIMIT(POLICY_MEMORY, memory_bytes),
	LIMIT(POLICY_CPUS, cpus_milli),
	LIMIT(POLICY_PIDS, pids_count),
	LIMIT(POLICY_DISK, disk_bytes),
	LIMIT(POLICY_NOFILE, nofile_count),
	LIMIT(POLICY_FILE_SIZE, file_size_bytes),
	LIMIT(POLICY_IO_READ, io_read_bytes_per_s),
	LIMIT(POLICY_IO_WRITE, io_write_bytes_per_s),
	LIMIT(POLICY_BANDWIDTH, bandwidth_bytes_per_s),
	LIMIT(POLICY_TIMEOUT, timeout_ms),
	LIMIT(POLICY_CPU_TIME, cpu_time_ms),
};

/* 0 is no limit. */
static bool is_limit_within(uint64_t value, uint64_t most)
{
	return most == 0 || (value != 0 && value <= most);
}

static bool is_text_within(const char *value, const char *most)
{
	return !value || (most && strcmp(value, most) == 0);
}

/* Every name of `part` is in `whole`. */
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

/* A name that a pattern stands for and that no rule is likely to name; NULL: any. */
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
 * A rule for addresses opens what no name can, also those that are not public: it must be the
 * ceiling's own. A rule for names is fine if the ceiling allows such a name at that port; its own
 * rules below that name are more specific and hold in both.
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
	/* without a port it opens all of them: those that no rule names, which is 0, and the rest
	 */
	egress_decide_name(most, name, r->port, &d);
	for (unsigned i = 0; d.is_allowed && r->port == 0 && i < most->count; i++)
		if (most->rules[i].port)
			egress_decide_name(most, name, most->rules[i].port, &d);
	return d.is_allowed;
}

/* The first rule that opens what the ceiling does not; NULL: none does. */
static const struct egress_rule *find_rule_beyond(const struct policy *p, const struct policy *most)
{
	for (unsigned i = 0; p->has_network && i < p->egress.count; i++)
		if (!is_rule_within(&p->egress.rules[i], &most->egress))
			return &p->egress.rules[i];
	return NULL;
}

/* What the ceiling blocks by a rule stays blocked: rules are only ever added. */
static bool are_blocks_within(const struct policy *p, const struct policy *most)
{
	for (unsigned i = 0; p->has_network && i < most->egress.count; i++)
		if (most->egress.rules[i].action == EGRESS_BLOCK &&
		    !has_rule(&p->egress, &most->egress.rules[i]))
			return false;
	return true;
}

/* What of the caller's own variables is asked for by name would also go inside by itself. */
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

/* "1000", "1000:5": who that is, no image decides. */
static bool is_number(const char *user)
{
	size_t digits = strspn(user, "0123456789");

	return digits > 0 && (user[digits] == '\0' || user[digits] == ':');
}

static bool is_root_number(const char *user)
{
	return is_number(user) && strspn(user, "0") == strspn(user, "0123456789");
}

/* Could the command be root, as far as is known before the image is there? */
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
	/* who a name is, only an image knows: it is not taken for root unless that is the name */
	return is_root_number(most->user_text) || strcmp(most->user_text, "root") == 0;
}

/* Where the ceiling names a user, another may not be asked for. */
static bool is_user_within(const struct policy *p, const struct policy *most)
{
	if (most->user_text && p->user_text)
		return strcmp(p->user_text, most->user_text) == 0 || ceiling_allows_root(most);
	return !may_be_root(p) || ceiling_allows_root(most);
}

/* A registry of its own in the reference: pulling it would tell that registry about us. */
static bool names_registry(const char *image)
{
	size_t len = strcspn(image, "/");

	if (image[len] == '\0')
		return false;
	return memchr(image, '.', len) || memchr(image, ':', len) ||
	       strncmp(image, "localhost/", len + 1) == 0;
}

/*
 * This machine's own programs are not every image's: where the user has named an image, `host` goes
 * beyond it. An image that was only detected is a default and no ceiling: what cannot be pulled falls
 * back to `host`, and has to be usable then.
 */
static bool is_image_within(const struct policy *p, const struct policy *most)
{
	if (strcmp(p->image, most->image) == 0)
		return true;
	if (policy_is_host_image(p))
		return !policy_is_asked(most, POLICY_IMAGE);
	return !names_registry(p->image);
}

static bool is_field_within(const struct policy *p, const struct policy *most,
			    enum policy_field field)
{
	switch (field) {
	case POLICY_IMAGE:
		return is_image_within(p, most);
	case POLICY_USER:
		return is_user_within(p, most);
	case POLICY_CAPABILITIES:
		return !p->has_capabilities || most->has_capabilities;
	case POLICY_TRACE:
		return !p->may_trace || most->may_trace;
	case POLICY_READ_ONLY:
		return p->is_read_only || !most->is_read_only;
	case POLICY_NETWORK:
		return !p->has_network || most->has_network;
	case POLICY_NETWORK_POLICY:
		return !p->has_network || p->egress.fallback == EGRESS_BLOCK ||
		       most->egress.fallback == EGRESS_ALLOW;
	case POLICY_ALLOW_HOST:
		return !find_rule_beyond(p, most);
	case POLICY_BLOCK_HOST:
		return are_blocks_within(p, most);
	case POLICY_WORKSPACE:
		return is_text_within(p->workspace, most->workspace);
	case POLICY_CLONE:
		return p->is_clone || !p->workspace || !most->is_clone;
	case POLICY_PROTECT:
		return is_list_within(most->protect, p->protect);
	case POLICY_MASK:
		return is_list_within(most->mask, p->mask);
	case POLICY_UNPROTECT:
		return is_list_within(p->unprotect, most->unprotect);
	case POLICY_PROTECT_NEW:
		return p->protects_strictly || !p->workspace || !most->protects_strictly;
	case POLICY_UNMASK:
		return is_list_within(p->unmask, most->unmask);
	case POLICY_HOME:
		return is_text_within(p->home, most->home);
	case POLICY_MOUNT:
		return are_mounts_within(p, most);
	case POLICY_ENV:
		return are_variables_within(p, most);
	case POLICY_ENVIRONMENT:
		return !p->passes_env || most->passes_env;
	case POLICY_ACCEPT_MISSING:
		return !p->accepts_no_landlock || most->accepts_no_landlock;
	default:
		break;
	}
	for (size_t i = 0; i < COUNT_OF(limits); i++)
		if (limits[i].field == field)
			return is_limit_within(
				*(const uint64_t *)((const char *)p + limits[i].offset),
				*(const uint64_t *)((const char *)most + limits[i].offset));
	return true; /* a name for others (mode, profile), or of no weight (variables, tmpfs) */
}

int ceiling_check(const struct policy *p, const struct policy *ceiling, const char *hint,
		  enum policy_field *ret_field, struct err *e)
{
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++) {
		const struct egress_rule *rule;
		cleanup_buf struct buf asked;
		cleanup_buf struct buf most;

		buf_init(&asked, BUF_TEXT_MAX_BYTES);
		buf_init(&most, BUF_TEXT_MAX_BYTES);
		if (is_field_within(p, ceiling, field))
			continue;
		rule = field == POLICY_ALLOW_HOST ? find_rule_beyond(p, ceiling) : NULL;
		if (rule)
			buf_add_text(&asked, rule->text);
		else
			policyshow_field(p, field, &asked);
		policyshow_field(ceiling, field, &most);
		if (ret_field)
			*ret_field = field;
		return err_set(e, ERR_DENIED, "%s: %s = '%.120s' goes beyond '%.120s' (%s)%s%s",
			       rule ? rule->origin : p->origin[field].text,
			       policy_field_name(field), buf_text(&asked), buf_text(&most),
			       ceiling->origin[field].text, hint ? "; " : "", hint ? hint : "");
	}
	return 0;
}
