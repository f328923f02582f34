/* agent - the coding agents that we know; see agent.h. */
#include "policy/agent.h"

#include "base/cleanup.h"

#include <string.h>

static const char *const claude_keys[] = { "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
					   "CLAUDE_CODE_OAUTH_TOKEN", NULL };
static const char *const codex_keys[] = { "OPENAI_API_KEY", "CODEX_API_KEY", NULL };
static const char *const gemini_keys[] = { "GEMINI_API_KEY", "GOOGLE_API_KEY", NULL };
static const char *const opencode_keys[] = { "ANTHROPIC_API_KEY",  "OPENAI_API_KEY",
					     "GEMINI_API_KEY",     "GOOGLE_API_KEY",
					     "OPENROUTER_API_KEY", NULL };

/* Root inside is nobody outside, and the program's directory is read-only: no update of itself. */
static const char *const claude_env[] = { "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", NULL };
static const char *const opencode_env[] = { "OPENCODE_DISABLE_AUTOUPDATE=1", NULL };
static const char *const no_env[] = { NULL };

const struct agent agent_all[] = {
	{ "claude", "claude", "@anthropic-ai/claude-code", MODE_CLAUDE, claude_keys, claude_env,
	  ".claude" },
	{ "codex", "codex", "@openai/codex", MODE_CODEX, codex_keys, no_env, ".codex" },
	{ "gemini", "gemini", "@google/gemini-cli", MODE_GEMINI, gemini_keys, no_env, ".gemini" },
	/* it talks to whichever model the user has chosen, so its network is the profile's */
	{ "opencode", "opencode", "opencode-ai", MODE_NATIVE, opencode_keys, opencode_env,
	  ".opencode" },
};
const size_t agent_count = COUNT_OF(agent_all);

const struct agent *agent_find(const char *name)
{
	for (size_t i = 0; i < agent_count; i++)
		if (strcmp(agent_all[i].name, name) == 0)
			return &agent_all[i];
	return NULL;
}
