/* plugintext - the texts about agentkernel for agents; see plugintext.h. */
#include "agents/plugintext.h"

#include "plugin_texts.h"

const char *const plugintext_skill = (const char *)plugin_skill_md;
const char *const plugintext_command = (const char *)plugin_command_md;
const char *const plugintext_command_toml = (const char *)plugin_command_toml;
