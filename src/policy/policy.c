/*
 * policy - resolving settings into one struct; see policy.h.
 *
 * Theory of operation. One block per field (policy/fields.def) defines how its text is parsed, its
 * limits, and the member that it sets. Numbers need no code of their own; the few fields with a
 * grammar (users, mounts, variables) have a reader each. Presets are applied before the single
 * settings of their layer, whatever their order on the command line. A mode's list entries
 * (domains, keys) are added at the end, by the last preset: so a preset that was replaced leaves
 * nothing behind, and variables that the user set are kept.
 */
#include "policy/policy.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "policy/mountspec.h"
#include "policy/policyimage.h"
#include "policy/publish.h"

#include <assert.h>
#include <string.h>

struct resolver {
	struct policy *policy;
	const struct policy_caller *caller;
	enum policy_layer layer; /* the layer being applied */
};

typedef int read_fn(struct resolver *r, const struct policy_setting *s, struct err *e);

enum value_kind { VALUE_OWN_READER, VALUE_BYTES, VALUE_RATE, VALUE_COUNT, VALUE_MILLI, VALUE_MS };

struct field {
	enum value_kind kind;
	size_t offset; /* of a uint64_t; not for VALUE_OWN_READER */
	uint64_t min, max;
	read_fn *read; /* VALUE_OWN_READER; NULL: only presets set it */
};

static read_fn read_accept_missing, read_backend, read_clone, read_env, read_home, read_idle,
	read_image, read_mode, read_mount, read_name, read_network, read_network_policy,
	read_profile, read_protect_new, read_publish, read_read_only, read_rule, read_tmpfs,
	read_user, read_workdir, read_workspace;

static const char *const names[] = {
#define FIELD(id, name) [POLICY_##id] = (name),
#include "policy/fields.def"
};

static const struct field fields[POLICY_FIELD_COUNT] = {
#define READER(id, function) [POLICY_##id] = { .read = (function) },
#define NUMBER(id, name, kind_, member, min_, max_, most)                                          \
	[POLICY_##id] = { kind_, offsetof(struct policy, member), min_, max_, NULL },
#include "policy/fields.def"
};

static void set_text(char **member, char *text)
{
	free(*member);
	*member = text;
}

static int read_number(struct policy *p, const struct field *f, const char *text, struct err *e)
{
	uint64_t *member = (uint64_t *)((char *)p + f->offset);

	switch (f->kind) {
	case VALUE_BYTES:
		return parse_bytes(text, f->min, f->max, member, e);
	case VALUE_RATE:
		return parse_rate(text, f->min, f->max, member, e);
	case VALUE_COUNT:
		return parse_count(text, f->min, f->max, member, e);
	case VALUE_MILLI:
		return parse_milli(text, f->min, f->max, member, e);
	case VALUE_MS:
		return parse_duration_ms(text, f->min, f->max, member, e);
	case VALUE_OWN_READER:
		break;
	}
	assert(!"a field with its own reader is not a number");
	return -1;
}

static int read_switch(const struct policy_setting *s, bool *ret, struct err *e)
{
	*ret = strcmp(s->text, "true") == 0;
	if (!*ret && strcmp(s->text, "false") != 0)
		return err_set(e, ERR_INVALID, "'%.60s' is neither true nor false", s->text);
	return 0;
}

/*
 * A caller of a server gets the server's own, already checked workspace or none (policy/ceiling).
 */
static int use_workspace(struct resolver *r, const char *dir, struct err *e)
{
	bool is_callers = r->layer == POLICY_BY_CALLER;
	char *path;

	if (is_callers && !r->caller->cwd)
		return 0;
	if (dir[0] != '/' && !r->caller->cwd)
		return err_set(e, ERR_INVALID, "the working directory cannot be read");
	path = path_absolute(r->caller->cwd ? r->caller->cwd : "/", dir);
	if (!path)
		return err_set(e, ERR_INVALID, "'%s' climbs above '/'", dir);
	if (!is_callers && mountspec_check_target(path, e) < 0) {
		free(path);
		return err_wrap(e, "'%s' cannot be a workspace", dir);
	}
	if (!is_callers && r->caller->home && path_is_within(r->caller->home, path)) {
		free(path);
		return err_set(e, ERR_INVALID,
			       "a workspace cannot hold your home directory and the keys in it (go "
			       "to a directory of the project first)");
	}
	set_text(&r->policy->workspace, path);
	return 0;
}

static int use_home(struct resolver *r, struct err *e)
{
	char *path;

	if (!r->caller->home)
		return 0;
	path = path_absolute("/", r->caller->home);
	if (!path)
		return err_set(e, ERR_INVALID, "HOME '%s' climbs above '/'", r->caller->home);
	if (r->layer != POLICY_BY_CALLER && mountspec_check_target(path, e) < 0) {
		free(path);
		return err_wrap(e, "HOME '%s' cannot be shown", r->caller->home);
	}
	set_text(&r->policy->home, path);
	return 0;
}

/* A preset resets all fields that presets define. */
static int apply_profile(struct resolver *r, enum profile_id id, const struct policy_origin *origin,
			 struct err *e)
{
	static const enum policy_field preset[] = {
		POLICY_MODE,        POLICY_PROFILE,   POLICY_USER,    POLICY_CAPABILITIES,
		POLICY_TRACE,       POLICY_READ_ONLY, POLICY_NETWORK, POLICY_NETWORK_POLICY,
		POLICY_WORKSPACE,   POLICY_HOME,      POLICY_MEMORY,  POLICY_CPUS,
		POLICY_ENVIRONMENT, POLICY_PIDS,
	};
	const struct profile *profile = profile_get(id);
	struct policy *p = r->policy;

	p->mode = MODE_NATIVE;
	p->profile = id;
	p->uid = p->gid = profile->runs_as_root ? 0 : POLICY_USER_ID;
	p->has_capabilities = profile->runs_as_root;
	p->may_trace = profile->may_trace;
	p->is_read_only = profile->is_read_only;
	p->has_network = profile->has_network;
	egress_set_fallback(&p->egress, EGRESS_ALLOW, origin->text);
	p->passes_env = profile->passes_env;
	p->memory_bytes = profile->memory_bytes;
	p->cpus_milli = profile->cpus_milli;
	p->pids_count = profile->pids_count;
	set_text(&p->user_text, NULL);
	set_text(&p->workspace, NULL);
	set_text(&p->home, NULL);
	for (size_t i = 0; i < COUNT_OF(preset); i++)
		p->origin[preset[i]] = *origin;
	if (profile->has_home && use_home(r, e) < 0)
		return err_wrap(e, "profile '%s'", profile->name);
	if (profile->has_workspace && use_workspace(r, ".", e) < 0)
		return err_wrap(e, "profile '%s'", profile->name);
	return 0;
}

int policy_refuse_choice(const char *what, const char *text, const char *const *choices,
			 struct err *e)
{
	cleanup_buf struct buf known;

	buf_init(&known, BUF_TEXT_MAX_BYTES);
	for (size_t i = 0; choices[i]; i++)
		buf_addf(&known, "%s%s", i == 0 ? "" : choices[i + 1] ? ", " : " or ", choices[i]);
	return err_set(e, ERR_INVALID, "no %s '%s' (use %s)", what, text, buf_text(&known));
}

static int read_profile(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	const struct policy_origin origin = { s->origin, s->layer, POLICY_ORIGIN_PRESET };
	enum profile_id id;

	if (s->text[0] >= '0' && s->text[0] <= '9') /* docker's habit */
		return err_set(e, ERR_INVALID, "no profile '%s' (a port is published with -P %s)",
			       s->text, s->text);
	if (!profile_find(s->text, &id))
		return policy_refuse_choice("profile", s->text, profile_names, e);
	return apply_profile(r, id, &origin, e);
}

static int read_mode(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	const struct policy_origin origin = { s->origin, s->layer, POLICY_ORIGIN_PRESET };
	enum mode_id id = MODE_NATIVE;
	const struct mode *mode = mode_find(s->text, &id);

	if (!mode)
		return policy_refuse_choice("mode", s->text, mode_names, e);
	if (apply_profile(r, mode->base, &origin, e) < 0)
		return -1;
	r->policy->mode = id;
	if (mode->memory_bytes)
		r->policy->memory_bytes = mode->memory_bytes;
	if (mode->has_workspace && use_workspace(r, ".", e) < 0)
		return err_wrap(e, "mode '%s'", mode->name);
	if (mode->domains[0]) {
		r->policy->has_network = true;
		egress_set_fallback(&r->policy->egress, EGRESS_BLOCK, mode->origin);
	}
	return 0;
}

static bool is_set(const struct policy *p, const char *name)
{
	size_t len = strlen(name);

	for (unsigned i = 0; i < p->env_count; i++)
		if (strncmp(p->env[i], name, len) == 0 && p->env[i][len] == '=')
			return true;
	return false;
}

/* Adds the list entries of the last preset. */
static int finish_mode(struct resolver *r, struct err *e)
{
	struct policy *p = r->policy;
	const struct mode *mode = mode_get(p->mode);
	const struct policy_origin *origin = &p->origin[POLICY_MODE];

	for (size_t i = 0; i < COUNT_OF(mode->domains) && mode->domains[i]; i++)
		for (const char *const *d = mode->domains[i]; *d && p->has_network; d++)
			if (egress_allow_domain(&p->egress, *d + strlen("*."), mode->origin, e) < 0)
				return -1;
	if (mode->domains[0] && p->has_network && policy_is_default(p, POLICY_ALLOW_HOST))
		p->origin[POLICY_ALLOW_HOST] = *origin;
	for (const char *const *name = mode->secrets; *name; name++) {
		const struct policy_setting secret = { .field = POLICY_ENV,
						       .text = *name,
						       .origin = origin->text };

		if (is_set(p, *name))
			continue;
		if (read_env(r, &secret, e) < 0)
			return -1;
		if (is_set(p, *name) && policy_is_default(p, POLICY_ENV))
			p->origin[POLICY_ENV] = *origin;
	}
	return 0;
}

static int read_accept_missing(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (strcmp(s->text, "landlock") != 0)
		return err_set(e, ERR_INVALID,
			       "'%s' is not a wall that can be missing (use landlock)", s->text);
	r->policy->accepts_no_landlock = true;
	return 0;
}

static int read_image(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (s->text[0] == '\0')
		return err_set(e, ERR_INVALID, "the name of the image is empty");
	set_text(&r->policy->image, mem_dup(s->text));
	return 0;
}

const char *const policy_backends[] = {
	[POLICY_BACKEND_NATIVE] = "native",
	[POLICY_BACKEND_COUNT] = NULL,
};

bool policy_find_backend(const char *name, enum policy_backend *ret)
{
	for (unsigned i = 0; policy_backends[i]; i++) {
		if (strcmp(name, policy_backends[i]) != 0)
			continue;
		*ret = (enum policy_backend)i;
		return true;
	}
	return false;
}

static int read_backend(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (!policy_find_backend(s->text, &r->policy->backend))
		return policy_refuse_choice("backend", s->text, policy_backends, e);
	return 0;
}

static int read_network(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	return read_switch(s, &r->policy->has_network, e);
}

static int read_network_policy(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	bool is_allow = strcmp(s->text, "allow") == 0;

	if (!is_allow && strcmp(s->text, "deny") != 0)
		return err_set(e, ERR_INVALID, "no network policy '%s' (use allow or deny)",
			       s->text);
	egress_set_fallback(&r->policy->egress, is_allow ? EGRESS_ALLOW : EGRESS_BLOCK, s->origin);
	return 0;
}

static int read_rule(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	bool is_allow = s->field == POLICY_ALLOW_HOST || s->field == POLICY_ALLOW_CIDR;
	bool is_cidr = s->field == POLICY_ALLOW_CIDR || s->field == POLICY_BLOCK_CIDR;

	return egress_add(&r->policy->egress, is_allow ? EGRESS_ALLOW : EGRESS_BLOCK, s->text,
			  is_cidr ? EGRESS_ADDRESSES : EGRESS_PATTERNS, s->origin, e);
}

static int read_read_only(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	return read_switch(s, &r->policy->is_read_only, e);
}

static int read_workspace(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (!s->text) {
		set_text(&r->policy->workspace, NULL);
		return 0;
	}
	return use_workspace(r, s->text[0] ? s->text : ".", e);
}

static int read_clone(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	return read_switch(s, &r->policy->is_clone, e);
}

static int read_home(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	bool is_on;

	if (read_switch(s, &is_on, e) < 0)
		return -1;
	set_text(&r->policy->home, NULL);
	return is_on ? use_home(r, e) : 0;
}

/* Parses a name below the workspace or the home: a path; for masks a pattern of a name. */
static int read_name(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	struct policy *p = r->policy;
	char ***list = s->field == POLICY_PROTECT     ? &p->protect
		       : s->field == POLICY_UNPROTECT ? &p->unprotect
		       : s->field == POLICY_MASK      ? &p->mask
						      : &p->unmask;
	cleanup_free char *absolute = path_absolute("/", s->text);

	if (s->text[0] == '/' || s->text[0] == '~')
		return err_set(e, ERR_INVALID,
			       "'%s' is not a name below the workspace or the home (leave out "
			       "what is before it)",
			       s->text);
	if (!absolute || strcmp(absolute, "/") == 0)
		return err_set(e, ERR_INVALID, "'%s' names nothing below a directory", s->text);
	if (keyrows_list_count(*list) >= POLICY_NAMES_MAX || !keyrows_list_add(list, absolute + 1))
		return err_set(e, ERR_LIMIT, "more than %u names", POLICY_NAMES_MAX);
	return 0;
}

static int read_publish(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	return publish_add(&r->policy->publish, s->text, e);
}

static int read_protect_new(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (strcmp(s->text, "strict") != 0 && strcmp(s->text, "watch") != 0)
		return err_set(e, ERR_INVALID, "'%s' is neither watch nor strict", s->text);
	r->policy->protects_strictly = strcmp(s->text, "strict") == 0;
	return 0;
}

const char *const policy_idle_words[] = { "pause", "stop", NULL };

static int read_idle(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (strcmp(s->text, policy_idle_words[0]) != 0 &&
	    strcmp(s->text, policy_idle_words[1]) != 0)
		return err_set(e, ERR_INVALID, "'%s' is neither pause nor stop", s->text);
	r->policy->stops_when_idle = strcmp(s->text, policy_idle_words[1]) == 0;
	return 0;
}

static int read_workdir(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	char *path;

	if (s->text[0] != '/')
		return err_set(e, ERR_INVALID, "'%s' is not an absolute path", s->text);
	path = path_absolute("/", s->text);
	if (!path)
		return err_set(e, ERR_INVALID, "'%s' climbs above '/'", s->text);
	set_text(&r->policy->workdir, path);
	r->policy->is_workdir_asked = true;
	return 0;
}

/* Only the image knows its accounts, so the text is resolved later: see policyimage.c. */
static int read_user(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	if (s->text[0] == '\0' || s->text[0] == ':')
		return err_set(e, ERR_INVALID, "'%s' does not start with a user", s->text);
	set_text(&r->policy->user_text, mem_dup(s->text));
	return 0;
}

static int read_mount(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	struct policy *p = r->policy;

	if (p->mount_count == POLICY_MOUNTS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u mounts", POLICY_MOUNTS_MAX);
	if (mountspec_parse(s->text, r->caller->cwd, &p->mounts[p->mount_count], e) < 0)
		return -1;
	p->mount_count++;
	return 0;
}

static int read_tmpfs(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	struct policy *p = r->policy;

	if (p->tmpfs_count == POLICY_TMPFS_MAX)
		return err_set(e, ERR_LIMIT, "more than %u tmpfs mounts", POLICY_TMPFS_MAX);
	if (mountspec_parse_tmpfs(s->text, &p->tmpfs[p->tmpfs_count], e) < 0)
		return -1;
	p->tmpfs_count++;
	return 0;
}

/* "NAME=value", or "NAME" for the caller's own value (ignored if the caller has none). */
static int read_env(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	struct policy *p = r->policy;
	size_t name_len = strcspn(s->text, "=");
	const char *entry = s->text;

	if (name_len == 0 || strcspn(s->text, " \t") < name_len)
		return err_set(e, ERR_INVALID, "'%s' does not start with a name (use NAME=VALUE)",
			       s->text);
	if (p->env_count == POLICY_ENV_MAX)
		return err_set(e, ERR_LIMIT, "more than %u variables", POLICY_ENV_MAX);
	if (s->text[name_len] == '\0') {
		entry = NULL;
		for (char *const *v = r->caller->environ_list; v && *v; v++)
			if (strncmp(*v, s->text, name_len) == 0 && (*v)[name_len] == '=')
				entry = *v;
		if (!entry)
			return 0;
		if (!keyrows_list_add(&p->passed, s->text))
			return err_set(e, ERR_LIMIT, "more than %u variables", POLICY_ENV_MAX);
	}
	p->env = mem_grow(p->env, p->env_count + 1, sizeof(*p->env));
	p->env[p->env_count++] = mem_dup(entry);
	return 0;
}

static bool is_preset(enum policy_field field)
{
	return field == POLICY_MODE || field == POLICY_PROFILE;
}

static int apply_setting(struct resolver *r, const struct policy_setting *s, struct err *e)
{
	const struct field *f = &fields[s->field];
	int ok;

	/* callers of the library and of workers name fields themselves */
	if (f->kind == VALUE_OWN_READER && !f->read)
		return err_set(e, ERR_INVALID, "%s: %s comes with a profile or mode", s->origin,
			       policy_field_name(s->field));
	if (!s->text && s->field != POLICY_WORKSPACE)
		return err_set(e, ERR_INVALID, "%s: %s needs a value", s->origin,
			       policy_field_name(s->field));
	ok = f->kind == VALUE_OWN_READER ? f->read(r, s, e) : read_number(r->policy, f, s->text, e);
	if (ok < 0)
		return err_wrap(e, "%s", s->origin);
	/* a preset's reader has set the origins of all its fields, itself included */
	if (!is_preset(s->field))
		r->policy->origin[s->field] =
			(struct policy_origin){ s->origin, s->layer, s->kind };
	return 0;
}

/* Applies the layer's mode, then its profile, then its other settings. */
static int apply_layer(struct resolver *r, const struct policy_setting *settings, size_t count,
		       struct err *e)
{
	static const enum policy_field presets[] = { POLICY_MODE, POLICY_PROFILE };

	for (size_t k = 0; k < COUNT_OF(presets); k++)
		for (size_t i = 0; i < count; i++)
			if (settings[i].layer == r->layer && settings[i].field == presets[k] &&
			    apply_setting(r, &settings[i], e) < 0)
				return -1;
	for (size_t i = 0; i < count; i++)
		if (settings[i].layer == r->layer && !is_preset(settings[i].field) &&
		    apply_setting(r, &settings[i], e) < 0)
			return -1;
	return 0;
}

/* A network rule without a network is an error, unless a later layer disabled the network. */
static int check_network(const struct resolver *r, struct err *e)
{
	static const enum policy_field needs_network[] = {
		POLICY_NETWORK_POLICY, POLICY_ALLOW_HOST, POLICY_BLOCK_HOST,
		POLICY_ALLOW_CIDR,     POLICY_BLOCK_CIDR, POLICY_BANDWIDTH,
	};
	const struct policy *p = r->policy;
	const struct policy_origin *off = &p->origin[POLICY_NETWORK];
	const char *who = NULL;

	for (size_t i = 0; i < COUNT_OF(needs_network); i++)
		if (policy_is_asked(p, needs_network[i]) &&
		    p->origin[needs_network[i]].layer >= off->layer)
			who = p->origin[needs_network[i]].text;
	if (p->has_network || !who)
		return 0;
	if (policy_is_asked(p, POLICY_NETWORK))
		return err_set(e, ERR_INVALID, "%s and %s exclude each other", who, off->text);
	return err_set(e, ERR_INVALID, "%s: this sandbox has no network (%s); add --network", who,
		       off->text);
}

/* --clone without a workspace is an error, with the same exception. */
static int check_clone(const struct resolver *r, struct err *e)
{
	struct policy *p = r->policy;

	if (!p->is_clone || p->workspace)
		return 0;
	if (p->origin[POLICY_CLONE].layer >= p->origin[POLICY_WORKSPACE].layer)
		return err_set(e, ERR_INVALID,
			       "%s: there is no workspace to clone (add --workspace)",
			       p->origin[POLICY_CLONE].text);
	p->is_clone = false;
	return 0;
}

bool policy_is_host_image(const struct policy *p)
{
	return strcmp(p->image, POLICY_HOST_IMAGE) == 0;
}

int policy_resolve(const struct policy_setting *settings, size_t count,
		   const struct policy_caller *caller, struct policy *ret, struct err *e)
{
	const struct policy_origin none = { POLICY_ORIGIN_DEFAULT, POLICY_BY_COMMAND,
					    POLICY_ORIGIN_NONE };
	CLEANUP(policy_done) struct policy p = { 0 };
	struct resolver r = { .policy = &p, .caller = caller, .layer = POLICY_BY_COMMAND };

	p.image = mem_dup(POLICY_HOST_IMAGE);
	for (unsigned field = 0; field < POLICY_FIELD_COUNT; field++)
		p.origin[field] = none;
	if (apply_profile(&r, PROFILE_MODERATE, &none, e) < 0)
		return -1;
	for (; r.layer <= POLICY_BY_CALLER; r.layer++)
		if (apply_layer(&r, settings, count, e) < 0)
			return -1;
	if (check_network(&r, e) < 0 || check_clone(&r, e) < 0 || finish_mode(&r, e) < 0)
		return -1;
	if (policyimage_settle(&p, e) < 0)
		return -1;
	*ret = p;
	p = (struct policy){ 0 };
	return 0;
}

static bool can_change(enum policy_field field)
{
	switch (field) {
#define LIVE(id, ...) case POLICY_##id:
#include "policy/fields.def"
		return true;
	default:
		return false;
	}
}

static void note_change(struct policy *p, const struct policy_setting *s)
{
	free(p->owned_origin[s->field]);
	p->owned_origin[s->field] = mem_dup(s->origin);
	p->origin[s->field] = (struct policy_origin){ .text = p->owned_origin[s->field],
						      .layer = POLICY_BY_COMMAND_LINE };
}

int policy_set_number(struct policy *p, const struct policy_setting *s, struct err *e)
{
	assert(fields[s->field].kind != VALUE_OWN_READER);
	if (read_number(p, &fields[s->field], s->text, e) < 0)
		return err_wrap(e, "%s", s->origin);
	note_change(p, s);
	return 0;
}

int policy_change(struct policy *p, const struct policy_setting *settings, size_t count,
		  struct err *e)
{
	struct policy tried = *p;

	for (size_t i = 0; i < count; i++) {
		const struct policy_setting *s = &settings[i];

		if (!can_change(s->field))
			return err_set(e, ERR_INVALID,
				       "%s: only limits of a sandbox can be changed, not its walls",
				       s->origin);
		if (read_number(&tried, &fields[s->field], s->text, e) < 0)
			return err_wrap(e, "%s", s->origin);
	}
	if (tried.bandwidth_bytes_per_s && !tried.has_network)
		return err_set(e, ERR_INVALID, "--bandwidth: this sandbox has no network");
	for (size_t i = 0; i < count; i++)
		note_change(&tried, &settings[i]);
	*p = tried;
	return 0;
}

void policy_done(struct policy *p)
{
	for (unsigned i = 0; i < p->mount_count; i++) {
		free(p->mounts[i].source);
		free(p->mounts[i].target);
	}
	for (unsigned i = 0; i < p->tmpfs_count; i++)
		free(p->tmpfs[i].target);
	for (unsigned i = 0; i < p->env_count; i++)
		free(p->env[i]);
	free(p->env);
	egress_done(&p->egress);
	free(p->workspace);
	free(p->home);
	free(p->workdir);
	free(p->home_dir);
	free(p->image);
	free(p->user_text);
	free(p->user_name);
	for (char **v = p->image_env; v && *v; v++)
		free(*v);
	free(p->image_env);
	keyrows_list_free(&p->places);
	keyrows_list_free(&p->passed);
	keyrows_list_free(&p->protect);
	keyrows_list_free(&p->unprotect);
	keyrows_list_free(&p->publish);
	keyrows_list_free(&p->mask);
	keyrows_list_free(&p->unmask);
	for (unsigned i = 0; i < POLICY_FIELD_COUNT; i++)
		free(p->owned_origin[i]);
	*p = (struct policy){ 0 };
}

bool policy_is_default(const struct policy *p, enum policy_field field)
{
	return p->origin[field].kind == POLICY_ORIGIN_NONE;
}

bool policy_is_asked(const struct policy *p, enum policy_field field)
{
	return p->origin[field].kind == POLICY_ORIGIN_SETTING;
}

const char *policy_field_name(enum policy_field field)
{
	return names[field];
}

enum policy_unit policy_get_number(const struct policy *p, enum policy_field field, uint64_t *ret)
{
	static const enum policy_unit units[] = {
		[VALUE_OWN_READER] = POLICY_NO_NUMBER, [VALUE_BYTES] = POLICY_BYTES,
		[VALUE_RATE] = POLICY_BYTES_PER_S,     [VALUE_COUNT] = POLICY_COUNT,
		[VALUE_MILLI] = POLICY_THOUSANDTHS,    [VALUE_MS] = POLICY_MS,
	};
	const struct field *f = &fields[field];

	if (f->kind != VALUE_OWN_READER)
		*ret = *(const uint64_t *)((const char *)p + f->offset);
	return units[f->kind];
}
