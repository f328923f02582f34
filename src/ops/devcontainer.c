/*
 * devcontainer - devcontainer.json; see devcontainer.h.
 *
 * Theory of operation. The document is checked whole (base/jsonscan, with comments), then each
 * member of its object is looked up in one table of readers; a name that is in none is an editor's
 * matter. Variables in texts: ${localWorkspaceFolder}, its basename, ${containerWorkspaceFolder},
 * ${localEnv:NAME[:DEFAULT]}.
 */
#include "ops/devcontainer.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/jsonscan.h"
#include "base/jsontext.h"
#include "base/jsonwalk.h"
#include "base/keyrows.h"
#include "base/mem.h"
#include "base/path.h"
#include "ops/events.h"
#include "ops/request.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define ORIGIN "--devcontainer"

struct reading {
	struct request *request;
	const struct op_events *ev;
	struct jsonscan_text document;
	const char *end;
	char *dir;       /* that the file is in */
	char *workspace; /* the project's directory */
	char *inner;     /* workspaceFolder; NULL: as the project's */
	char *user;      /* remoteUser, else containerUser */
	struct buf commands;
	bool has_image;
};

static void reading_done(struct reading *r)
{
	free(r->dir);
	free(r->workspace);
	free(r->inner);
	free(r->user);
	buf_done(&r->commands);
}

static int refuse(const struct reading *r, const char *at, struct err *e, const char *words)
{
	return jsonscan_err(&r->document, at, ERR_UNSUPPORTED, e, "%s", words);
}

/* ---- texts ---- */

static const char *find_variable(const struct reading *r, const char *name, char **owned)
{
	const char *value, *colon;

	if (strcmp(name, "localWorkspaceFolder") == 0)
		return r->workspace;
	if (strcmp(name, "containerWorkspaceFolder") == 0)
		return r->inner ? r->inner : r->workspace;
	if (strcmp(name, "localWorkspaceFolderBasename") == 0 ||
	    strcmp(name, "containerWorkspaceFolderBasename") == 0)
		return path_base_name(r->workspace);
	if (strncmp(name, "localEnv:", 9) != 0)
		return NULL;
	name += 9;
	colon = strchr(name, ':');
	*owned = mem_dup_bytes(name, colon ? (size_t)(colon - name) : strlen(name));
	value = environment_get(r->request->ak->caller.environ_list, *owned);
	return value ? value : colon ? colon + 1 : "";
}

static char *expand(const struct reading *r, const char *text)
{
	struct buf out;

	buf_init(&out, DEVCONTAINER_MAX_BYTES);
	while (*text) {
		const char *close = strncmp(text, "${", 2) == 0 ? strchr(text, '}') : NULL;
		cleanup_free char *name = NULL, *owned = NULL;
		const char *value = NULL;

		if (close) {
			name = mem_dup_bytes(text + 2, (size_t)(close - text - 2));
			value = find_variable(r, name, &owned);
		}
		if (value)
			buf_add_text(&out, value);
		else
			buf_add(&out, text, 1);
		text = value ? close + 1 : text + 1;
	}
	return out.bytes ? out.bytes : mem_dup("");
}

static int read_text(const struct reading *r, const struct jsonwalk_member *m, char **ret,
		     struct err *e)
{
	cleanup_buf struct buf text;

	buf_init(&text, DEVCONTAINER_MAX_BYTES);
	if (*m->value != '"')
		return jsonscan_err(&r->document, m->value, ERR_INVALID, e,
				    "a text is needed here, not %s", jsonwalk_type_name(m->value));
	jsontext_decode(m->value, m->value_end, &text);
	if (strlen(buf_text(&text)) != text.len)
		return jsonscan_err(&r->document, m->value, ERR_INVALID, e,
				    "a text with a NUL is of no use here");
	*ret = expand(r, buf_text(&text));
	return 0;
}

static int add(struct reading *r, enum policy_field field, const char *text, struct err *e)
{
	struct settings *all = &r->request->settings;
	const struct policy_setting s = { field, settings_keep(all, mem_dup(text)), ORIGIN };

	return settings_add(all, &s, e);
}

/* ---- members ---- */

typedef int read_fn(struct reading *r, const struct jsonwalk_member *m, struct err *e);

static int read_image(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	cleanup_free char *image = NULL;

	if (read_text(r, m, &image, e) < 0)
		return -1;
	r->has_image = true;
	return add(r, POLICY_IMAGE, image, e);
}

static int set_path(struct reading *r, const struct jsonwalk_member *m, char **ret, struct err *e)
{
	cleanup_free char *text = NULL;

	if (read_text(r, m, &text, e) < 0)
		return -1;
	free(*ret);
	*ret = path_absolute(r->dir, text);
	return *ret ? 0
		    : jsonscan_err(&r->document, m->value, ERR_INVALID, e, "it climbs above '/'");
}

static int read_dockerfile(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	return set_path(r, m, &r->request->build.file, e);
}

static int read_context(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	return set_path(r, m, &r->request->build.context, e);
}

static int read_target(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	free(take_ptr(r->request->build.target));
	return read_text(r, m, &r->request->build.target, e);
}

typedef int pair_fn(struct reading *r, const char *name, const char *value, struct err *e);

/* An object of texts. */
static int each_pair(struct reading *r, const struct jsonwalk_member *m, pair_fn *fn, struct err *e)
{
	struct jsonwalk_member child;
	unsigned count = 0;

	if (*m->value != '{')
		return jsonscan_err(&r->document, m->value, ERR_INVALID, e,
				    "an object is needed here, not %s",
				    jsonwalk_type_name(m->value));
	for (const char *at = m->value + 1; jsonwalk_member(at, r->end, &child); at = child.next) {
		cleanup_free char *value = NULL;
		cleanup_buf struct buf name;

		buf_init(&name, DEVCONTAINER_MAX_BYTES);
		if (++count > DEVCONTAINER_ENTRIES_MAX)
			return jsonscan_err(&r->document, child.key, ERR_LIMIT, e,
					    "more than %u entries", DEVCONTAINER_ENTRIES_MAX);
		jsontext_decode(child.key, child.key_end, &name);
		if (strncmp(child.value, "null", 4) == 0)
			continue;
		if (read_text(r, &child, &value, e) < 0 || fn(r, buf_text(&name), value, e) < 0)
			return -1;
	}
	return 0;
}

static int add_build_arg(struct reading *r, const char *name, const char *value, struct err *e)
{
	cleanup_free char *row = mem_format("%s=%s", name, value);

	return keyrows_list_add(&r->request->build.args, row)
		       ? 0
		       : err_set(e, ERR_LIMIT, "too many arguments of the build");
}

static int add_variable(struct reading *r, const char *name, const char *value, struct err *e)
{
	cleanup_free char *row = mem_format("%s=%s", name, value);

	return add(r, POLICY_ENV, row, e);
}

static int read_build_args(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	return each_pair(r, m, add_build_arg, e);
}

static int read_variables(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	return each_pair(r, m, add_variable, e);
}

static int read_remote_user(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	free(take_ptr(r->user));
	return read_text(r, m, &r->user, e);
}

static int read_container_user(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	return r->user ? 0 : read_text(r, m, &r->user, e);
}

static int read_folder(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	free(take_ptr(r->inner));
	return read_text(r, m, &r->inner, e);
}

static int read_ports(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	struct jsonwalk_member item;
	unsigned count = 0;

	if (*m->value != '[')
		return jsonscan_err(&r->document, m->value, ERR_INVALID, e,
				    "a list is needed here, not %s", jsonwalk_type_name(m->value));
	for (const char *at = m->value + 1; jsonwalk_item(at, r->end, &item); at = item.next) {
		cleanup_free char *text = NULL;
		uint64_t port = 0;

		if (*item.value == '"' ? read_text(r, &item, &text, e) < 0
				       : (text = mem_dup_bytes(item.value, (size_t)(item.value_end -
										    item.value)),
					  false))
			return -1;
		if (++count > DEVCONTAINER_ENTRIES_MAX ||
		    !keyrows_read_number(text, 65535, &port) || port == 0)
			return jsonscan_err(
				&r->document, item.value, ERR_INVALID, e,
				"a port from 1 to 65535 is needed here (other hosts are not "
				"forwarded)");
		if (add(r, POLICY_PUBLISH, text, e) < 0)
			return -1;
	}
	return 0;
}

/* A text for a shell, a list of words, or an object of such: all of them, one after the other. */
static int add_command(struct reading *r, const struct jsonwalk_member *m, unsigned depth,
		       struct err *e)
{
	struct jsonwalk_member child;
	cleanup_free char *text = NULL;
	bool is_first = true;

	if (*m->value == '{' && depth == 0) {
		for (const char *at = m->value + 1; jsonwalk_member(at, r->end, &child);
		     at = child.next)
			if (add_command(r, &child, 1, e) < 0)
				return -1;
		return 0;
	}
	if (*m->value != '[') {
		if (strncmp(m->value, "null", 4) == 0)
			return 0;
		if (read_text(r, m, &text, e) < 0)
			return -1;
		buf_addf(&r->commands, "( %s\n) || exit\n", text);
		return 0;
	}
	for (const char *at = m->value + 1; jsonwalk_item(at, r->end, &child); at = child.next) {
		cleanup_free char *word = NULL;

		if (read_text(r, &child, &word, e) < 0)
			return -1;
		buf_add_text(&r->commands, is_first ? "" : " ");
		buf_add_quoted(&r->commands, word);
		is_first = false;
	}
	buf_add_text(&r->commands, is_first ? "" : " || exit\n");
	return 0;
}

static int read_command(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	return add_command(r, m, 0, e);
}

static bool is_empty(const struct reading *r, const struct jsonwalk_member *m)
{
	struct jsonwalk_member child;

	if (*m->value == '{')
		return !jsonwalk_member(m->value + 1, r->end, &child);
	if (*m->value == '[')
		return !jsonwalk_item(m->value + 1, r->end, &child);
	return strncmp(m->value, "false", 5) == 0 || strncmp(m->value, "null", 4) == 0;
}

/* The name of the first of what is refused, so that it can be looked for. */
static int refuse_features(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	struct jsonwalk_member child;
	cleanup_buf struct buf name;

	buf_init(&name, DEVCONTAINER_MAX_BYTES);
	if (is_empty(r, m))
		return 0;
	if (*m->value != '{' || !jsonwalk_member(m->value + 1, r->end, &child))
		return refuse(r, m->value, e, "features are not installed");
	jsontext_decode(child.key, child.key_end, &name);
	return jsonscan_err(
		&r->document, child.key, ERR_UNSUPPORTED, e,
		"the feature '%.100s' is not installed: a feature is a script of others that "
		"runs as root (install what it brings in a Dockerfile, with build)",
		buf_text(&name));
}

static int refuse_member(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	if (is_empty(r, m))
		return 0;
	return jsonscan_err(
		&r->document, m->key, ERR_UNSUPPORTED, e,
		"%.*s is not supported: a sandbox is not given it (leave it out, or see "
		"'agentkernel help create')",
		(int)(m->key_end - m->key), m->key);
}

struct member {
	const char *name;
	read_fn *take;
};

static const struct member build_members[] = {
	{ "dockerfile", read_dockerfile }, { "context", read_context },  { "target", read_target },
	{ "args", read_build_args },       { "options", refuse_member },
};

static read_fn read_build;

static const struct member members[] = {
	{ "image", read_image },
	{ "build", read_build },
	{ "dockerFile", read_dockerfile },
	{ "context", read_context },
	{ "containerEnv", read_variables },
	{ "remoteEnv", read_variables },
	{ "remoteUser", read_remote_user },
	{ "containerUser", read_container_user },
	{ "forwardPorts", read_ports },
	{ "workspaceFolder", read_folder },
	{ "onCreateCommand", read_command },
	{ "updateContentCommand", read_command },
	{ "postCreateCommand", read_command },
	{ "features", refuse_features },
	{ "dockerComposeFile", refuse_member },
	{ "runArgs", refuse_member },
	{ "mounts", refuse_member },
	{ "workspaceMount", refuse_member },
	{ "privileged", refuse_member },
	{ "capAdd", refuse_member },
	{ "securityOpt", refuse_member },
	{ "appPort", refuse_member },
};

static int read_object(struct reading *r, const char *object, const struct member *rows,
		       size_t count, struct err *e)
{
	struct jsonwalk_member m;

	for (size_t i = 0; i < count; i++)
		if (jsonwalk_find(object, r->end, rows[i].name, &m) && rows[i].take(r, &m, e) < 0)
			return -1;
	return 0;
}

static int read_build(struct reading *r, const struct jsonwalk_member *m, struct err *e)
{
	if (*m->value != '{')
		return jsonscan_err(&r->document, m->value, ERR_INVALID, e,
				    "an object is needed here, not %s",
				    jsonwalk_type_name(m->value));
	return read_object(r, m->value, build_members, COUNT_OF(build_members), e);
}

/* ---- the file ---- */

/* What the members together mean. */
static int conclude(struct reading *r, struct err *e)
{
	struct request_build *b = &r->request->build;

	if (b->file && r->has_image)
		return err_set(e, ERR_INVALID, "%s: image and build exclude each other",
			       r->document.name);
	if (!b->file && !r->has_image && !settings_have(&r->request->settings, POLICY_IMAGE))
		return err_set(e, ERR_INVALID, "%s: image or build is missing", r->document.name);
	if (b->file) {
		if (!b->context)
			b->context = mem_dup(r->dir);
		request_name_build(r->request);
		if (add(r, POLICY_IMAGE, b->name, e) < 0)
			return -1;
	}
	if (r->user && !settings_have(&r->request->settings, POLICY_USER) &&
	    add(r, POLICY_USER, r->user, e) < 0)
		return -1;
	if (!settings_have(&r->request->settings, POLICY_WORKSPACE) &&
	    add(r, POLICY_WORKSPACE, r->workspace, e) < 0)
		return -1;
	if (r->inner && strcmp(r->inner, r->workspace) != 0)
		op_remark(r->ev, "the workspace is at its own path, not at '%s' (workspaceFolder)",
			  r->inner);
	if (r->commands.len)
		r->request->own_init = mem_dup(buf_text(&r->commands));
	return 0;
}

/* "project/.devcontainer/devcontainer.json" is project's. */
static char *find_workspace(const char *dir)
{
	const char *name = path_base_name(dir);

	if (strcmp(name, ".devcontainer") == 0)
		return path_absolute(dir, "..");
	return mem_dup(dir);
}

static int open_file(const char *cwd, const char *path, char **ret_path, char **ret_text,
		     size_t *ret_len, struct err *e)
{
	static const char *const places[] = { ".devcontainer/devcontainer.json",
					      ".devcontainer.json", "devcontainer.json" };
	int r = -ENOENT;

	for (size_t i = 0; path[0] ? i == 0 : i < COUNT_OF(places); i++) {
		*ret_path = path_absolute(cwd ? cwd : "/", path[0] ? path : places[i]);
		r = *ret_path ? file_read_at(AT_FDCWD, *ret_path, DEVCONTAINER_MAX_BYTES, ret_text,
					     ret_len)
			      : -EINVAL;
		if (r != -ENOENT)
			break;
		free(take_ptr(*ret_path));
	}
	if (r == -ENOENT)
		return err_set(e, ERR_NOT_FOUND, "there is no '%s'", path[0] ? path : places[0]);
	return r < 0 ? err_sys(e, -r, "read '%s'", *ret_path ? *ret_path : path) : 0;
}

int devcontainer_load(struct request *request, const char *path, const struct op_events *ev,
		      struct err *e)
{
	CLEANUP(reading_done) struct reading r = { .request = request, .ev = ev };
	cleanup_free char *name = NULL, *text = NULL;
	const char *start;
	size_t len = 0;

	buf_init(&r.commands, DEVCONTAINER_MAX_BYTES);
	if (open_file(request->ak->caller.cwd, path, &name, &text, &len, e) < 0)
		return -1;
	r.document = (struct jsonscan_text){ name, text, len };
	r.end = text + len;
	if (jsonscan_check(&r.document, JSONSCAN_COMMENTS | JSONSCAN_TRAILING_COMMAS, e) < 0)
		return -1;
	r.dir = mem_dup_bytes(name, (size_t)(path_base_name(name) - name));
	if (strlen(r.dir) > 1)
		r.dir[strlen(r.dir) - 1] = '\0';
	r.workspace = find_workspace(r.dir);
	start = jsonwalk_skip_gap(jsonwalk_start(text, r.end), r.end);
	if (*start != '{')
		return jsonscan_err(&r.document, start, ERR_INVALID, e, "it is not an object");
	if (read_object(&r, start, members, COUNT_OF(members), e) < 0)
		return -1;
	return conclude(&r, e);
}
