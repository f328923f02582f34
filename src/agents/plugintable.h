#pragma once
/*
 * plugintable - the coding agents that agentkernel can be added to, and their files.
 *
 * A row is a file: its place in a project, its place in the user's directories, and its content.
 * Settings belong to the user, and one entry in them is ours; skills and commands are entirely
 * ours. A file that several clients read is in the rows of each.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct ak;

#define PLUGINTABLE_FILES_MAX 4u /* of one client */
#define PLUGINTABLE_PATHS_MAX 4u /* of one file: alternatives that the client reads */

enum plugintable_client {
	PLUGINTABLE_CLAUDE,
	PLUGINTABLE_CODEX,
	PLUGINTABLE_GEMINI,
	PLUGINTABLE_OPENCODE,
	PLUGINTABLE_MCP, /* any other MCP client */

	PLUGINTABLE_CLIENT_COUNT
};

enum plugintable_scope {
	PLUGINTABLE_PROJECT, /* the working directory */
	PLUGINTABLE_GLOBAL,  /* all of the user's projects */

	PLUGINTABLE_SCOPE_COUNT
};

/* Our part of a file. */
enum plugintable_content {
	PLUGINTABLE_SERVER,          /* JSON: "mcpServers": {"agentkernel": {"command", "args"}} */
	PLUGINTABLE_OPENCODE_SERVER, /* JSON: "mcp": {"agentkernel": {"type", "command", "enabled"}}
				      */
	PLUGINTABLE_TOML_SERVER,     /* TOML: [mcp_servers.agentkernel] */
	PLUGINTABLE_TEXT,
};

struct plugintable_file {
	/* below the project; later alternatives take precedence; the first one is created */
	const char *project[PLUGINTABLE_PATHS_MAX + 1];
	const char *global[PLUGINTABLE_PATHS_MAX + 1]; /* below `home` */
	unsigned home;
	enum plugintable_content content;
	unsigned flags;   /* enum jsonedit_flags: syntax that the client accepts */
	bool can_approve; /* the entry can disable the approval of calls */
	const char *const *text;
	mode_t mode; /* of a new file in the user's directories; 0: default */
};

struct plugintable_client_row {
	const char *name;
	const struct plugintable_file *files;
	size_t count;
	const char
		*notes[PLUGINTABLE_SCOPE_COUNT]; /* what the user must do in the client, or NULL */
	const char *approval; /* how it handles calls without approval, or NULL */
};

extern const struct plugintable_client_row plugintable_clients[PLUGINTABLE_CLIENT_COUNT];

/*
 * The base directory of a file's global paths, from the client's own variable or HOME. The caller
 * frees. ERR_INVALID if neither is set, or if the path is not absolute.
 */
ERR_CHECKED int plugintable_find_home(const struct plugintable_file *f, const struct ak *ak,
				      char **ret, struct err *e);
