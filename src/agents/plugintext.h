#pragma once
/*
 * plugintext - what agents are told about agentkernel.
 *
 * The texts are files in src/agents/plugin/; the Makefile makes arrays of them.
 */

extern const char *const plugintext_skill;        /* when to use a sandbox, and how */
extern const char *const plugintext_command;      /* the command /sandbox, as Markdown */
extern const char *const plugintext_command_toml; /* the same for Gemini CLI */
