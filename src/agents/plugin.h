#pragma once
/*
 * plugin - wires agentkernel into coding agents, takes it out again, and tells where it is.
 *
 * Everything is read and decided first (what is in the way, what cannot be parsed, which links lead
 * out of the project), then all new files are written beside the old ones, and only then do they
 * take their places: a failure on the way leaves every file as it was.
 */
#include "agents/plugintable.h"

struct ak;

#define PLUGIN_STEPS_MAX 32u /* files of all clients together */

enum plugin_flags {
	PLUGIN_FORCE = 1 << 0,   /* replace or remove what is not as we write it */
	PLUGIN_DRY = 1 << 1,     /* only tell */
	PLUGIN_APPROVE = 1 << 2, /* calls need no approval, in clients that can be told so */
};

struct plugin_request {
	const struct ak *ak;
	unsigned clients; /* 1u << enum plugintable_client, several */
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

/* Every file of the clients is in the report. */
ERR_CHECKED int plugin_install(const struct plugin_request *r, struct plugin_report *ret,
			       struct err *e);

/* Only files that have something of ours are in the report. */
ERR_CHECKED int plugin_remove(const struct plugin_request *r, struct plugin_report *ret,
			      struct err *e);

/* The settings of an MCP client that has a file we do not know, to be pasted. The caller frees. */
ERR_CHECKED int plugin_format_snippet(const struct ak *ak, char **ret, struct err *e);

enum plugin_state {
	PLUGIN_NOT_INSTALLED,
	PLUGIN_INSTALLED,
	PLUGIN_DIFFERENT, /* not all of it is there, or not as we write it */
	PLUGIN_UNREADABLE,

	PLUGIN_STATE_COUNT
};

struct plugin_file_status {
	char *path; /* NULL when it cannot be told */
	enum plugin_state state;
	char trouble[ERR_MESSAGE_MAX_BYTES]; /* why it is unreadable, else "" */
};

struct plugin_status {
	enum plugin_state state;
	struct plugin_file_status files[PLUGINTABLE_FILES_MAX];
	size_t count; /* 0: the client has no file of that scope */
};

/* What there is of a client; never fails, since what is wrong with a file is part of the answer. */
void plugin_look(const struct ak *ak, enum plugintable_client client, enum plugintable_scope scope,
		 struct plugin_status *ret);
void plugin_status_done(struct plugin_status *s); /* may run twice */
