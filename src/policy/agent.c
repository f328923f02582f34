/* agent - the coding agents that we know; see agent.h. */
#include "policy/agent.h"

#include "base/cleanup.h"

#include <string.h>

static const char *const claude_keys[] = { "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
					   "CLAUDE_CODE_OAUTH_TOKEN", NULL };
/* OPENAI_API_KEY is what people have; `codex exec` reads CODEX_API_KEY alone. */
static const char *const codex_keys[] = { "OPENAI_API_KEY", "CODEX_API_KEY", NULL };
static const char *const gemini_keys[] = { "GEMINI_API_KEY", "GOOGLE_API_KEY", NULL };
static const char *const opencode_keys[] = { "ANTHROPIC_API_KEY",  "OPENAI_API_KEY",
					     "GEMINI_API_KEY",     "GOOGLE_API_KEY",
					     "OPENROUTER_API_KEY", NULL };

/* Root inside is nobody outside, and the program's directory is read-only: no update of itself. */
static const char *const claude_env[] = { "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", NULL };
static const char *const opencode_env[] = { "OPENCODE_DISABLE_AUTOUPDATE=1", NULL };
static const char *const no_env[] = { NULL };

static const struct agent_file no_files[] = { { NULL, NULL, NULL } };

/*
 * Codex runs every command in a sandbox of its own, which takes user namespaces that no sandbox of
 * ours gives away: without this each of its commands fails. Ours is the sandbox here.
 */
static const struct agent_file codex_files[] = {
	{ ".codex/config.toml", NULL,
	  "# agentkernel runs codex in a sandbox, in which codex cannot make one of its own\n"
	  "sandbox_mode = \"danger-full-access\"\n" },
	{ NULL, NULL, NULL },
};

/*
 * Which key counts is a setting of Gemini's; where it has none, it guesses from variables, and with
 * GOOGLE_GEMINI_BASE_URL guesses a way to sign in that it then refuses (0.61: "Invalid auth method
 * selected"), and GOOGLE_API_KEY alone it does not take for one.
 */
static const struct agent_file gemini_files[] = {
	{ ".gemini/settings.json", "GEMINI_API_KEY",
	  "{ \"security\": { \"auth\": { \"selectedType\": \"gemini-api-key\" } } }\n" },
	{ ".gemini/settings.json", "GOOGLE_API_KEY",
	  "{ \"security\": { \"auth\": { \"selectedType\": \"vertex-ai\" } } }\n" },
	{ NULL, NULL, NULL },
};

const struct agent agent_all[] = {
	{ "claude", "claude", "@anthropic-ai/claude-code", MODE_CLAUDE, claude_keys, NULL,
	  claude_env, ".claude", no_files },
	{ "codex", "codex", "@openai/codex", MODE_CODEX, codex_keys, "CODEX_API_KEY", no_env,
	  ".codex", codex_files },
	{ "gemini", "gemini", "@google/gemini-cli", MODE_GEMINI, gemini_keys, NULL, no_env,
	  ".gemini", gemini_files },
	/* it talks to whichever model the user has chosen, so its network is the profile's */
	{ "opencode", "opencode", "opencode-ai", MODE_NATIVE, opencode_keys, NULL, opencode_env,
	  ".opencode", no_files },
};
const size_t agent_count = COUNT_OF(agent_all);

const struct agent *agent_find(const char *name)
{
	for (size_t i = 0; i < agent_count; i++)
		if (strcmp(agent_all[i].name, name) == 0)
			return &agent_all[i];
	return NULL;
}
