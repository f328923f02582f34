#pragma once
/*
 * session - a sandbox that is being built or runs, and all that its supervisor holds for it.
 *
 * `run` makes one for a command and takes it back; the supervisor of a named sandbox
 * (named/supervisor) makes one that serves. session_prepare() does what can fail for reasons of the
 * host, session_start() makes the walls, session_done() takes everything back in the one right
 * order, on success and on every failure. Two things outlive a crash of this process and have their
 * own guard: the sandbox's processes (init dies with the lifeline) and its cgroups (the janitor;
 * for a named sandbox its record, and the janitor while it is frozen).
 */
#include "base/buf.h"
#include "base/err.h"
#include "engine/gatekeeper.h"
#include "workspace/hostfiles.h"
#include "engine/janitor.h"
#include "workspace/newnames.h"
#include "sandbox/cgroup.h"
#include "sandbox/idmap.h"
#include "sandbox/native.h"

struct ak;

#define SESSION_ID_MAX_BYTES 72
#define SESSION_STUCK_WORDS "processes inside were killed and do not end: the kernel holds them"

struct session;

struct session_options {
	const struct policy *policy;
	const struct ak *ak;
	struct imageroot
		*root;      /* NULL: the host's programs, and nothing stays; its trees are set */
	bool serves;        /* init waits for orders */
	bool awaits_places; /* it also waits for the directories of the host that it will show */
	bool is_changeable; /* limits can be changed, and it can be frozen: every cgroup is made */
	const char *name;   /* of a named sandbox; NULL: it gets an id like "run-1a2b3c4d" */
	const char *machine_id; /* NULL: none */
	const char *disk_path;  /* where a named sandbox's files lie; NULL: in memory */

	/* Before cgroups are made, which a crash would leave behind: paths, one a line. */
	int (*before_cgroup)(void *context, const char *paths, struct err *e);
	void *context;
};

struct session {
	struct session_options options;
	struct idmap idmap;
	struct hostfiles files;
	struct newnames names;
	struct cgroup cgroup;
	struct janitor janitor;
	struct native_sandbox sandbox;
	struct gatekeeper gatekeeper;
	char id[SESSION_ID_MAX_BYTES];
	char *etc_layer_path; /* state/etclayer's; NULL: the sandbox makes its own */
	int etc_tree_fd, etc_host_tree_fd;
	char **etc_private; /* names in /etc that are not for all; or NULL */
	char *limits_path;  /* state/limitcache's; NULL: the sandbox makes its own files */
	int limits_tree_fd; /* a root caller's, of that */
	bool has_landlock, is_pinned;
};

void session_init(struct session *s);
void session_done(struct session *s); /* may run twice */

/* Options are borrowed for the session's life. */
ERR_CHECKED int session_prepare(struct session *s, const struct session_options *o, struct err *e);

enum session_streams {
	SESSION_FILE_STREAM = 1 << 0, /* one of the command's streams is a file of the host */
};

/* How many cpus a policy's limit allows at a time, a fraction of one as a whole; 0: all. */
unsigned session_count_cpus(const struct policy *p);

/* Which filter a command gets. */
unsigned session_choose_filter(const struct session *s, unsigned streams);

/* `command` has its words, variables and streams; the rest is filled in. */
ERR_CHECKED int session_start(struct session *s, struct command *command, unsigned streams,
			      struct err *e);
/*
 * What was left in the workspace, when nothing of the sandbox runs or all is frozen: the notices of
 * s->names say what was found, or why it could not be looked at.
 */
void session_inspect(struct session *s);

/* The first word of a serving init: it is ready, or it has failed. */
ERR_CHECKED int session_await_init(const struct session *s, struct err *e);
