/* pluginentry - our entry in a client's file; see pluginentry.h. */
#include "agents/pluginentry.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/jsonedit.h"
#include "base/mem.h"
#include "base/tomledit.h"

#include <string.h>

static const char *const server_keys[] = { "mcpServers", PLUGINENTRY_NAME, NULL };
static const char *const opencode_keys[] = { "mcp", PLUGINENTRY_NAME, NULL };
static const char *const toml_keys[] = { "mcp_servers", PLUGINENTRY_NAME, NULL };
static const char *const arguments[] = { "mcp", "server" };

/*
 * Codex starts a server with a few variables (HOME, PATH, the locale's) and those named in its
 * settings. Without these the server would use other sandboxes, another configuration, and so
 * another ceiling, than the user's shell.
 */
static const char *const passed_variables[] = {
	"AGENTKERNEL_HOME", "AGENTKERNEL_IMAGE", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	"XDG_RUNTIME_DIR",  "DOCKER_CONFIG",     "SSL_CERT_FILE",   "SSL_CERT_DIR",
	"HTTPS_PROXY",      "https_proxy",       "http_proxy",      "ALL_PROXY",
	"all_proxy",        "NO_PROXY",          "no_proxy",
};

/* ---- the entries ---- */

static void format_server(const char *command, unsigned flags, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_text(&j, "command", command);
	json_open_array(&j, "args");
	for (size_t i = 0; i < COUNT_OF(arguments); i++)
		json_add_text(&j, NULL, arguments[i]);
	json_close_array(&j);
	if (flags & PLUGINENTRY_APPROVE)
		json_add_bool(&j, "trust", true);
	json_close_object(&j);
}

static void format_opencode_server(const char *command, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_open_object(&j, NULL);
	json_add_text(&j, "type", "local");
	json_open_array(&j, "command");
	json_add_text(&j, NULL, command);
	for (size_t i = 0; i < COUNT_OF(arguments); i++)
		json_add_text(&j, NULL, arguments[i]);
	json_close_array(&j);
	json_add_bool(&j, "enabled", true);
	json_close_object(&j);
}

static void add_toml_list(struct buf *out, const char *key, const char *const *texts, size_t count)
{
	buf_addf(out, "%s = [", key);
	for (size_t i = 0; i < count; i++) {
		buf_add_text(out, i > 0 ? ", " : "");
		tomledit_add_string(out, texts[i]);
	}
	buf_add_text(out, "]\n");
}

static void format_toml_server(const char *command, unsigned flags, struct buf *out)
{
	buf_add_text(out, "command = ");
	tomledit_add_string(out, command);
	buf_add_text(out, "\n");
	add_toml_list(out, "args", arguments, COUNT_OF(arguments));
	add_toml_list(out, "env_vars", passed_variables, COUNT_OF(passed_variables));
	if (flags & PLUGINENTRY_APPROVE)
		buf_add_text(out, "default_tools_approval_mode = \"approve\"\n");
}

/* ---- JSON ---- */

static const char *const *json_keys(const struct pluginentry_file *f)
{
	return f->kind->content == PLUGINTABLE_SERVER ? server_keys : opencode_keys;
}

static void format_json(const struct pluginentry_file *f, unsigned flags, struct buf *out)
{
	if (f->kind->content == PLUGINTABLE_SERVER)
		format_server(f->command, flags, out);
	else
		format_opencode_server(f->command, out);
}

static int look_json(const struct pluginentry_file *f, unsigned flags, enum pluginentry_state *ret,
		     struct err *e)
{
	static const enum pluginentry_state states[] = {
		[JSONEDIT_ABSENT] = PLUGINENTRY_ABSENT,
		[JSONEDIT_SAME] = PLUGINENTRY_SAME,
		[JSONEDIT_DIFFERENT] = PLUGINENTRY_DIFFERENT,
	};
	const struct jsonscan_text t = { f->path, f->text, f->len };
	enum jsonedit_state state = JSONEDIT_ABSENT;
	cleanup_buf struct buf value;

	buf_init(&value, BUF_TEXT_MAX_BYTES);
	format_json(f, flags, &value);
	if (jsonedit_look(&t, json_keys(f), buf_text(&value), f->kind->flags, &state, e) < 0)
		return -1;
	*ret = states[state];
	return 0;
}

static int set_json(const struct pluginentry_file *f, unsigned flags,
		    struct pluginentry_change *ret, struct err *e)
{
	const struct jsonscan_text t = { f->path, f->text, f->len };
	cleanup_buf struct buf value;
	int r;

	buf_init(&value, BUF_TEXT_MAX_BYTES);
	format_json(f, flags, &value);
	r = jsonedit_set(&t, json_keys(f), buf_text(&value), f->kind->flags | JSONEDIT_REPLACE,
			 &ret->text, &ret->len, e);
	ret->is_change = r > 0;
	return r < 0 ? -1 : 0;
}

static int remove_json(const struct pluginentry_file *f, struct pluginentry_change *ret,
		       struct err *e)
{
	const struct jsonscan_text t = { f->path, f->text, f->len };
	int r = jsonedit_remove(&t, json_keys(f), f->kind->flags, &ret->text, &ret->len, e);

	ret->is_change = r > 0;
	ret->is_empty = r > 0 && jsonedit_is_empty(ret->text, ret->len);
	return r < 0 ? -1 : 0;
}

/* ---- TOML ---- */

static int change_toml(const struct pluginentry_file *f, const char *body, unsigned flags,
		       struct pluginentry_change *ret, struct err *e)
{
	const struct tomledit_table table = { f->path, f->text, f->len, toml_keys };
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, 0); /* without memory until the result is assigned */
	r = body ? tomledit_set_table(&table, body, flags, &out, e)
		 : tomledit_remove_table(&table, &out, e);
	if (r < 0)
		return -1;
	ret->is_change = r != TOMLEDIT_UNCHANGED;
	if (!ret->is_change)
		return 0;
	ret->len = out.len;
	ret->text = out.bytes ? take_ptr(out.bytes) : mem_dup("");
	ret->is_empty = strspn(ret->text, " \t\r\n") == ret->len;
	return 0;
}

static int set_toml(const struct pluginentry_file *f, unsigned flags, unsigned toml_flags,
		    struct pluginentry_change *ret, struct err *e)
{
	cleanup_buf struct buf body;

	buf_init(&body, BUF_TEXT_MAX_BYTES);
	format_toml_server(f->command, flags, &body);
	return change_toml(f, buf_text(&body), toml_flags, ret, e);
}

/* A trial run of setting the entry shows its state. */
static int look_toml(const struct pluginentry_file *f, unsigned flags, enum pluginentry_state *ret,
		     struct err *e)
{
	struct pluginentry_change change = { 0 };
	int r = set_toml(f, flags, 0, &change, e);

	free(change.text);
	if (r < 0 && e->code != ERR_EXISTS)
		return -1;
	if (r < 0)
		*ret = PLUGINENTRY_DIFFERENT;
	else
		*ret = change.is_change ? PLUGINENTRY_ABSENT : PLUGINENTRY_SAME;
	return 0;
}

/* ---- texts ---- */

static void look_text(const struct pluginentry_file *f, enum pluginentry_state *ret)
{
	const char *text = *f->kind->text;

	if (!f->is_there)
		*ret = PLUGINENTRY_ABSENT;
	else if (f->len == strlen(text) && memcmp(f->text, text, f->len) == 0)
		*ret = PLUGINENTRY_SAME;
	else
		*ret = PLUGINENTRY_DIFFERENT;
}

/* ---- all kinds ---- */

/* Compares the file with what these flags would write. */
static int look_for(const struct pluginentry_file *f, unsigned flags, enum pluginentry_state *ret,
		    struct err *e)
{
	switch (f->kind->content) {
	case PLUGINTABLE_SERVER:
	case PLUGINTABLE_OPENCODE_SERVER:
		return look_json(f, flags, ret, e);
	case PLUGINTABLE_TOML_SERVER:
		return look_toml(f, flags, ret, e);
	case PLUGINTABLE_TEXT:
		break;
	}
	look_text(f, ret);
	return 0;
}

int pluginentry_look(const struct pluginentry_file *f, enum pluginentry_state *ret, struct err *e)
{
	enum pluginentry_state state = PLUGINENTRY_ABSENT;

	if (look_for(f, 0, ret, e) < 0)
		return -1;
	if (*ret != PLUGINENTRY_DIFFERENT || !f->kind->can_approve)
		return 0;
	if (look_for(f, PLUGINENTRY_APPROVE, &state, e) < 0)
		return -1;
	if (state == PLUGINENTRY_SAME)
		*ret = PLUGINENTRY_APPROVED;
	return 0;
}

static int refuse_different(const struct pluginentry_file *f, const char *words, struct err *e)
{
	if (f->kind->content == PLUGINTABLE_TEXT)
		return err_set(e, ERR_EXISTS,
			       "'%s' is there already and is not what agentkernel writes (--force "
			       "%s it)",
			       f->path, words);
	return err_set(
		e, ERR_EXISTS,
		"'%s' has an entry '%s' already that is not what agentkernel writes (--force "
		"%s it)",
		f->path, PLUGINENTRY_NAME, words);
}

int pluginentry_set(const struct pluginentry_file *f, unsigned flags,
		    struct pluginentry_change *ret, struct err *e)
{
	enum pluginentry_state state = PLUGINENTRY_ABSENT;

	*ret = (struct pluginentry_change){ 0 };
	if (pluginentry_look(f, &state, e) < 0)
		return -1;
	if (!f->kind->can_approve)
		flags &= ~(unsigned)PLUGINENTRY_APPROVE;
	if (state == PLUGINENTRY_SAME && !(flags & PLUGINENTRY_APPROVE))
		return 0;
	if (state == PLUGINENTRY_APPROVED && flags != PLUGINENTRY_FORCE)
		return 0;
	if (state == PLUGINENTRY_DIFFERENT && !(flags & PLUGINENTRY_FORCE))
		return refuse_different(f, "replaces", e);
	switch (f->kind->content) {
	case PLUGINTABLE_SERVER:
	case PLUGINTABLE_OPENCODE_SERVER:
		return set_json(f, flags, ret, e);
	case PLUGINTABLE_TOML_SERVER:
		return set_toml(f, flags, TOMLEDIT_REPLACE, ret, e);
	case PLUGINTABLE_TEXT:
		break;
	}
	ret->is_change = true;
	ret->text = mem_dup(*f->kind->text);
	ret->len = strlen(ret->text);
	return 0;
}

int pluginentry_remove(const struct pluginentry_file *f, unsigned flags,
		       struct pluginentry_change *ret, struct err *e)
{
	enum pluginentry_state state = PLUGINENTRY_ABSENT;

	*ret = (struct pluginentry_change){ 0 };
	if (pluginentry_look(f, &state, e) < 0)
		return -1;
	if (state == PLUGINENTRY_ABSENT)
		return 0;
	if (state == PLUGINENTRY_DIFFERENT && !(flags & PLUGINENTRY_FORCE))
		return refuse_different(f, "removes", e);
	switch (f->kind->content) {
	case PLUGINTABLE_SERVER:
	case PLUGINTABLE_OPENCODE_SERVER:
		return remove_json(f, ret, e);
	case PLUGINTABLE_TOML_SERVER:
		return change_toml(f, NULL, 0, ret, e);
	case PLUGINTABLE_TEXT:
		break;
	}
	*ret = (struct pluginentry_change){ .is_change = true, .is_empty = true };
	return 0;
}
