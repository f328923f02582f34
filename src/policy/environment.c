/* environment - the environment of a command; see environment.h. */
#include "policy/environment.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "base/wall.h"
#include "policy/policy.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* A variable whose name contains one of these (in any case) is not passed automatically. */
static const char *const secret_part[] = {
	"TOKEN",      "SECRET",          "PASSWORD", "PASSWD",
	"PASSPHRASE", "CREDENTIAL",      "API_KEY",  "APIKEY",
	"ACCESS_KEY", "PRIVATE",         "_AUTH_",   "AUTHORIZATION",
	"COOKIE",     "DATABASE_URL",    "_DSN",     "CONNECTION_STRING",
	"CREDS",      "WEBHOOK",         "BEARER",   "SIGNING",
	"_KEY_",      "KUBECONFIG_DATA",
};

/* Likewise if its name ends in one of these. */
static const char *const secret_end[] = { "_KEY", "_PASS", "_PWD", "_PAT", "_JWT", "_AUTH" };

/* These refer to services of the host: sockets, displays, other sessions. */
static const char *const host_service[] = {
	"DBUS_SESSION_BUS_ADDRESS",
	"DISPLAY",
	"DOCKER_HOST",
	"GPG_AGENT_INFO",
	"STY",
	"TMUX",
	"WAYLAND_DISPLAY",
	"XAUTHORITY",
	"XDG_RUNTIME_DIR",
	"SSH_AGENT_PID",
};

static bool name_is(const char *entry, size_t name_len, const char *name)
{
	return strlen(name) == name_len && strncmp(entry, name, name_len) == 0;
}

/* "scheme://user:password@host" anywhere in the value */
static bool has_password_in_address(const char *value)
{
	const char *scheme = strstr(value, "://");

	while (scheme) {
		const char *rest = scheme + 3;
		size_t user_len = strcspn(rest, "/@: \t");

		if (rest[user_len] == ':') {
			const char *password = rest + user_len + 1;

			if (password[strcspn(password, "@ \t")] == '@')
				return true;
		}
		scheme = strstr(rest, "://");
	}
	return false;
}

bool environment_is_secret(const char *entry)
{
	size_t name_len = strcspn(entry, "=");
	cleanup_free char *name = mem_dup_bytes(entry, name_len);

	for (char *p = name; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	for (size_t i = 0; i < COUNT_OF(secret_part); i++)
		if (strstr(name, secret_part[i]))
			return true;
	for (size_t i = 0; i < COUNT_OF(secret_end); i++) {
		size_t end_len = strlen(secret_end[i]);

		if (name_len > end_len && strcmp(name + name_len - end_len, secret_end[i]) == 0)
			return true;
	}
	return entry[name_len] == '=' && has_password_in_address(entry + name_len + 1);
}

static bool is_host_service(const char *entry)
{
	size_t name_len = strcspn(entry, "=");

	for (size_t i = 0; i < COUNT_OF(host_service); i++)
		if (name_is(entry, name_len, host_service[i]))
			return true;
	return false;
}

/* Paths of the host's programs and libraries are meaningless in another image. */
static bool is_of_host_programs(const struct policy *p, const char *entry)
{
	static const char *const names[] = { "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "SHELL" };
	size_t name_len = strcspn(entry, "=");

	if (policy_is_host_image(p))
		return false;
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (name_is(entry, name_len, names[i]))
			return true;
	return false;
}

struct list {
	char **entries;
	size_t count;
};

/* Takes ownership of `entry`; replaces a variable of the same name. */
static void list_put(struct list *l, char *entry)
{
	size_t name_len = strcspn(entry, "=");

	for (size_t i = 0; i < l->count; i++) {
		if (strncmp(l->entries[i], entry, name_len + 1) != 0)
			continue;
		free(l->entries[i]);
		l->entries[i] = entry;
		return;
	}
	l->entries = mem_grow(l->entries, l->count + 2, sizeof(*l->entries));
	l->entries[l->count++] = entry;
	l->entries[l->count] = NULL;
}

bool environment_is_passed(const struct policy *p, const char *entry)
{
	if (!wall_stands(WALL_CLEAN_ENVIRONMENT))
		return true;
	return p->passes_env && strchr(entry, '=') && !environment_is_secret(entry) &&
	       !is_host_service(entry) && !is_of_host_programs(p, entry);
}

static bool is_set(const struct policy *p, const char *entry)
{
	size_t name_len = strcspn(entry, "=");

	for (unsigned i = 0; i < p->env_count; i++)
		if (strncmp(p->env[i], entry, name_len + 1) == 0)
			return true;
	return false;
}

void environment_format_dropped(const struct policy *p, const struct policy_caller *caller,
				struct buf *out)
{
	unsigned count = 0;

	for (char *const *v = caller->environ_list; p->passes_env && v && *v; v++)
		if (!environment_is_passed(p, *v) && !is_set(p, *v))
			buf_addf(out, "%s%.*s", count++ ? ", " : "", (int)strcspn(*v, "="), *v);
}

char **environment_build(const struct policy *p, const struct policy_caller *caller,
			 const char *term)
{
	struct list l = { 0 };

	list_put(&l, mem_dup("PATH=" ENVIRONMENT_PATH));
	list_put(&l, mem_dup("LANG=C.UTF-8"));
	for (char *const *v = caller->environ_list; v && *v; v++)
		if (environment_is_passed(p, *v))
			list_put(&l, mem_dup(*v));
	for (char *const *v = p->image_env; v && *v; v++)
		list_put(&l, mem_dup(*v));
	list_put(&l, mem_format("HOME=%s", p->home_dir));
	list_put(&l, mem_format("USER=%s", p->user_name));
	list_put(&l, mem_format("LOGNAME=%s", p->user_name));
#ifdef AGENTKERNEL_TESTING
	if (p->test_limit_count)
		list_put(&l, mem_format("AGENTKERNEL_TEST_LIMIT=%" PRIu64, p->test_limit_count));
#endif
	if (term)
		list_put(&l, mem_format("TERM=%s", term));
	for (unsigned i = 0; i < p->env_count; i++)
		list_put(&l, mem_dup(p->env[i]));
	return l.entries;
}

void environment_free(char **list)
{
	for (char **v = list; v && *v; v++)
		free(*v);
	free(list);
}

const char *environment_get(char *const *list, const char *name)
{
	size_t len = strlen(name);

	for (; *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return *list + len + 1;
	return NULL;
}
