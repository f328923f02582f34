/*
 * registries - the user's configuration of registries; see registries.h.
 *
 * Several parts of the program share the file, so its other tables are ignored here. Every entry of
 * [registries] is checked, also those of other hosts: so a mistake shows on the first pull, not on
 * the first one from that host. Hosts are normalised with reference_parse() before they are
 * compared.
 */
#include "image/registries.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "image/reference.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define SOME_PATH "x/x"

static const char *get(char *const *environ_list, const char *name)
{
	size_t len = strlen(name);

	for (; environ_list && *environ_list; environ_list++)
		if (strncmp(*environ_list, name, len) == 0 && (*environ_list)[len] == '=')
			return *environ_list + len + 1;
	return NULL;
}

/* False for a key that contains a NUL. */
static bool is_text(const struct toml_entry *entry, const char *text)
{
	return strlen(text) == entry->key_len && strcmp(entry->key, text) == 0;
}

/* ---- the entry of one host ---- */

static bool is_address(const char *text)
{
	size_t scheme = strncmp(text, "https://", 8) == 0  ? 8
			: strncmp(text, "http://", 7) == 0 ? 7
							   : 0;

	return scheme > 0 && text[scheme] && text[scheme] != '/';
}

static int read_mirrors(const struct toml_value *v, struct registries *r, struct err *e)
{
	if (toml_expect(v, TOML_ARRAY, e) < 0)
		return -1;
	if (toml_count(v) > REGISTRIES_MIRRORS_MAX)
		return toml_err(v, e, "more than %u mirrors", REGISTRIES_MIRRORS_MAX);
	r->mirrors = mem_alloc((toml_count(v) + 1) * sizeof(*r->mirrors));
	for (size_t i = 0; i < toml_count(v); i++) {
		const struct toml_value *item = toml_item(v, i);
		const char *text = NULL;

		if (toml_expect_text(item, &text, e) < 0)
			return -1;
		if (!is_address(text))
			return toml_err(item, e,
					"a mirror is an address as https://mirror.example.org, "
					"not '%.128s'",
					text);
		r->mirrors[i] = mem_dup(text);
	}
	return 0;
}

static int read_bool(const struct toml_value *v, bool *ret, struct err *e)
{
	if (toml_expect(v, TOML_BOOL, e) < 0)
		return -1;
	*ret = toml_bool(v);
	return 0;
}

static int read_timeout(const struct toml_value *v, struct registries *r, struct err *e)
{
	const char *text = NULL;
	struct err problem = { 0 };

	if (toml_expect_text(v, &text, e) < 0)
		return -1;
	if (parse_duration_ms(text, REGISTRIES_TIMEOUT_MIN_MS, REGISTRIES_TIMEOUT_MAX_MS,
			      &r->timeout_ms, &problem) < 0)
		return toml_err(v, e, "%s", problem.msg);
	return 0;
}

static int refuse_key(const struct toml_entry *entry, struct err *e)
{
	static const char *const known[] = { "mirrors", "insecure", "private-redirects",
					     "timeout" };
	const char *nearest = suggest_nearest(entry->key, known, COUNT_OF(known));

	if (nearest)
		return toml_err_key(entry, e, "a registry has no '%.64s'; did you mean '%s'?",
				    entry->key, nearest);
	return toml_err_key(entry, e,
			    "a registry has no '%.64s', only 'mirrors', 'insecure', "
			    "'private-redirects' and 'timeout'",
			    entry->key);
}

static int read_registry(const struct toml_value *v, struct registries *ret, struct err *e)
{
	CLEANUP(registries_done) struct registries r = { 0 };
	const struct toml_entry *entries;
	size_t count = 0;
	int result = 0;

	if (toml_expect(v, TOML_TABLE, e) < 0)
		return -1;
	entries = toml_entries(v, &count);
	for (size_t i = 0; i < count && result == 0; i++) {
		if (is_text(&entries[i], "mirrors"))
			result = read_mirrors(entries[i].value, &r, e);
		else if (is_text(&entries[i], "insecure"))
			result = read_bool(entries[i].value, &r.is_insecure, e);
		else if (is_text(&entries[i], "private-redirects"))
			result = read_bool(entries[i].value, &r.has_private_redirects, e);
		else if (is_text(&entries[i], "timeout"))
			result = read_timeout(entries[i].value, &r, e);
		else
			result = refuse_key(&entries[i], e);
	}
	if (result < 0)
		return -1;
	*ret = r;
	r = (struct registries){ 0 };
	return 0;
}

/* ---- the table of all ---- */

/* Normalises a host as in an image reference. */
static int normalize(const struct toml_entry *entry, struct reference *ret, struct err *e)
{
	cleanup_free char *image = mem_format("%s/" SOME_PATH, entry->key);
	struct err ignored = { 0 };

	if (is_text(entry, entry->key) && reference_parse(image, ret, &ignored) == 0 &&
	    strcmp(ret->path, SOME_PATH) == 0)
		return 0;
	return toml_err_key(entry, e,
			    "'%.128s' is not the host of a registry (one with dots needs quotes)",
			    entry->key);
}

static int find(const struct toml_value *table, const char *host, struct registries *ret,
		struct err *e)
{
	const struct toml_entry *entries, *found = NULL;
	size_t count = 0;

	if (toml_expect(table, TOML_TABLE, e) < 0)
		return -1;
	entries = toml_entries(table, &count);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(registries_done) struct registries r = { 0 };
		struct reference name;

		if (normalize(&entries[i], &name, e) < 0 ||
		    read_registry(entries[i].value, &r, e) < 0)
			return -1;
		if (strcmp(name.host, host) != 0)
			continue;
		if (found)
			return toml_err_key(&entries[i], e,
					    "'%.128s' is the same registry as '%.128s'",
					    entries[i].key, found->key);
		found = &entries[i];
		*ret = r;
		r = (struct registries){ 0 };
	}
	return 0;
}

/* ---- the file ---- */

/* NULL if no variable is set. The XDG rules ignore a relative path. */
static char *file_path(char *const *environ_list)
{
	const char *config = get(environ_list, "XDG_CONFIG_HOME");
	const char *home = get(environ_list, "HOME");

	if (config && config[0] == '/')
		return mem_format("%s/agentkernel/config.toml", config);
	if (home && home[0])
		return mem_format("%s/.config/agentkernel/config.toml", home);
	return NULL;
}

/* *ret stays NULL if there is no file. */
static int load(const char *path, struct toml **ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = file_read_at(AT_FDCWD, path, REGISTRIES_FILE_MAX_BYTES, &text, &len);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == -EFBIG)
		return err_set(e, ERR_LIMIT, "'%s' is larger than %u bytes", path,
			       REGISTRIES_FILE_MAX_BYTES);
	if (r < 0)
		return err_sys(e, -r, "read '%s'", path);
	return toml_parse(text, len, path, ret, e);
}

int registries_load(char *const *environ_list, const char *host, struct registries *ret,
		    struct err *e)
{
	CLEANUP(registries_done) struct registries r = { 0 };
	CLEANUP(toml_freep) struct toml *document = NULL;
	cleanup_free char *path = file_path(environ_list);
	const struct toml_value *table;

	if (path && load(path, &document, e) < 0)
		return -1;
	table = document ? toml_get(toml_root(document), "registries") : NULL;
	if (table && find(table, host, &r, e) < 0)
		return -1;
	if (r.timeout_ms == 0)
		r.timeout_ms = REGISTRIES_TIMEOUT_DEFAULT_MS;
	*ret = r;
	r = (struct registries){ 0 };
	return 0;
}

void registries_done(struct registries *r)
{
	for (char **mirror = r->mirrors; mirror && *mirror; mirror++)
		free(*mirror);
	free(r->mirrors);
	*r = (struct registries){ 0 };
}

struct credentials_options registries_credentials(char *const *environ_list)
{
	return (struct credentials_options){
		.docker_config = get(environ_list, "DOCKER_CONFIG"),
		.home = get(environ_list, "HOME"),
		.environ_list = environ_list,
	};
}
