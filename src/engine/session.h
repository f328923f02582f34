#pragma once
/*
 * session - a sandbox that is being built or running, with everything its supervisor holds for it.
 *
 * `run` creates one for a command; the supervisor of a named sandbox (named/supervisor) creates one
 * that serves. session_prepare() does what can fail because of the host, session_start() builds the
 * protections, session_done() cleans up in the only correct order, on success and on every failure.
 * Two things outlive a crash of this process and have their own guard: the sandbox's processes
 * (init ends with the lifeline) and its cgroups (the janitor; for a named sandbox its record, and
 * the janitor while it is frozen).
 */
#include "base/buf.h"
#include "base/err.h"
#include "engine/gatekeeper.h"
#include "workspace/hostfiles.h"
#include "engine/janitor.h"
#include "workspace/newnames.h"
#include "host/cgroup.h"
#include "host/idmap.h"
#include "engine/backend.h"
#include "protocol/handle.h"
#include "protocol/rootspec.h"

struct ak;

#define SESSION_ID_MAX_BYTES 72
#define SESSION_STUCK_WORDS "processes inside were killed and do not end: the kernel holds them"

struct session;

struct session_options {
	const struct policy *policy;
	const struct ak *ak;
	struct rootspec_image *root; /* NULL: the host's programs, and no disk; its trees are set */
	bool serves;                 /* init waits for orders */
	bool awaits_places;          /* init also waits for the directories of the host */
	bool is_changeable;     /* limits can change, and it can be frozen: creates every cgroup */
	const char *name;       /* of a named sandbox; NULL: gets an id like "run-1a2b3c4d" */
	const char *machine_id; /* NULL: none */
	const char *disk_path;  /* disk of a named sandbox; NULL: in memory */

	/* Called before cgroups are made, which a crash would leave behind: paths, one per line. */
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
	const struct backend *backend; /* NULL until it is prepared */
	struct handle sandbox;
	struct gatekeeper gatekeeper;
	char id[SESSION_ID_MAX_BYTES];
	int etc_layer_fd;     /* keeps that layer from being removed */
	char *etc_layer_path; /* state/etclayer's; NULL: the sandbox creates its own */
	int etc_tree_fd, etc_host_tree_fd;
	char **etc_private; /* names in /etc that are not world-readable; or NULL */
	char *limits_path;  /* state/limitcache's; NULL: the sandbox creates its own files */
	int limits_tree_fd; /* of limits_path, for a root caller */
	bool has_landlock, is_pinned;
};

void session_init(struct session *s);
void session_done(struct session *s); /* may run twice */

/* The options are borrowed while the session exists. */
ERR_CHECKED int session_prepare(struct session *s, const struct session_options *o, struct err *e);

enum session_streams {
	SESSION_FILE_STREAM = 1 << 0, /* one of the command's streams is a file of the host */
};

/* The number of cpus for a policy's limit, rounded up; 0: all. */
unsigned session_count_cpus(const struct policy *p);

/* True if it has an image, not just this machine's programs. */
bool session_has_image(const struct session *s);

/* `command` has its arguments, variables and streams; the rest is filled in. */
ERR_CHECKED int session_start(struct session *s, const struct backend_command *command,
			      unsigned streams, struct err *e);
/* Ends all its processes and waits; output that was not read yet is not lost. May run twice. */
void session_stop(struct session *s);
/*
 * Inspects the workspace, when no process of the sandbox runs or all are frozen: notices in
 * s->names tell what was found, or why the inspection failed.
 */
void session_inspect(struct session *s);

/* Waits for the first report of a serving init: ready, or failed. */
ERR_CHECKED int session_await_init(const struct session *s, struct err *e);
