/* policyshow - formats the fields of a policy for people; see policyshow.h. */
#include "policy/policyshow.h"

#include "base/buf.h"
#include "base/parse.h"

#include <inttypes.h>
#include <string.h>

static void format_number(const struct policy *p, enum policy_field field, struct buf *out)
{
	uint64_t value = 0;
	enum policy_unit unit = policy_get_number(p, field, &value);
	char text[PARSE_FORMAT_MAX_BYTES];

	if (value == 0)
		buf_add_text(out, "no limit");
	else if (unit == POLICY_BYTES)
		buf_add_text(out, parse_format_bytes(value, text));
	else if (unit == POLICY_BYTES_PER_S)
		buf_addf(out, "%s/s", parse_format_bytes(value, text));
	else if (unit == POLICY_MS)
		buf_add_text(out, parse_format_duration(value, text));
	else if (unit == POLICY_THOUSANDTHS)
		buf_addf(out, "%g", (double)value / 1000);
	else
		buf_addf(out, "%" PRIu64, value);
}

static void format_mounts(const struct policy *p, struct buf *out)
{
	for (unsigned i = 0; i < p->mount_count; i++)
		buf_addf(out, "%s%s at %s%s", i ? ", " : "", p->mounts[i].source,
			 p->mounts[i].target, p->mounts[i].is_read_only ? " (read-only)" : "");
	if (p->mount_count == 0)
		buf_add_text(out, "none");
}

static void format_tmpfs(const struct policy *p, struct buf *out)
{
	char size[PARSE_FORMAT_MAX_BYTES];

	for (unsigned i = 0; i < p->tmpfs_count; i++) {
		buf_addf(out, "%s%s", i ? ", " : "", p->tmpfs[i].target);
		if (p->tmpfs[i].size_bytes)
			buf_addf(out, " (%s)", parse_format_bytes(p->tmpfs[i].size_bytes, size));
	}
	if (p->tmpfs_count == 0)
		buf_add_text(out, "none");
}

static void format_names(char *const *list, struct buf *out)
{
	for (char *const *name = list; name && *name; name++)
		buf_addf(out, "%s%s", name == list ? "" : ", ", *name);
	if (!list || !*list)
		buf_add_text(out, "none");
}

/* The built-in list is too long for a table: `policy show --json` has it. */
static void format_protected(const struct policy *p, struct buf *out)
{
	if (!p->workspace) {
		buf_add_text(out, "none");
		return;
	}
	buf_add_text(out, "the usual");
	for (char *const *name = p->protect; name && *name; name++)
		buf_addf(out, ", %s", *name);
}

/* Only the names, because values may be secrets. */
static void format_env(const struct policy *p, struct buf *out)
{
	for (unsigned i = 0; i < p->env_count; i++) {
		if (i)
			buf_add_text(out, ", ");
		buf_add(out, p->env[i], strcspn(p->env[i], "="));
	}
	if (p->env_count == 0)
		buf_add_text(out, "none");
}

static void format_rules(const struct policy *p, enum policy_field field, struct buf *out)
{
	bool is_allow = field == POLICY_ALLOW_HOST || field == POLICY_ALLOW_CIDR;
	bool is_cidr = field == POLICY_ALLOW_CIDR || field == POLICY_BLOCK_CIDR;
	unsigned shown = 0;

	for (unsigned i = 0; i < p->egress.count; i++) {
		const struct egress_rule *r = &p->egress.rules[i];

		if ((r->action == EGRESS_ALLOW) == is_allow &&
		    (r->kind == EGRESS_NETWORK) == is_cidr)
			buf_addf(out, "%s%s", shown++ ? ", " : "", r->text);
	}
	if (shown == 0)
		buf_add_text(out, "none");
}

void policyshow_field(const struct policy *p, enum policy_field field, struct buf *out)
{
	switch (field) {
	case POLICY_MODE:
		buf_add_text(out, mode_get(p->mode)->name);
		break;
	case POLICY_CLONE:
		buf_add_text(out, p->is_clone ? "yes" : "no");
		break;
	case POLICY_PROTECT:
		format_protected(p, out);
		break;
	case POLICY_UNPROTECT:
		format_names(p->unprotect, out);
		break;
	case POLICY_PROTECT_NEW:
		buf_add_text(out, p->protects_strictly ? "strict" : "watch");
		break;
	case POLICY_IDLE:
		buf_add_text(out, policy_idle_words[p->stops_when_idle]);
		break;
	case POLICY_MASK:
		format_names(p->mask, out);
		break;
	case POLICY_UNMASK:
		format_names(p->unmask, out);
		break;
	case POLICY_PROFILE:
		buf_add_text(out, profile_get(p->profile)->name);
		break;
	case POLICY_IMAGE:
		buf_add_text(out, p->image);
		break;
	case POLICY_BACKEND:
		buf_add_text(out, policy_backends[p->backend]);
		break;
	case POLICY_USER:
		if (!policy_is_host_image(p) && p->user_text)
			buf_addf(out, "%s (of the image)", p->user_text);
		else
			buf_addf(out, "%" PRIu32 ":%" PRIu32, p->uid, p->gid);
		break;
	case POLICY_CAPABILITIES:
		buf_add_text(out, p->has_capabilities ? "package managers' set" : "none");
		break;
	case POLICY_TRACE:
		buf_add_text(out, p->may_trace ? "own processes" : "no");
		break;
	case POLICY_READ_ONLY:
		buf_add_text(out, p->is_read_only ? "yes" : "no");
		break;
	case POLICY_NETWORK:
		buf_add_text(out, p->has_network ? "through the gate" : "none");
		break;
	case POLICY_NETWORK_POLICY:
		buf_add_text(out, !p->has_network                      ? "none"
				  : p->egress.fallback == EGRESS_ALLOW ? "allow"
								       : "deny");
		break;
	case POLICY_ALLOW_HOST:
	case POLICY_BLOCK_HOST:
	case POLICY_ALLOW_CIDR:
	case POLICY_BLOCK_CIDR:
		format_rules(p, field, out);
		break;
	case POLICY_PUBLISH:
		format_names(p->publish, out);
		break;
	case POLICY_WORKSPACE:
		buf_add_text(out, p->workspace ? p->workspace : "none");
		break;
	case POLICY_HOME:
		buf_addf(out, p->home ? "%s (read-only, credentials masked)" : "none", p->home);
		break;
	case POLICY_MOUNT:
		format_mounts(p, out);
		break;
	case POLICY_TMPFS:
		format_tmpfs(p, out);
		break;
	case POLICY_WORKDIR:
		buf_add_text(out, p->workdir);
		break;
	case POLICY_ENVIRONMENT:
		buf_add_text(out, p->passes_env ? "the caller's, less secrets" : "clean");
		break;
	case POLICY_ENV:
		format_env(p, out);
		break;
	case POLICY_ACCEPT_MISSING:
		buf_add_text(out, p->accepts_no_landlock ? "landlock" : "nothing");
		break;
	default:
		format_number(p, field, out);
	}
}
