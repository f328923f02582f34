/*
 * complete - completes a command line; see complete.h.
 *
 * Theory of operation. The command is found by its name; the words after it are walked like the
 * parser does: an option with a value takes the next word, the others are counted. This tells
 * whether an option's name, its value or the command's n-th argument is being typed, and two tables
 * give its kind.
 */
#include "cli/complete.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "named/checkpoint.h"
#include "engine/images.h"
#include "named/inventory.h"
#include "agents/plugintable.h"
#include "policy/agent.h"
#include "policy/mode.h"
#include "policy/profile.h"

#include <string.h>

enum kind {
	KIND_NOTHING,
	KIND_SANDBOX,
	KIND_IMAGE,
	KIND_CHECKPOINT,
	KIND_PROFILE,
	KIND_MODE,
	KIND_BACKEND,
	KIND_AGENT,
	KIND_PLUGIN,
	KIND_FILE,
	KIND_DIR,
	KIND_COMMAND, /* a program, followed by its own arguments */
	KIND_OURS,    /* a command of agentkernel */
	KIND_WORDS,   /* .words */
};

struct what {
	const char *name;   /* of an option or a command */
	enum kind kinds[2]; /* of a command: its first argument, and all others */
	const char *words;  /* for KIND_WORDS, separated by blanks */
};

static const struct what values[] = {
	{ "profile", { KIND_PROFILE }, NULL },
	{ "compatibility-mode", { KIND_MODE }, NULL },
	{ "mode", { KIND_MODE }, NULL },
	{ "image", { KIND_IMAGE }, NULL },
	{ "from", { KIND_IMAGE }, NULL },
	{ "pull", { KIND_WORDS }, "missing always never" },
	{ "network-policy", { KIND_WORDS }, "allow deny" },
	{ "idle", { KIND_WORDS }, "pause stop" },
	{ "protect-new", { KIND_WORDS }, "watch strict" },
	{ "backend", { KIND_BACKEND }, NULL },
	{ "signal", { KIND_WORDS }, "TERM KILL INT HUP QUIT STOP CONT USR1 USR2" },
	{ "config", { KIND_FILE }, NULL },
	{ "env-file", { KIND_FILE }, NULL },
	{ "api-key-file", { KIND_FILE }, NULL },
	{ "tls-cert", { KIND_FILE }, NULL },
	{ "tls-key", { KIND_FILE }, NULL },
	{ "mount", { KIND_FILE }, NULL },
	{ "workspace", { KIND_DIR }, NULL },
	{ "sandbox", { KIND_SANDBOX }, NULL },
};

static const struct what arguments[] = {
	{ "run", { KIND_COMMAND, KIND_COMMAND }, NULL },
	{ "exec", { KIND_SANDBOX, KIND_COMMAND }, NULL },
	{ "sandbox start", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "sandbox stop", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "sandbox restart", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "sandbox pause", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "sandbox resume", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "sandbox remove", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "sandbox info", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "sandbox update", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "sandbox fork", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "sandbox diff", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "attach", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "ps", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "logs", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "kill", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "stats", { KIND_SANDBOX, KIND_SANDBOX }, NULL },
	{ "cp", { KIND_FILE, KIND_FILE }, NULL },
	{ "checkpoint create", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "checkpoint list", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "checkpoint restore", { KIND_SANDBOX, KIND_CHECKPOINT }, NULL },
	{ "checkpoint remove", { KIND_CHECKPOINT, KIND_CHECKPOINT }, NULL },
	{ "checkpoint export", { KIND_CHECKPOINT, KIND_FILE }, NULL },
	{ "checkpoint import", { KIND_FILE, KIND_NOTHING }, NULL },
	{ "image inspect", { KIND_IMAGE, KIND_NOTHING }, NULL },
	{ "image remove", { KIND_IMAGE, KIND_IMAGE }, NULL },
	{ "image pull", { KIND_IMAGE, KIND_NOTHING }, NULL },
	{ "commit", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "build", { KIND_DIR, KIND_NOTHING }, NULL },
	{ "image push", { KIND_IMAGE, KIND_NOTHING }, NULL },
	{ "image save", { KIND_IMAGE, KIND_FILE }, NULL },
	{ "image load", { KIND_FILE, KIND_NOTHING }, NULL },
	{ "image import", { KIND_NOTHING, KIND_FILE }, NULL },
	{ "network show", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "network log", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "network check", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "network allow", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "network block", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "network reset", { KIND_SANDBOX, KIND_NOTHING }, NULL },
	{ "agent run", { KIND_AGENT, KIND_DIR }, NULL },
	{ "plugin install", { KIND_PLUGIN, KIND_PLUGIN }, NULL },
	{ "plugin remove", { KIND_PLUGIN, KIND_PLUGIN }, NULL },
	{ "config check", { KIND_FILE, KIND_NOTHING }, NULL },
	{ "config trust", { KIND_FILE, KIND_NOTHING }, NULL },
	{ "config distrust", { KIND_FILE, KIND_NOTHING }, NULL },
	{ "completion", { KIND_WORDS, KIND_NOTHING }, "bash zsh fish" },
	{ "help", { KIND_OURS, KIND_NOTHING }, NULL },
};

static const struct what *find(const struct what *rows, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* ---- candidates ---- */

/* The typed part of the word, and the part of the word before it ("--image="). */
struct typed {
	const char *text, *before;
	size_t before_len;
};

static void add(const struct typed *t, const char *word, size_t len, struct buf *out)
{
	size_t typed_len = strlen(t->text);

	if (typed_len > len || strncmp(word, t->text, typed_len) != 0)
		return;
	buf_add(out, t->before, t->before_len);
	buf_add(out, word, len);
	buf_add_text(out, "\n");
}

static void add_words(const struct typed *t, const char *words, struct buf *out)
{
	while (*words) {
		size_t len = strcspn(words, " ");

		add(t, words, len, out);
		words += len + strspn(words + len, " ");
	}
}

static void add_names(const struct typed *t, const char *const *names, struct buf *out)
{
	for (; *names; names++)
		add(t, *names, strlen(*names), out);
}

static void add_sandboxes(const struct typed *t, const struct ak *ak, struct buf *out)
{
	CLEANUP(inventory_list_done) struct inventory_list list = { 0 };
	struct err ignored;

	if (inventory_list(ak, &list, &ignored) < 0)
		return;
	for (size_t i = 0; i < list.count; i++)
		add(t, list.entries[i].named.name, strlen(list.entries[i].named.name), out);
}

static void add_images(const struct typed *t, const struct ak *ak, struct buf *out)
{
	CLEANUP(images_list_done) struct images_list list = { 0 };
	struct err ignored;

	add(t, POLICY_HOST_IMAGE, strlen(POLICY_HOST_IMAGE), out);
	if (images_list(ak, &list, &ignored) < 0)
		return;
	for (size_t i = 0; i < list.count; i++)
		add(t, list.entries[i].name, strlen(list.entries[i].name), out);
}

static void add_checkpoints(const struct typed *t, const struct ak *ak, struct buf *out)
{
	CLEANUP(checkpoint_list_done) struct checkpoint_list list = { 0 };
	struct err ignored;

	if (checkpoint_list(ak, NULL, &list, &ignored) < 0)
		return;
	for (size_t i = 0; i < list.count; i++)
		add(t, list.entries[i].id, strlen(list.entries[i].id), out);
}

/* Adds first words, and short forms: "start" for "sandbox start". */
static void add_commands(const struct typed *t, struct buf *out)
{
	const char *last = "";

	for (const struct cli_command *const *c = cli_commands; *c; c++) {
		size_t len = strcspn((*c)->name, " ");

		if (strncmp(last, (*c)->name, len + 1) != 0 && strncmp(last, (*c)->name, len) != 0)
			add(t, (*c)->name, len, out);
		last = (*c)->name;
		if (cli_short_name(*c))
			add(t, cli_short_name(*c), strlen(cli_short_name(*c)), out);
	}
}

static void add_kind(enum kind kind, const char *words, const struct typed *t, const struct ak *ak,
		     struct buf *out)
{
	switch (kind) {
	case KIND_SANDBOX:
		add_sandboxes(t, ak, out);
		break;
	case KIND_IMAGE:
		add_images(t, ak, out);
		break;
	case KIND_CHECKPOINT:
		add_checkpoints(t, ak, out);
		break;
	case KIND_PROFILE:
		add_names(t, profile_names, out);
		break;
	case KIND_MODE:
		add_names(t, mode_names, out);
		break;
	case KIND_BACKEND:
		add_names(t, policy_backends, out);
		break;
	case KIND_AGENT:
		for (size_t i = 0; i < agent_count; i++)
			add_words(t, agent_all[i].name, out);
		break;
	case KIND_PLUGIN:
		for (unsigned i = 0; i < PLUGINTABLE_CLIENT_COUNT; i++)
			add_words(t, plugintable_clients[i].name, out);
		add_words(t, "all", out);
		break;
	case KIND_FILE:
		buf_add_text(out, COMPLETE_FILES "\n");
		break;
	case KIND_DIR:
		buf_add_text(out, COMPLETE_DIRS "\n");
		break;
	case KIND_COMMAND:
		buf_add_text(out, COMPLETE_COMMANDS "\n");
		break;
	case KIND_OURS:
		add_commands(t, out);
		break;
	case KIND_WORDS:
		add_words(t, words, out);
		break;
	case KIND_NOTHING:
		break;
	}
}

/* ---- position ---- */

static const struct opt *find_option(const struct cli_command *c, const char *word, size_t len)
{
	for (size_t i = 0; c->options && i < c->options->count; i++) {
		const struct opt *o = &c->options->rows[i];

		if (len > 2 && strlen(o->name) == len - 2 &&
		    strncmp(o->name, word + 2, len - 2) == 0)
			return o;
		if (len == 2 && o->letter && o->letter == word[1])
			return o;
	}
	return NULL;
}

static void add_options(const struct cli_command *c, const struct typed *t, struct buf *out)
{
	for (size_t i = 0; c->options && i < c->options->count; i++) {
		cleanup_free char *name = mem_format("--%s", c->options->rows[i].name);

		add(t, name, strlen(name), out);
	}
	add(t, "--help", 6, out);
}

static void add_value(const struct opt *o, const struct typed *t, const struct ak *ak,
		      struct buf *out)
{
	const struct what *w = find(values, COUNT_OF(values), o->name);

	if (w)
		add_kind(w->kinds[0], w->words, t, ak, out);
}

/* Completes the words after a command's name; the last is being typed. */
static void complete_arguments(const struct cli_command *c, const struct ak *ak, char **words,
			       struct buf *out)
{
	const struct what *w = find(arguments, COUNT_OF(arguments), c->name);
	unsigned count = 0; /* arguments before the typed one */
	struct typed t = { .text = "", .before = "" };

	for (; words[0] && words[1]; words++) {
		const struct opt *o =
			words[0][0] == '-' ? find_option(c, words[0], strlen(words[0])) : NULL;
		bool takes_next = o && o->value && !opts_has_optional_value(o);

		if (words[0][0] != '-') {
			/* the words after a program's name are its own */
			if (w && w->kinds[count > 0] == KIND_COMMAND) {
				buf_add_text(out, COMPLETE_FILES "\n");
				return;
			}
			count++;
		}
		if (takes_next && !words[2]) { /* its value is being typed */
			t.text = words[1];
			add_value(o, &t, ak, out);
			return;
		}
		if (takes_next)
			words++;
	}
	if (!words[0])
		return;
	if (strncmp(words[0], "--", 2) == 0 && strchr(words[0], '=')) {
		size_t len = strcspn(words[0], "=");
		const struct opt *o = find_option(c, words[0], len);

		t = (struct typed){ words[0] + len + 1, words[0], len + 1 };
		if (o)
			add_value(o, &t, ak, out);
		return;
	}
	t.text = words[0];
	if (words[0][0] == '-')
		add_options(c, &t, out);
	else if (w)
		add_kind(w->kinds[count > 0], w->words, &t, ak, out);
}

/* Completes the second word of a command. */
static void complete_second(const char *first, const char *typed, struct buf *out)
{
	const struct typed t = { .text = typed, .before = "" };
	size_t len = strlen(first);

	for (const struct cli_command *const *c = cli_commands; *c; c++)
		if (strncmp((*c)->name, first, len) == 0 && (*c)->name[len] == ' ')
			add(&t, (*c)->name + len + 1, strlen((*c)->name + len + 1), out);
}

void complete_words(const struct ak *ak, char **words, struct buf *out)
{
	const struct typed first = { .text = words[0] ? words[0] : "", .before = "" };
	int used = 0;
	const struct cli_command *c = words[0] && words[1] ? cli_find_command(words, &used) : NULL;

	if (!words[0] || !words[1])
		add_commands(&first, out);
	else if (c && words[used])
		complete_arguments(c, ak, words + used, out);
	else if (!words[2])
		complete_second(words[0], words[1], out);
}
