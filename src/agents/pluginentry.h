#pragma once
/*
 * pluginentry - what is ours in a client's file: an entry in its settings, or the whole of a text.
 *
 * Bytes in, bytes out, by the kind of file that plugintable.h says it is. Whatever else is in
 * somebody's settings stays as it was.
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
	PLUGINENTRY_FORCE = 1 << 0,   /* also what is different */
	PLUGINENTRY_APPROVE = 1 << 1, /* no call needs approval, where the entry can say so */
};

/* A file as it is: its name for messages, and its bytes ("" when it is not there). */
struct pluginentry_file {
	const struct plugintable_file *kind;
	const char *command; /* that starts us */
	const char *path;
	const char *text;
	size_t len;
	bool is_there;
};

/* ERR_INVALID and ERR_LIMIT: settings that their client could not read either. */
ERR_CHECKED int pluginentry_look(const struct pluginentry_file *f, enum pluginentry_state *ret,
				 struct err *e);

struct pluginentry_change {
	bool is_change; /* false: it is so already, and the rest is not set */
	bool is_empty;  /* nothing is left in the file */
	char *text;     /* the caller's to free */
	size_t len;
};

/*
 * Both: ERR_EXISTS for a different one without PLUGINENTRY_FORCE. Setting an entry that is there
 * adds the approval, and takes it away only with PLUGINENTRY_FORCE.
 */
ERR_CHECKED int pluginentry_set(const struct pluginentry_file *f, unsigned flags,
				struct pluginentry_change *ret, struct err *e);
ERR_CHECKED int pluginentry_remove(const struct pluginentry_file *f, unsigned flags,
				   struct pluginentry_change *ret, struct err *e);
