/* agent - the supported coding agents; see agent.h. */
#include "policy/agent.h"

#include "base/cleanup.h"

#include <string.h>

static const char *const claude_keys[] = { "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
					   "CLAUDE_CODE_OAUTH_TOKEN", NULL };
/* Users have OPENAI_API_KEY, but `codex exec` reads only CODEX_API_KEY. */
static const char *const codex_keys[] = { "OPENAI_API_KEY", "CODEX_API_KEY", NULL };
static const char *const gemini_keys[] = { "GEMINI_API_KEY", "GOOGLE_API_KEY", NULL };
static const char *const opencode_keys[] = { "ANTHROPIC_API_KEY",  "OPENAI_API_KEY",
					     "GEMINI_API_KEY",     "GOOGLE_API_KEY",
					     "OPENROUTER_API_KEY", NULL };

/* IS_SANDBOX: root inside has no rights outside. No update: the program is read-only. */
static const char *const claude_env[] = { "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", NULL };
static const char *const opencode_env[] = { "OPENCODE_DISABLE_AUTOUPDATE=1", NULL };
static const char *const no_env[] = { NULL };

static const struct agent_file no_files[] = { { NULL, NULL, NULL } };

/*
 * Codex runs every command in its own sandbox, which needs user namespaces, and our sandboxes
 * forbid those: without this setting each of its commands fails.
 */
static const struct agent_file codex_files[] = {
	{ ".codex/config.toml", NULL,
	  "# agentkernel runs codex in a sandbox, in which codex cannot make one of its own\n"
	  "sandbox_mode = \"danger-full-access\"\n" },
	{ NULL, NULL, NULL },
};

/*
 * Gemini has a setting for the kind of key. Without it Gemini guesses from variables: with
 * GOOGLE_GEMINI_BASE_URL it picks a sign-in method that it then rejects (0.61: "Invalid auth method
 * selected"), and it does not recognise GOOGLE_API_KEY alone.
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
	/* opencode uses whichever model the user chose, so it keeps the profile's network */
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
