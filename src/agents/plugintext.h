#pragma once
/*
 * plugintext - the texts about agentkernel for agents.
 *
 * The texts are files in src/agents/plugin/, which the Makefile turns into arrays.
 */

extern const char *const plugintext_skill;        /* when to use a sandbox, and how */
extern const char *const plugintext_command;      /* the command /sandbox, as Markdown */
extern const char *const plugintext_command_toml; /* the same for Gemini CLI */
