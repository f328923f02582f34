/*
 * policyfile - saves and loads a resolved policy; see policyfile.h.
 *
 * Hostile input: none by design, because only we write this file, in a directory that only the
 * caller can write. It is parsed strictly anyway: half a file must not become a policy with half
 * its restrictions.
 */
#include "policy/policyfile.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define ORIGIN_PREFIX "origin."
#define KIND_PREFIX "origin-kind."
#define END_KEY "end"

/* The parsed values before they become a policy. */
struct draft {
	struct policy policy;
	char *mode;
	char *backend; /* NULL: native, as in records of earlier builds */
	char *profile;
	char *egress;
	bool has_end;
};

#define ROW(key, kind, member) KEYROWS_ROW(struct draft, key, kind, member)

static const struct keyrows_row rows[] = {
	ROW("mode", KEYROWS_TEXT, mode),
	ROW("profile", KEYROWS_TEXT, profile),
	ROW("image", KEYROWS_TEXT, policy.image),
	ROW("backend", KEYROWS_TEXT, backend),
	ROW("user-text", KEYROWS_TEXT, policy.user_text),
	ROW("user-name", KEYROWS_TEXT, policy.user_name),
	ROW("uid", KEYROWS_ID, policy.uid),
	ROW("gid", KEYROWS_ID, policy.gid),
	ROW("capabilities", KEYROWS_FLAG, policy.has_capabilities),
	ROW("trace", KEYROWS_FLAG, policy.may_trace),
	ROW("read-only", KEYROWS_FLAG, policy.is_read_only),
	ROW("network", KEYROWS_FLAG, policy.has_network),
	ROW("passes-env", KEYROWS_FLAG, policy.passes_env),
	ROW("accepts-no-landlock", KEYROWS_FLAG, policy.accepts_no_landlock),
	ROW("workspace", KEYROWS_TEXT, policy.workspace),
	ROW("clone", KEYROWS_FLAG, policy.is_clone),
	ROW("protect", KEYROWS_LIST, policy.protect),
	ROW("unprotect", KEYROWS_LIST, policy.unprotect),
	ROW("protect-new-strict", KEYROWS_FLAG, policy.protects_strictly),
	ROW("stops-when-idle", KEYROWS_FLAG, policy.stops_when_idle),
	ROW("mask", KEYROWS_LIST, policy.mask),
	ROW("home", KEYROWS_TEXT, policy.home),
	ROW("unmask", KEYROWS_LIST, policy.unmask),
	ROW("workdir", KEYROWS_TEXT, policy.workdir),
	ROW("workdir-asked", KEYROWS_FLAG, policy.is_workdir_asked),
	ROW("home-dir", KEYROWS_TEXT, policy.home_dir),
	ROW("egress", KEYROWS_TEXT, egress),
	ROW("publish", KEYROWS_LIST, policy.publish),
	ROW("image-env", KEYROWS_LIST, policy.image_env),
	ROW("place", KEYROWS_LIST, policy.places),
	ROW("passed", KEYROWS_LIST, policy.passed),
#define NUMBER(id, name, kind, member, ...) ROW(name, KEYROWS_NUMBER, policy.member),
#include "policy/fields.def"
};

static keyrows_read_fn read_other;
static keyrows_write_fn write_other;

static const struct keyrows format = {
	.what = "policy",
	.version = 2, /* since 2: who set a value, by its kind */
	.rows = rows,
	.count = COUNT_OF(rows),
	.read_other = read_other,
	.write_other = write_other,
};

/* ---- saving ---- */

static void write_mounts(const struct policy *p, struct buf *out)
{
	for (unsigned i = 0; i < p->mount_count; i++) {
		keyrows_put(out, "mount-source", p->mounts[i].source);
		keyrows_put(out, "mount-target", p->mounts[i].target);
		if (p->mounts[i].is_read_only)
			keyrows_put(out, "mount-read-only", "yes");
	}
	for (unsigned i = 0; i < p->tmpfs_count; i++) {
		keyrows_put(out, "tmpfs-target", p->tmpfs[i].target);
		keyrows_put_number(out, "tmpfs-size", p->tmpfs[i].size_bytes);
	}
}

static const char *const kinds[] = {
	[POLICY_ORIGIN_SETTING] = "setting",   [POLICY_ORIGIN_NONE] = "default",
	[POLICY_ORIGIN_PRESET] = "preset",     [POLICY_ORIGIN_DERIVED] = "derived",
	[POLICY_ORIGIN_DETECTED] = "detected", [POLICY_ORIGIN_IMAGE] = "image",
};

static void write_other(const void *object, struct buf *out)
{
	const struct policy *p = &((const struct draft *)object)->policy;
	char key[64];

	for (unsigned i = 0; i < p->group_count; i++)
		keyrows_put_number(out, "group", p->groups[i]);
	write_mounts(p, out);
	for (unsigned i = 0; i < p->env_count; i++)
		keyrows_put(out, "env", p->env[i]);
	for (unsigned i = 0; i < POLICY_FIELD_COUNT; i++) {
		(void)snprintf(key, sizeof(key), ORIGIN_PREFIX "%s", policy_field_name(i));
		keyrows_put(out, key, p->origin[i].text);
		(void)snprintf(key, sizeof(key), KIND_PREFIX "%s", policy_field_name(i));
		if (p->origin[i].kind)
			keyrows_put(out, key, kinds[p->origin[i].kind]);
	}
	keyrows_put(out, END_KEY, "yes");
}

void policyfile_format(const struct policy *p, struct buf *out)
{
	struct draft d = {
		.policy = *p,
		.mode = (char *)mode_get(p->mode)->name,
		.backend = p->backend ? (char *)policy_backends[p->backend] : NULL,
		.profile = (char *)profile_get(p->profile)->name,
	};
	cleanup_buf struct buf egress;

	buf_init(&egress, EGRESS_TEXT_MAX_BYTES);
	egress_save(&p->egress, &egress);
	d.egress = (char *)buf_text(&egress);
	keyrows_format(&format, &d, out);
}

/* ---- loading ---- */

static int damaged(const char *key, struct err *e)
{
	return err_set(e, ERR_CORRUPT, "a policy's record has a wrong '%s'", key);
}

static bool find_field(const char *name, unsigned *ret)
{
	for (*ret = 0; *ret < POLICY_FIELD_COUNT; (*ret)++)
		if (strcmp(policy_field_name(*ret), name) == 0)
			return true;
	return false;
}

static int read_origin(struct policy *p, const char *name, const char *value, struct err *e)
{
	unsigned i;

	if (!find_field(name, &i))
		return damaged(ORIGIN_PREFIX, e);
	free(p->owned_origin[i]);
	p->owned_origin[i] = mem_dup(value);
	p->origin[i].text = p->owned_origin[i];
	p->origin[i].kind = POLICY_ORIGIN_SETTING; /* its kind follows */
	return 0;
}

static int read_kind(struct policy *p, const char *name, const char *value, struct err *e)
{
	unsigned i;

	for (unsigned kind = 0; find_field(name, &i) && kind < COUNT_OF(kinds); kind++) {
		if (strcmp(kinds[kind], value) != 0)
			continue;
		p->origin[i].kind = kind;
		return 0;
	}
	return damaged(KIND_PREFIX, e);
}

static int read_mount(struct policy *p, const char *key, const char *value, struct err *e)
{
	struct policy_mount *last = p->mount_count ? &p->mounts[p->mount_count - 1] : NULL;

	if (strcmp(key, "mount-source") == 0) {
		if (p->mount_count == POLICY_MOUNTS_MAX || value[0] != '/')
			return damaged(key, e);
		p->mounts[p->mount_count++] = (struct policy_mount){ .source = mem_dup(value) };
		return 0;
	}
	if (!last)
		return damaged(key, e);
	if (strcmp(key, "mount-read-only") == 0) {
		last->is_read_only = true;
		return 0;
	}
	if (strcmp(key, "mount-target") != 0)
		return 1;
	if (last->target || value[0] != '/')
		return damaged(key, e);
	last->target = mem_dup(value);
	return 0;
}

static int read_tmpfs(struct policy *p, const char *key, const char *value, struct err *e)
{
	if (strcmp(key, "tmpfs-target") == 0) {
		if (p->tmpfs_count == POLICY_TMPFS_MAX || value[0] != '/')
			return damaged(key, e);
		p->tmpfs[p->tmpfs_count++] = (struct policy_tmpfs){ .target = mem_dup(value) };
		return 0;
	}
	if (strcmp(key, "tmpfs-size") != 0)
		return 1;
	if (p->tmpfs_count == 0 || !keyrows_read_number(value, POLICY_DISK_MAX_BYTES,
							&p->tmpfs[p->tmpfs_count - 1].size_bytes))
		return damaged(key, e);
	return 0;
}

static int read_group(struct policy *p, const char *value, struct err *e)
{
	uint64_t gid = 0;

	if (p->group_count == POLICY_GROUPS_MAX || !keyrows_read_number(value, POLICY_ID_MAX, &gid))
		return damaged("group", e);
	p->groups[p->group_count++] = (uint32_t)gid;
	return 0;
}

static int read_env(struct policy *p, const char *value, struct err *e)
{
	if (p->env_count == POLICY_ENV_MAX || !strchr(value, '='))
		return damaged("env", e);
	p->env = mem_grow(p->env, p->env_count + 1, sizeof(*p->env));
	p->env[p->env_count++] = mem_dup(value);
	return 0;
}

static int read_other(void *object, const char *key, const char *value, struct err *e)
{
	struct draft *d = object;
	struct policy *p = &d->policy;

	if (strcmp(key, END_KEY) == 0) {
		d->has_end = true;
		return 0;
	}
	if (strcmp(key, "group") == 0)
		return read_group(p, value, e);
	if (strcmp(key, "env") == 0)
		return read_env(p, value, e);
	if (strncmp(key, "mount-", 6) == 0)
		return read_mount(p, key, value, e);
	if (strncmp(key, "tmpfs-", 6) == 0)
		return read_tmpfs(p, key, value, e);
	if (strncmp(key, ORIGIN_PREFIX, sizeof(ORIGIN_PREFIX) - 1) == 0)
		return read_origin(p, key + sizeof(ORIGIN_PREFIX) - 1, value, e);
	if (strncmp(key, KIND_PREFIX, sizeof(KIND_PREFIX) - 1) == 0)
		return read_kind(p, key + sizeof(KIND_PREFIX) - 1, value, e);
	return 1;
}

static bool is_absolute(const char *path)
{
	return path && path[0] == '/';
}

/* Checks everything that the rest of the program assumes about a policy. */
static int check(const struct draft *d, struct err *e)
{
	const struct policy *p = &d->policy;
	bool is_right = d->has_end && d->profile && d->egress && p->image && p->user_name &&
			is_absolute(p->workdir) && is_absolute(p->home_dir) &&
			(!p->workspace || is_absolute(p->workspace)) &&
			(!p->home || is_absolute(p->home)) && p->uid <= POLICY_ID_MAX &&
			p->gid <= POLICY_ID_MAX && p->disk_bytes > 0 && p->nofile_count > 0;

#define NUMBER(id, name, kind, member, min, max, ...) is_right = is_right && p->member <= (max);
#include "policy/fields.def"
	for (unsigned i = 0; i < p->mount_count; i++)
		is_right = is_right && p->mounts[i].target;
	if (!is_right)
		return err_set(e, ERR_CORRUPT, "a policy's record is incomplete");
	return 0;
}

static void draft_done(struct draft *d)
{
	policy_done(&d->policy);
	free(d->mode);
	free(d->backend);
	free(d->profile);
	free(d->egress);
}

int policyfile_parse(const char *bytes, size_t len, struct policy *ret, struct err *e)
{
	CLEANUP(draft_done) struct draft d = { 0 };

	for (unsigned i = 0; i < POLICY_FIELD_COUNT; i++) /* for a field that an older file lacks */
		d.policy.origin[i] = (struct policy_origin){ .text = POLICY_ORIGIN_DEFAULT,
							     .kind = POLICY_ORIGIN_NONE };
	if (keyrows_parse(&format, bytes, len, &d, e) < 0 || check(&d, e) < 0)
		return -1;
	if (!profile_find(d.profile, &d.policy.profile))
		return damaged("profile", e);
	if (d.mode && !mode_find(d.mode, &d.policy.mode))
		return damaged("mode", e);
	if (d.backend && !policy_find_backend(d.backend, &d.policy.backend))
		return err_set(e, ERR_UNSUPPORTED, "this build has no backend '%.60s'", d.backend);
	if (egress_load(d.egress, &d.policy.egress, e) < 0)
		return -1;
	d.policy.is_user_known = true; /* only complete policies are saved */
	*ret = d.policy;
	d.policy = (struct policy){ 0 };
	return 0;
}
