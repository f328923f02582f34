/* agenttemplate - recipes of images for coding agents; see agenttemplate.h. */
#include "agents/agenttemplate.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include "template_texts.h"

#include <string.h>

#define ROW(name, about)                                                                           \
	{                                                                                          \
#name, about, "localhost/agentkernel/" #name ":latest",                            \
			(const char *)template_##name                                              \
	}

const struct agenttemplate agenttemplate_all[] = {
	ROW(base, "Debian with Node, Python, Go, git, gh, ripgrep, jq and a user 'agent'"),
	ROW(claude, "base with Claude Code"),
	ROW(codex, "base with Codex"),
	ROW(gemini, "base with Gemini CLI"),
	ROW(opencode, "base with OpenCode"),
};
const size_t agenttemplate_count = COUNT_OF(agenttemplate_all);

const struct agenttemplate *agenttemplate_find(const char *name)
{
	for (size_t i = 0; i < agenttemplate_count; i++)
		if (strcmp(agenttemplate_all[i].name, name) == 0)
			return &agenttemplate_all[i];
	return NULL;
}

char *agenttemplate_format(const struct agenttemplate *t)
{
	if (t == &agenttemplate_all[0])
		return mem_dup(t->text);
	return mem_format("%s%s", agenttemplate_all[0].text, t->text);
}
