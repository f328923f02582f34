/*
 * plugintable - the coding agents that agentkernel can be added to; see plugintable.h.
 *
 * The files come from each client's documentation and were tried with the client itself (Claude
 * Code 2.1, Codex 0.166, Gemini CLI 0.61, OpenCode 1.18). Codex and Gemini share one skill, because
 * Gemini reads both places and complains about two of the same name.
 */
#include "agents/plugintable.h"

#include "base/cleanup.h"
#include "base/jsonedit.h"
#include "base/mem.h"
#include "agents/plugintext.h"
#include "policy/environment.h"
#include "state/ak.h"

#include <assert.h>

enum home {
	HOME_OWN,
	HOME_CLAUDE_STATE, /* .claude.json is beside .claude, but inside CLAUDE_CONFIG_DIR */
	HOME_CLAUDE,
	HOME_CODEX,
	HOME_GEMINI,
	HOME_CONFIG,
};

static const struct {
	const char *variable;
	const char *beneath_home; /* if the variable is not set */
} homes[] = {
	[HOME_OWN] = { NULL, "" },
	[HOME_CLAUDE_STATE] = { "CLAUDE_CONFIG_DIR", "" },
	[HOME_CLAUDE] = { "CLAUDE_CONFIG_DIR", "/.claude" },
	[HOME_CODEX] = { "CODEX_HOME", "/.codex" },
	[HOME_GEMINI] = { "GEMINI_CLI_HOME", "" },
	[HOME_CONFIG] = { "XDG_CONFIG_HOME", "/.config" },
};

static const struct plugintable_file claude[] = {
	{ .project = { ".mcp.json" },
	  .global = { ".claude.json" },
	  .home = HOME_CLAUDE_STATE,
	  .content = PLUGINTABLE_SERVER,
	  .mode = S_IRUSR | S_IWUSR }, /* the client stores more than settings in it */
	{ .project = { ".claude/skills/agentkernel/SKILL.md" },
	  .global = { "skills/agentkernel/SKILL.md" },
	  .home = HOME_CLAUDE,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_skill },
	{ .project = { ".claude/commands/sandbox.md" },
	  .global = { "commands/sandbox.md" },
	  .home = HOME_CLAUDE,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_command },
};

static const struct plugintable_file codex[] = {
	{ .project = { ".codex/config.toml" },
	  .global = { "config.toml" },
	  .home = HOME_CODEX,
	  .content = PLUGINTABLE_TOML_SERVER,
	  .can_approve = true },
	{ .project = { ".agents/skills/agentkernel/SKILL.md" },
	  .global = { ".agents/skills/agentkernel/SKILL.md" },
	  .home = HOME_OWN,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_skill },
};

static const struct plugintable_file gemini[] = {
	{ .project = { ".gemini/settings.json" },
	  .global = { ".gemini/settings.json" },
	  .home = HOME_GEMINI,
	  .content = PLUGINTABLE_SERVER,
	  .flags = JSONEDIT_ALLOW_COMMENTS,
	  .can_approve = true },
	{ .project = { ".agents/skills/agentkernel/SKILL.md" },
	  .global = { ".agents/skills/agentkernel/SKILL.md" },
	  .home = HOME_GEMINI,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_skill },
	{ .project = { ".gemini/commands/sandbox.toml" },
	  .global = { ".gemini/commands/sandbox.toml" },
	  .home = HOME_GEMINI,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_command_toml },
};

static const struct plugintable_file opencode[] = {
	{ .project = { "opencode.json", "opencode.jsonc", ".opencode/opencode.json",
		       ".opencode/opencode.jsonc" },
	  .global = { "opencode/opencode.json", "opencode/opencode.jsonc" },
	  .home = HOME_CONFIG,
	  .content = PLUGINTABLE_OPENCODE_SERVER,
	  .flags = JSONEDIT_ALLOW_COMMENTS | JSONEDIT_ALLOW_TRAILING_COMMAS },
	{ .project = { ".opencode/skills/agentkernel/SKILL.md" },
	  .global = { "opencode/skills/agentkernel/SKILL.md" },
	  .home = HOME_CONFIG,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_skill },
	{ .project = { ".opencode/commands/sandbox.md" },
	  .global = { "opencode/commands/sandbox.md" },
	  .home = HOME_CONFIG,
	  .content = PLUGINTABLE_TEXT,
	  .text = &plugintext_command },
};

/* There is no global file that all clients read. */
static const struct plugintable_file mcp[] = {
	{ .project = { ".mcp.json" }, .content = PLUGINTABLE_SERVER },
};

/* What the user must do in the client after the installation, by scope. */
static const char claude_note[] =
	"claude asks once whether to use this project's server (claude -p "
	"uses it at once)";
static const char codex_note[] =
	"codex reads .codex/config.toml in a project that you trust: start "
	"codex here once, and say so";
static const char gemini_note[] =
	"gemini uses MCP servers in a folder that you trust: start gemini "
	"there once, and say so, or set GEMINI_CLI_TRUST_WORKSPACE=true "
	"(--skip-trust is not enough)";

/* How the client handles tool calls. */
static const char claude_approval[] = "claude asks before each call, and claude -p refuses them: "
				      "choose \"don't ask again\", or start it with "
				      "--allowedTools mcp__agentkernel";
static const char codex_approval[] =
	"codex asks before each call that changes something, and codex "
	"exec refuses them (add --approve to let it call without "
	"asking)";
static const char gemini_approval[] =
	"gemini asks before each call, and gemini -p has no such tools "
	"(add --approve to let it call without asking)";

const struct plugintable_client_row plugintable_clients[] = {
	[PLUGINTABLE_CLAUDE] = { "claude", claude, COUNT_OF(claude),
				 .notes = { [PLUGINTABLE_PROJECT] = claude_note },
				 .approval = claude_approval },
	[PLUGINTABLE_CODEX] = { "codex", codex, COUNT_OF(codex),
				.notes = { [PLUGINTABLE_PROJECT] = codex_note },
				.approval = codex_approval },
	[PLUGINTABLE_GEMINI] = { "gemini", gemini, COUNT_OF(gemini),
				 .notes = { gemini_note, gemini_note },
				 .approval = gemini_approval },
	[PLUGINTABLE_OPENCODE] = { "opencode", opencode, COUNT_OF(opencode) },
	[PLUGINTABLE_MCP] = { "mcp", mcp, COUNT_OF(mcp) },
};
static_assert(COUNT_OF(plugintable_clients) == PLUGINTABLE_CLIENT_COUNT, "a client has no row");

/* NULL: not set, or empty. */
static int read_directory(const struct ak *ak, const char *variable, const char **ret,
			  struct err *e)
{
	const char *value = ak ? environment_get(ak->caller.environ_list, variable) : NULL;

	*ret = NULL;
	if (!value || !*value)
		return 0;
	if (value[0] != '/')
		return err_set(e, ERR_INVALID, "%s is '%s', which is not an absolute path",
			       variable, value);
	*ret = value;
	return 0;
}

int plugintable_find_home(const struct plugintable_file *f, const struct ak *ak, char **ret,
			  struct err *e)
{
	const char *own = NULL;
	const char *home = NULL;

	if (homes[f->home].variable && read_directory(ak, homes[f->home].variable, &own, e) < 0)
		return -1;
	if (!own && read_directory(ak, "HOME", &home, e) < 0)
		return -1;
	if (!own && !home)
		return err_set(e, ERR_INVALID,
			       "HOME is not set, so your own settings cannot be found");
	*ret = own ? mem_dup(own) : mem_format("%s%s", home, homes[f->home].beneath_home);
	return 0;
}
