/*
 * hints - rewords suggestions in messages for callers of operations; see hints.h.
 *
 * Theory of operation. A text is searched for the commands and options of two tables. A command
 * ends with the quote it began with, or at the end of its bracket or sentence; its arguments are
 * dropped, because the caller knows which sandbox it asked about. An option is one word. A quoted
 * value of the caller ('--memory') is left unchanged.
 */
#include "rpc/hints.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <string.h>

#define TEXT_MAX_BYTES (256u << 10)

struct hint {
	const char *said, *instead;
	bool has_value; /* of an option: the value is moved before it */
};

/* A longer text comes before one that it starts with. */
static const struct hint commands[] = {
	{ "agentkernel start", "sandbox_start" },
	{ "agentkernel stop -f", "sandbox_stop with force" },
	{ "agentkernel stop", "sandbox_stop" },
	{ "agentkernel restart", "sandbox_stop and sandbox_start" },
	{ "agentkernel resume", "sandbox_resume" },
	{ "agentkernel list", "sandbox_list" },
	{ "agentkernel remove", "sandbox_remove" },
	{ "agentkernel create", "sandbox_create" },
	{ "agentkernel run -i", "sandbox_run with image" },
	{ "agentkernel run", "sandbox_run" },
	{ "agentkernel ps", "sandbox_exec_list" },
	{ "agentkernel checkpoint list", "checkpoint_list" },
	{ "agentkernel checkpoint remove", "checkpoint_remove" },
	{ "agentkernel checkpoint", "sandbox_checkpoint" },
	{ "agentkernel network log", "sandbox_network_log" },
	{ "agentkernel network check", "sandbox_network_check" },
};

/* Commands that callers cannot use: kept, and marked as the user's. */
static const struct hint users_commands[] = {
	{ "agentkernel doctor", "" }, { "agentkernel daemon", "" }, { "agentkernel image", "" },
	{ "agentkernel config", "" }, { "agentkernel init", "" },
};

#define CONFIGURED(name) name " of the user's agentkernel.toml"

static const struct hint options[] = {
	{ "--image host", "image 'host'" },
	{ "--image", "image" },
	{ "--profile", "profile" },
	{ "--memory", "memory" },
	{ "--cpus", "cpus" },
	{ "--timeout", "timeout_ms" },
	{ "--workdir", "cwd" },
	{ "--env", "env" },
	{ "--user", "user" },
	{ "--signal", "signal" },
	{ "--ttl", "ttl_ms" },
	{ "--label", "labels" },
	{ "--from", "the user's option --from" },
	{ "--no-network", "network false" },
	{ "--network", "network true" },
	{ "--allow-host", CONFIGURED("in [network] allow"), true },
	{ "--allow-cidr", CONFIGURED("in [network] allow"), true },
	{ "--block-host", CONFIGURED("in [network] block"), true },
	{ "--block-cidr", CONFIGURED("in [network] block"), true },
	{ "--network-policy", CONFIGURED("[network] policy") },
	{ "--bandwidth", CONFIGURED("[network] bandwidth") },
	{ "--pids", CONFIGURED("[resources] pids") },
	{ "--disk", CONFIGURED("[resources] disk") },
	{ "--cpu-time", CONFIGURED("[resources] cpu_time") },
	{ "--unprotect", CONFIGURED("in [security] unprotect"), true },
	{ "--protect", CONFIGURED("in [security] protect"), true },
	{ "--workspace, or -W in short", "files to the call, or the user's option --workspace" },
	{ "--workspace", "the user's option --workspace" },
	{ "--mount", "the user's option --mount" },
	{ "--clone", "the user's option --clone" },
	{ "--pull", "the user's option --pull" },
	{ "--config", "the user's option --config" },
	{ "--accept-missing", "the user's option --accept-missing" },
};

static const struct hint *find(const struct hint *list, size_t count, const char *text)
{
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(list[i].said);

		if (strncmp(text, list[i].said, len) == 0 && !isalnum((unsigned char)text[len]) &&
		    text[len] != '-' && text[len] != '_')
			return &list[i];
	}
	return NULL;
}

/* Length of the command that begins at `text`, with its arguments. */
static size_t length_of(const char *text, bool is_quoted)
{
	size_t len = strcspn(text, is_quoted ? "'" : ");,\n");

	return text[len] == '\'' ? len + 1 : len;
}

/* Translates a command at `text`; returns its length, 0 if none begins here. */
static size_t take_command(const char *text, struct buf *out)
{
	bool is_quoted = *text == '\'';
	const struct hint *h = find(commands, COUNT_OF(commands), text + is_quoted);

	if (h) {
		buf_add_text(out, h->instead);
		return is_quoted + length_of(text + is_quoted, is_quoted);
	}
	h = find(users_commands, COUNT_OF(users_commands), text + is_quoted);
	if (!h)
		return 0;
	buf_addf(out, "the user's command %.*s", (int)(is_quoted + strlen(h->said)), text);
	return is_quoted + strlen(h->said);
}

static size_t take_option(const char *text, char before, struct buf *out)
{
	const struct hint *h = NULL;
	const char *value;
	size_t len = 0;

	if (before != '\'' && before != '-' && !isalnum((unsigned char)before))
		h = find(options, COUNT_OF(options), text);
	if (!h)
		return 0;
	value = text + strlen(h->said);
	if (h->has_value && *value == ' ')
		len = strcspn(value + 1, " ),;\n");
	if (len)
		buf_addf(out, "'%.*s' ", (int)len, value + 1);
	buf_add_text(out, h->instead);
	return strlen(h->said) + (len ? len + 1 : 0);
}

void hints_translate_text(const char *text, struct buf *out)
{
	char before = ' ';

	while (*text) {
		size_t used = 0;

		if (*text == '\'' ||
		    (*text == 'a' && !isalnum((unsigned char)before) && before != '\''))
			used = take_command(text, out);
		if (!used && strncmp(text, "--", 2) == 0)
			used = take_option(text, before, out);
		if (!used) {
			buf_add(out, text, 1);
			used = 1;
		}
		text += used;
		before = text[-1];
	}
}

/* ---- in a result ---- */

static bool is_told(const char *key)
{
	static const char *const keys[] = { "message", "notes", "note", "reason", "fix" };

	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static void translate_members(json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		cleanup_buf struct buf text;

		buf_init(&text, TEXT_MAX_BYTES);
		if (!json_is_string(value) || !is_told(key))
			continue;
		hints_translate_text(json_string_value(value), &text);
		if (!text.is_cut)
			(void)json_string_setn(value, buf_text(&text), text.len);
	}
}

void hints_translate(json_t *result)
{
	const char *key;
	json_t *value, *entry;
	size_t index;

	translate_members(result);
	json_object_foreach(result, key, value)
	{
		if (json_is_object(value))
			translate_members(value);
		json_array_foreach(value, index, entry)
		{
			translate_members(entry);
		}
	}
}
