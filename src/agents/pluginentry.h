#pragma once
/*
 * pluginentry - our entry in a client's file: an entry in its settings, or the whole of a text.
 *
 * Works on bytes, according to the file's kind in plugintable.h. Everything else in the user's
 * settings stays unchanged.
 */
#include "agents/plugintable.h"

#define PLUGINENTRY_NAME "agentkernel" /* of our entry in every client's settings */

enum pluginentry_state {
	PLUGINENTRY_ABSENT,
	PLUGINENTRY_SAME,
	PLUGINENTRY_APPROVED, /* the same with PLUGINENTRY_APPROVE */
	PLUGINENTRY_DIFFERENT,
};

enum pluginentry_flags {
	PLUGINENTRY_FORCE = 1 << 0,   /* also replace or remove a different entry */
	PLUGINENTRY_APPROVE = 1 << 1, /* no call needs approval, if the format supports it */
};

/* A file: its path for messages, and its bytes ("" if it does not exist). */
struct pluginentry_file {
	const struct plugintable_file *kind;
	const char *command; /* that starts us */
	const char *path;
	const char *text;
	size_t len;
	bool is_there;
};

/* ERR_INVALID and ERR_LIMIT: settings that the client could not read either. */
ERR_CHECKED int pluginentry_look(const struct pluginentry_file *f, enum pluginentry_state *ret,
				 struct err *e);

struct pluginentry_change {
	bool is_change; /* false: nothing to do, and the rest is not set */
	bool is_empty;  /* the file has no content left */
	char *text;     /* the caller frees it */
	size_t len;
};

/*
 * Both: ERR_EXISTS for a different entry without PLUGINENTRY_FORCE. Setting an existing entry can
 * add the approval, but removes it only with PLUGINENTRY_FORCE.
 */
ERR_CHECKED int pluginentry_set(const struct pluginentry_file *f, unsigned flags,
				struct pluginentry_change *ret, struct err *e);
ERR_CHECKED int pluginentry_remove(const struct pluginentry_file *f, unsigned flags,
				   struct pluginentry_change *ret, struct err *e);
