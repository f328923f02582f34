#pragma once
/*
 * plugintable - the coding agents that agentkernel can be wired into, and which of their files say
 * so.
 *
 * A row is a file: where it is in a project, where in the user's own directories, and what is in
 * it. Settings belong to the user, and one entry in them is ours; skills and commands are ours
 * whole. Some files are read by several clients and stand in the rows of each.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct ak;

#define PLUGINTABLE_FILES_MAX 4u /* of one client */
#define PLUGINTABLE_PATHS_MAX 4u /* of one file: the client reads any of them */

enum plugintable_client {
	PLUGINTABLE_CLAUDE,
	PLUGINTABLE_CODEX,
	PLUGINTABLE_GEMINI,
	PLUGINTABLE_OPENCODE,
	PLUGINTABLE_MCP, /* any other client of the protocol */

	PLUGINTABLE_CLIENT_COUNT
};

enum plugintable_scope {
	PLUGINTABLE_PROJECT, /* the working directory */
	PLUGINTABLE_GLOBAL,  /* all of the user's projects */

	PLUGINTABLE_SCOPE_COUNT
};

/* What a file holds of ours. */
enum plugintable_content {
	PLUGINTABLE_SERVER,          /* JSON: "mcpServers": {"agentkernel": {"command", "args"}} */
	PLUGINTABLE_OPENCODE_SERVER, /* JSON: "mcp": {"agentkernel": {"type", "command", "enabled"}}
				      */
	PLUGINTABLE_TOML_SERVER,     /* TOML: [mcp_servers.agentkernel] */
	PLUGINTABLE_TEXT,
};

struct plugintable_file {
	/* beneath the project; of several the later ones count more; the first one is made */
	const char *project[PLUGINTABLE_PATHS_MAX + 1];
	const char *global[PLUGINTABLE_PATHS_MAX + 1]; /* beneath `home` */
	unsigned home;
	enum plugintable_content content;
	unsigned flags;   /* enum jsonedit_flags: what the client takes in its settings */
	bool can_approve; /* the entry can say that calls need no approval */
	const char *const *text;
	mode_t mode; /* of a new one in the user's directories; 0: as everywhere */
};

struct plugintable_client_row {
	const char *name;
	const struct plugintable_file *files;
	size_t count;
	const char *notes[PLUGINTABLE_SCOPE_COUNT]; /* what is left to do in the client, or NULL */
	const char *approval; /* what it does before a call that nobody approved, or NULL */
};

extern const struct plugintable_client_row plugintable_clients[PLUGINTABLE_CLIENT_COUNT];

/*
 * Where the paths of a file begin, from the client's own variable or HOME. The caller frees.
 * ERR_INVALID when there is no such variable, or it holds no absolute path.
 */
ERR_CHECKED int plugintable_find_home(const struct plugintable_file *f, const struct ak *ak,
				      char **ret, struct err *e);
