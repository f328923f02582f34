/*
 * configuration - the parsed agentkernel.toml; see configuration.h.
 *
 * Theory of operation. `keys` has a row for every "table.key" (those of policies are in
 * policy/fields.def): the type of its value and its destination. Most become the text of a policy
 * setting, so that a value means the same in a file and on the command line and is checked in one
 * place, policy/policy.c. Tables with user-defined names ([env], [daemon.agents.*]) and the lists
 * [[mounts]] and [[services]] have a reader each.
 *
 * Hostile input: the document, if it comes with a project. base/toml limits its size; the code that
 * resolves the settings limits what it may ask for.
 */
#include "policy/configuration.h"

#include "base/cleanup.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "policy/agent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct configuration *config;
	const char *name;
	const char *dir;
	enum configuration_owner owner;
	enum policy_layer layer; /* assigned to its settings */
};

enum key_kind {
	KEY_TEXT,     /* a string */
	KEY_AMOUNT,   /* a string with a unit, or a number */
	KEY_MEBIBYTE, /* a number of MiB */
	KEY_SWITCH,   /* true or false */
	KEY_LIST,     /* strings, each a separate setting */
	KEY_WORD,     /* a string for the struct at .offset, not a setting */
	KEY_NAMES,    /* strings for the list at .offset, not settings */
	KEY_COUNT,    /* a number for the struct at .offset */
};

struct key {
	const char *table, *name;
	enum key_kind kind;
	enum policy_field field;
	size_t offset;
	uint64_t max;
	bool is_maximum; /* a maximum for callers of a server, not a value */
};

#define MEMBER(table, name, kind, member, ...)                                                     \
	{                                                                                          \
		table, name, kind, .offset = offsetof(struct configuration, member), __VA_ARGS__   \
	}

static const struct key keys[] = {
#define KEY(id, table, name, kind) { table, name, kind, .field = POLICY_##id },
#include "policy/fields.def"
#define CALLERS_KEY(id, name, kind)                                                                \
	{ "callers", name, kind, .field = POLICY_##id, .is_maximum = true },
#include "policy/fields.def"

	MEMBER("sandbox", "name", KEY_WORD, name),
	MEMBER("sandbox", "init", KEY_WORD, init),
	MEMBER("sandbox", "dockerfile", KEY_WORD, dockerfile),

	MEMBER("agent", "preferred", KEY_WORD, agent),

	MEMBER("tools", "allow", KEY_NAMES, tools.tools),
	MEMBER("tools", "block", KEY_NAMES, tools.blocked_tools),
	MEMBER("tools.commands", "allow", KEY_NAMES, tools.commands),
	MEMBER("tools.commands", "block", KEY_NAMES, tools.blocked_commands),
	MEMBER("tools.rate_limit", "calls", KEY_COUNT, tools.rate_calls, TOOLPOLICY_CALLS_MAX),
	{ "tools.rate_limit", "window", KEY_WORD, .offset = 0 }, /* read_window() */

	MEMBER("api", "api_key", KEY_WORD, api_key),
	MEMBER("api", "api_key_env", KEY_WORD, api_key_env),

	MEMBER("daemon", "min_warm", KEY_COUNT, pools[0].min_warm, CONFIGURATION_WARM_MAX),
	MEMBER("daemon", "max_warm", KEY_COUNT, pools[0].max_warm, CONFIGURATION_WARM_MAX),
};

#define AGENTS_TABLE "daemon.agents"

/* Tables with entries that are not in `keys`. */
static const char *const other_tables[] = { "env", "mounts", "registries", "services" };

/* Compares the length too, because a TOML key may contain a NUL. */
static bool is_named(const struct toml_entry *entry, const char *name)
{
	return strlen(name) == entry->key_len && memcmp(entry->key, name, entry->key_len) == 0;
}

static const char *keep(struct configuration *c, char *text)
{
	c->owned = mem_grow(c->owned, c->owned_count + 1, sizeof(*c->owned));
	c->owned[c->owned_count++] = text;
	return text;
}

/* Takes ownership of `text`. */
static int add_setting(struct reader *r, const struct toml_value *v, enum policy_field field,
		       char *text, struct err *e)
{
	struct configuration *c = r->config;
	struct policy_setting s = { .field = field, .layer = r->layer };

	if (text)
		s.text = keep(c, text);
	s.origin = keep(c, mem_format("%s:%u", r->name, toml_where(v).line));
	if (c->setting_count == CONFIGURATION_SETTINGS_MAX)
		return toml_err(v, e, "more than %u settings", CONFIGURATION_SETTINGS_MAX);
	c->settings = mem_grow(c->settings, c->setting_count + 1, sizeof(*c->settings));
	c->settings[c->setting_count++] = s;
	return 0;
}

static int read_text(struct reader *r, const struct key *k, const struct toml_value *v,
		     struct err *e)
{
	const char *text = NULL;

	if (toml_expect_text(v, &text, e) < 0)
		return -1;
	return add_setting(r, v, k->field, mem_dup(text), e);
}

/* A number means the same with and without quotes; a time is then in seconds. */
static int read_amount(struct reader *r, const struct key *k, const struct toml_value *v,
		       struct err *e)
{
	bool is_time = k->field == POLICY_TIMEOUT || k->field == POLICY_CPU_TIME ||
		       k->field == POLICY_IDLE_TIMEOUT;

	if (toml_type(v) == TOML_INTEGER)
		return add_setting(r, v, k->field,
				   mem_format("%" PRId64 "%s", toml_integer(v), is_time ? "s" : ""),
				   e);
	if (toml_type(v) == TOML_FLOAT && k->field == POLICY_CPUS)
		return add_setting(r, v, k->field, mem_format("%.3f", toml_float(v)), e);
	return read_text(r, k, v, e);
}

static int read_mebibytes(struct reader *r, const struct key *k, const struct toml_value *v,
			  struct err *e)
{
	if (toml_expect(v, TOML_INTEGER, e) < 0)
		return -1;
	return add_setting(r, v, k->field, mem_format("%" PRId64 "MiB", toml_integer(v)), e);
}

static int read_switch(struct reader *r, const struct key *k, const struct toml_value *v,
		       struct err *e)
{
	bool is_on;

	if (toml_expect(v, TOML_BOOL, e) < 0)
		return -1;
	is_on = toml_bool(v);
	if (k->field == POLICY_WORKSPACE)
		return add_setting(r, v, k->field, is_on ? mem_dup("") : NULL, e);
	return add_setting(r, v, k->field, mem_dup(is_on ? "true" : "false"), e);
}

/* A list entry is a name only; with '=' it would set a variable, which belongs in [env]. */
static int check_passed(const struct key *k, const struct toml_value *v, const char *text,
			struct err *e)
{
	if (k->field == POLICY_ENV && strchr(text, '='))
		return toml_err(v, e, "'%s' is not the name of a variable ([env] sets them)", text);
	return 0;
}

static int read_list(struct reader *r, const struct key *k, const struct toml_value *v,
		     struct err *e)
{
	if (toml_expect(v, TOML_ARRAY, e) < 0)
		return -1;
	for (size_t i = 0; i < toml_count(v); i++) {
		const char *text = NULL;

		if (toml_expect_text(toml_item(v, i), &text, e) < 0 ||
		    check_passed(k, toml_item(v, i), text, e) < 0 ||
		    add_setting(r, toml_item(v, i), k->field, mem_dup(text), e) < 0)
			return -1;
	}
	return 0;
}

static int read_names(struct reader *r, const struct key *k, const struct toml_value *v,
		      struct err *e)
{
	char ***list = (char ***)(void *)((char *)r->config + k->offset);

	if (toml_expect(v, TOML_ARRAY, e) < 0)
		return -1;
	if (toml_count(v) > TOOLPOLICY_NAMES_MAX)
		return toml_err(v, e, "more than %u names", TOOLPOLICY_NAMES_MAX);
	/* an empty list is not NULL: it allows nothing */
	*list = mem_grow(*list, 1, sizeof(**list));
	(*list)[0] = NULL;
	for (size_t i = 0; i < toml_count(v); i++) {
		const char *text = NULL;

		if (toml_expect_text(toml_item(v, i), &text, e) < 0)
			return -1;
		if (!keyrows_list_add(list, text))
			return toml_err(v, e, "more than %u names", TOOLPOLICY_NAMES_MAX);
	}
	return 0;
}

static int read_count(const struct toml_value *v, uint64_t max, uint64_t *ret, struct err *e)
{
	if (toml_expect(v, TOML_INTEGER, e) < 0)
		return -1;
	if (toml_integer(v) < 0 || (uint64_t)toml_integer(v) > max)
		return toml_err(v, e, "%" PRId64 " is not between 0 and %" PRIu64, toml_integer(v),
				max);
	*ret = (uint64_t)toml_integer(v);
	return 0;
}

static int read_window(struct reader *r, const struct toml_value *v, struct err *e)
{
	const char *text = NULL;
	struct err wrong = { 0 };

	if (toml_expect_text(v, &text, e) < 0)
		return -1;
	if (parse_duration_ms(text, TOOLPOLICY_WINDOW_MIN_MS, TOOLPOLICY_WINDOW_MAX_MS,
			      &r->config->tools.rate_window_ms, &wrong) < 0)
		return toml_err(v, e, "%s", wrong.msg);
	return 0;
}

static int read_word(struct reader *r, const struct key *k, const struct toml_value *v,
		     struct err *e)
{
	const char *text = NULL;
	char **member = (char **)(void *)((char *)r->config + k->offset);

	if (strcmp(k->name, "window") == 0)
		return read_window(r, v, e);
	if (toml_expect_text(v, &text, e) < 0)
		return -1;
	if (k->offset == offsetof(struct configuration, agent) && !agent_find(text))
		return toml_err(v, e, "no agent '%.60s' (use claude, codex, gemini or opencode)",
				text);
	free(*member);
	*member = mem_dup(text);
	return 0;
}

static int read_value(struct reader *r, const struct key *k, const struct toml_value *v,
		      struct err *e)
{
	switch (k->kind) {
	case KEY_TEXT:
		return read_text(r, k, v, e);
	case KEY_AMOUNT:
		return read_amount(r, k, v, e);
	case KEY_MEBIBYTE:
		return read_mebibytes(r, k, v, e);
	case KEY_SWITCH:
		return read_switch(r, k, v, e);
	case KEY_LIST:
		return read_list(r, k, v, e);
	case KEY_NAMES:
		return read_names(r, k, v, e);
	case KEY_COUNT:
		return read_count(v, k->max, (uint64_t *)(void *)((char *)r->config + k->offset),
				  e);
	case KEY_WORD:
		break;
	}
	return read_word(r, k, v, e);
}

/* ---- tables with readers of their own ---- */

static int read_env(struct reader *r, const struct toml_value *table, struct err *e)
{
	size_t count = 0;
	const struct toml_entry *entries = toml_entries(table, &count);

	for (size_t i = 0; i < count; i++) {
		const char *text = NULL;

		if (strlen(entries[i].key) != entries[i].key_len || !entries[i].key[0] ||
		    strpbrk(entries[i].key, "= \t\n"))
			return toml_err_key(&entries[i], e, "this is not the name of a variable");
		if (toml_expect_text(entries[i].value, &text, e) < 0 ||
		    add_setting(r, entries[i].value, POLICY_ENV,
				mem_format("%s=%s", entries[i].key, text), e) < 0)
			return -1;
	}
	return 0;
}

static int unknown_key(const struct toml_entry *entry, const char *const *known, size_t count,
		       const char *table, struct err *e)
{
	const char *nearest = suggest_nearest(entry->key, known, count);

	if (nearest)
		return toml_err_key(entry, e, "unknown key '%.60s' in [%s], did you mean '%s'?",
				    entry->key, table, nearest);
	return toml_err_key(entry, e, "unknown key '%.60s' in [%s]", entry->key, table);
}

static int read_mount(struct reader *r, const struct toml_value *m, struct err *e)
{
	static const char *const known[] = { "source", "target", "read_only" };
	const char *source = NULL, *target = NULL;
	bool is_read_only = false;
	size_t count = 0;
	const struct toml_entry *entries;
	cleanup_free char *path = NULL;

	if (toml_expect(m, TOML_TABLE, e) < 0)
		return -1;
	entries = toml_entries(m, &count);
	for (size_t i = 0; i < count; i++) {
		const struct toml_value *v = entries[i].value;

		if (is_named(&entries[i], "source")) {
			if (toml_expect_text(v, &source, e) < 0)
				return -1;
		} else if (is_named(&entries[i], "target")) {
			if (toml_expect_text(v, &target, e) < 0)
				return -1;
		} else if (is_named(&entries[i], "read_only")) {
			if (toml_expect(v, TOML_BOOL, e) < 0)
				return -1;
			is_read_only = toml_bool(v);
		} else {
			return unknown_key(&entries[i], known, COUNT_OF(known), "mounts", e);
		}
	}
	if (!source || !target)
		return toml_err(m, e, "a mount has a source and a target");
	path = path_absolute(r->dir, source);
	if (!path)
		return toml_err(m, e, "'%.200s' climbs above '/'", source);
	if (strchr(path, ':') || strchr(target, ':'))
		return toml_err(m, e, "a mount's path cannot have a ':'");
	return add_setting(r, m, POLICY_MOUNT,
			   mem_format("%s:%s%s", path, target, is_read_only ? ":ro" : ""), e);
}

static int read_mounts(struct reader *r, const struct toml_value *list, struct err *e)
{
	if (toml_expect(list, TOML_ARRAY, e) < 0)
		return -1;
	for (size_t i = 0; i < toml_count(list); i++)
		if (read_mount(r, toml_item(list, i), e) < 0)
			return -1;
	return 0;
}

static int read_service_key(struct configuration_service *s, const struct toml_entry *entry,
			    struct err *e)
{
	static const char *const known[] = { "name", "command", "port", "needs" };
	const struct toml_value *v = entry->value;
	const char *text = NULL;

	if (is_named(entry, "port"))
		return read_count(v, UINT16_MAX, &s->port, e);
	if (is_named(entry, "needs")) {
		if (toml_expect(v, TOML_ARRAY, e) < 0)
			return -1;
		for (size_t i = 0; i < toml_count(v); i++) {
			if (toml_expect_text(toml_item(v, i), &text, e) < 0)
				return -1;
			(void)keyrows_list_add(&s->needs, text);
		}
		return 0;
	}
	if (!is_named(entry, "name") && !is_named(entry, "command"))
		return unknown_key(entry, known, COUNT_OF(known), "services", e);
	if (toml_expect_text(v, &text, e) < 0)
		return -1;
	*(is_named(entry, "name") ? &s->name : &s->command) = mem_dup(text);
	return 0;
}

static int read_services(struct reader *r, const struct toml_value *list, struct err *e)
{
	struct configuration *c = r->config;

	if (toml_expect(list, TOML_ARRAY, e) < 0)
		return -1;
	for (size_t i = 0; i < toml_count(list); i++) {
		const struct toml_value *item = toml_item(list, i);
		struct configuration_service *s;
		const struct toml_entry *entries;
		size_t count = 0;

		if (toml_expect(item, TOML_TABLE, e) < 0)
			return -1;
		if (c->service_count == CONFIGURATION_SERVICES_MAX)
			return toml_err(item, e, "more than %u services",
					CONFIGURATION_SERVICES_MAX);
		s = &c->services[c->service_count++];
		entries = toml_entries(item, &count);
		for (size_t n = 0; n < count; n++)
			if (read_service_key(s, &entries[n], e) < 0)
				return -1;
		if (!s->name || !s->command)
			return toml_err(item, e, "a service has a name and a command");
	}
	return 0;
}

static int read_pool(struct reader *r, const struct toml_entry *agent, struct err *e)
{
	static const char *const known[] = { "min_warm", "max_warm", "image" };
	struct configuration *c = r->config;
	struct configuration_pool *pool;
	enum mode_id ignored;
	size_t count = 0;
	const struct toml_entry *entries;

	if (toml_expect(agent->value, TOML_TABLE, e) < 0)
		return -1;
	if (strlen(agent->key) != agent->key_len ||
	    (!agent_find(agent->key) && !mode_find(agent->key, &ignored)))
		return toml_err_key(agent, e,
				    "no agent '%.60s' (use claude, codex, gemini, opencode or "
				    "native)",
				    agent->key);
	if (c->pool_count == CONFIGURATION_AGENTS_MAX)
		return toml_err_key(agent, e, "more than %u pools", CONFIGURATION_AGENTS_MAX);
	pool = &c->pools[c->pool_count++];
	pool->agent = mem_dup(agent->key);
	entries = toml_entries(agent->value, &count);
	for (size_t i = 0; i < count; i++) {
		const struct toml_value *v = entries[i].value;
		const char *text = NULL;
		int ok = 0;

		if (is_named(&entries[i], "min_warm"))
			ok = read_count(v, CONFIGURATION_WARM_MAX, &pool->min_warm, e);
		else if (is_named(&entries[i], "max_warm"))
			ok = read_count(v, CONFIGURATION_WARM_MAX, &pool->max_warm, e);
		else if (!is_named(&entries[i], "image"))
			return unknown_key(&entries[i], known, COUNT_OF(known), "daemon.agents", e);
		else if ((ok = toml_expect_text(v, &text, e)) == 0)
			pool->image = mem_dup(text);
		if (ok < 0)
			return -1;
	}
	return 0;
}

static int read_pools(struct reader *r, const struct toml_value *agents, struct err *e)
{
	size_t count = 0;
	const struct toml_entry *entries;

	if (toml_expect(agents, TOML_TABLE, e) < 0)
		return -1;
	entries = toml_entries(agents, &count);
	for (size_t i = 0; i < count; i++)
		if (read_pool(r, &entries[i], e) < 0)
			return -1;
	return 0;
}

/* ---- the document ---- */

static const struct key *find_key(const char *table, const struct toml_entry *entry)
{
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (strcmp(keys[i].table, table) == 0 && is_named(entry, keys[i].name))
			return &keys[i];
	return NULL;
}

static bool is_table(const char *name)
{
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (strcmp(keys[i].table, name) == 0)
			return true;
	return false;
}

/* Nested tables as `keys` names them, and [daemon.agents]. */
static const char *name_below(const char *table, const char *name)
{
	size_t len = strlen(table);

	return strncmp(name, table, len) == 0 && name[len] == '.' ? name + len + 1 : NULL;
}

static int unknown_in(const struct toml_entry *entry, const char *table, struct err *e)
{
	const char *known[COUNT_OF(keys) + 1];
	size_t count = 0;

	for (size_t i = 0; i < COUNT_OF(keys); i++) {
		if (strcmp(keys[i].table, table) == 0)
			known[count++] = keys[i].name;
		else if (name_below(table, keys[i].table))
			known[count++] = name_below(table, keys[i].table);
	}
	if (name_below(table, AGENTS_TABLE))
		known[count++] = name_below(table, AGENTS_TABLE);
	return unknown_key(entry, known, count, table, e);
}

static int read_table(struct reader *r, const char *name, const struct toml_value *table,
		      struct err *e)
{
	size_t count = 0;
	const struct toml_entry *entries;

	if (toml_expect(table, TOML_TABLE, e) < 0)
		return -1;
	entries = toml_entries(table, &count);
	for (size_t i = 0; i < count; i++) {
		const struct key *k = find_key(name, &entries[i]);
		cleanup_free char *inner = mem_format("%s.%s", name, entries[i].key);

		if (strlen(entries[i].key) != entries[i].key_len) {
			return unknown_in(&entries[i], name, e);
		} else if (k) {
			struct reader of_key = *r;

			if (k->is_maximum)
				of_key.layer = POLICY_MAXIMUM;
			if (read_value(&of_key, k, entries[i].value, e) < 0)
				return -1;
		} else if (strcmp(inner, AGENTS_TABLE) == 0) {
			if (read_pools(r, entries[i].value, e) < 0)
				return -1;
		} else if (is_table(inner)) {
			if (read_table(r, inner, entries[i].value, e) < 0)
				return -1;
		} else {
			return unknown_in(&entries[i], name, e);
		}
	}
	return 0;
}

static int unknown_table(const struct toml_entry *entry, struct err *e)
{
	const char *known[COUNT_OF(keys) + COUNT_OF(other_tables)];
	const char *nearest;
	size_t count = 0;

	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (!strchr(keys[i].table, '.'))
			known[count++] = keys[i].table;
	for (size_t i = 0; i < COUNT_OF(other_tables); i++)
		known[count++] = other_tables[i];
	nearest = suggest_nearest(entry->key, known, count);
	if (nearest)
		return toml_err_key(entry, e, "unknown table '%.60s', did you mean [%s]?",
				    entry->key, nearest);
	return toml_err_key(entry, e, "unknown table '%.60s'", entry->key);
}

static int read_entry(struct reader *r, const struct toml_entry *entry, struct err *e)
{
	if (is_named(entry, "mounts"))
		return read_mounts(r, entry->value, e);
	if (is_named(entry, "services"))
		return read_services(r, entry->value, e);
	if (is_named(entry, "registries")) {
		if (r->owner == CONFIGURATION_USERS)
			return 0;
		return toml_err_key(entry, e,
				    "only your own config.toml can say how images are fetched");
	}
	if (is_named(entry, "callers") && r->owner != CONFIGURATION_USERS)
		return toml_err_key(entry, e,
				    "only your own config.toml can say what callers may ask for");
	if (is_named(entry, "api") && r->owner != CONFIGURATION_USERS)
		return toml_err_key(entry, e, "only your own config.toml can say who may ask");
	if (is_named(entry, "env")) {
		if (toml_expect(entry->value, TOML_TABLE, e) < 0)
			return -1;
		return read_env(r, entry->value, e);
	}
	/* ["tools.commands"] is not [tools.commands] */
	if (strlen(entry->key) != entry->key_len || strchr(entry->key, '.') ||
	    !is_table(entry->key))
		return unknown_table(entry, e);
	return read_table(r, entry->key, entry->value, e);
}

static int check(const struct configuration *c, const char *name, struct err *e)
{
	if ((c->tools.rate_calls == 0) != (c->tools.rate_window_ms == 0))
		return err_set(e, ERR_INVALID, "%s: a rate_limit has calls and a window", name);
	for (unsigned i = 0; i < c->pool_count; i++)
		if (c->pools[i].max_warm && c->pools[i].max_warm < c->pools[i].min_warm)
			return err_set(e, ERR_INVALID, "%s: min_warm is larger than max_warm",
				       name);
	return 0;
}

int configuration_parse(const char *bytes, size_t len, const char *name, const char *dir,
			enum configuration_owner owner, enum policy_layer layer,
			struct configuration *ret, struct err *e)
{
	CLEANUP(toml_freep) struct toml *document = NULL;
	CLEANUP(configuration_done) struct configuration c = { .pool_count = 1 };
	struct reader r = { &c, name, dir, owner, layer };
	const struct toml_entry *entries;
	size_t count = 0;

	if (toml_parse(bytes, len, name, &document, e) < 0)
		return -1;
	entries = toml_entries(toml_root(document), &count);
	for (size_t i = 0; i < count; i++)
		if (read_entry(&r, &entries[i], e) < 0)
			return -1;
	if (check(&c, name, e) < 0)
		return -1;
	*ret = c;
	c = (struct configuration){ 0 };
	return 0;
}

void configuration_done(struct configuration *c)
{
	for (size_t i = 0; i < c->owned_count; i++)
		free(c->owned[i]);
	free(c->owned);
	free(c->settings);
	free(c->name);
	free(c->init);
	free(c->dockerfile);
	free(c->agent);
	free(c->api_key);
	free(c->api_key_env);
	toolpolicy_done(&c->tools);
	for (unsigned i = 0; i < c->pool_count; i++) {
		free(c->pools[i].agent);
		free(c->pools[i].image);
	}
	for (unsigned i = 0; i < c->service_count; i++) {
		free(c->services[i].name);
		free(c->services[i].command);
		keyrows_list_free(&c->services[i].needs);
	}
	*c = (struct configuration){ 0 };
}
