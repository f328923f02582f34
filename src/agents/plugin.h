#pragma once
/*
 * plugin - adds agentkernel to coding agents' settings, removes it, and shows where it is.
 *
 * Everything is read and checked first (conflicting entries, syntax errors, links out of the
 * project), then all new files are written beside the old ones, and then renamed: a failure before
 * that leaves every file unchanged.
 */
#include "agents/plugintable.h"

struct ak;

#define PLUGIN_STEPS_MAX 32u /* files of all clients together */

enum plugin_flags {
	PLUGIN_FORCE = 1 << 0,   /* replace or remove entries that differ from ours */
	PLUGIN_DRY = 1 << 1,     /* only report */
	PLUGIN_APPROVE = 1 << 2, /* calls need no approval, in clients with such a setting */
};

struct plugin_request {
	const struct ak *ak;
	unsigned clients; /* bits: 1u << enum plugintable_client */
	enum plugintable_scope scope;
	unsigned flags;
};

enum plugin_change {
	PLUGIN_UNCHANGED,
	PLUGIN_CREATED,
	PLUGIN_CHANGED,
	PLUGIN_REMOVED,
	PLUGIN_KEPT, /* another client uses it */

	PLUGIN_CHANGE_COUNT
};

struct plugin_step {
	char *path; /* beneath the project, or absolute */
	enum plugin_change change;
};

struct plugin_report {
	struct plugin_step steps[PLUGIN_STEPS_MAX];
	size_t count;
};

void plugin_report_done(struct plugin_report *r); /* may run twice */

/* The report has every file of the clients. */
ERR_CHECKED int plugin_install(const struct plugin_request *r, struct plugin_report *ret,
			       struct err *e);

/* The report has only files with something of ours. */
ERR_CHECKED int plugin_remove(const struct plugin_request *r, struct plugin_report *ret,
			      struct err *e);

/* Formats the settings for an MCP client whose file we do not know. The caller frees. */
ERR_CHECKED int plugin_format_snippet(const struct ak *ak, char **ret, struct err *e);

enum plugin_state {
	PLUGIN_NOT_INSTALLED,
	PLUGIN_INSTALLED,
	PLUGIN_DIFFERENT, /* incomplete, or differs from ours */
	PLUGIN_UNREADABLE,

	PLUGIN_STATE_COUNT
};

struct plugin_file_status {
	char *path; /* NULL if unknown */
	enum plugin_state state;
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* why it is unreadable, else "" */
};

struct plugin_status {
	enum plugin_state state;
	struct plugin_file_status files[PLUGINTABLE_FILES_MAX];
	size_t count; /* 0: the client has no file of that scope */
};

/* Looks up the state of a client; cannot fail, as errors are part of the result. */
void plugin_look(const struct ak *ak, enum plugintable_client client, enum plugintable_scope scope,
		 struct plugin_status *ret);
void plugin_status_done(struct plugin_status *s); /* may run twice */
