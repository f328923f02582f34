#pragma once
/*
 * newnames - handles protected names that appear in a workspace while a sandbox runs.
 *
 * A mount cannot protect a name that does not exist (workspace/workspace lists these). The
 * supervisor watches the directories that could contain one, from outside: a name that appears is
 * moved to the quarantine at once and reported. A sandbox that keeps creating such names is ended.
 * The watch also detects two events about git's settings: git inside tried to change them and could
 * not, and someone outside replaced the file, which removes its protection; then harmful settings
 * are removed from later versions.
 *
 * Between creation and move there is a short time in which a program outside could obey the name;
 * --protect-new strict avoids it. At the end, and on request, workspace/gitinspect inspects what
 * the sandbox left in repositories.
 *
 * Creating an inotify instance takes a twentieth of a start. Without a repository, watching begins
 * NEWNAMES_BEGIN_MS after the start, with a check of every name; a shorter run is checked once, at
 * its end. If the account has no inotify instance left, the names are checked every
 * NEWNAMES_LOOK_MS.
 */
#include "base/err.h"
#include "workspace/quarantine.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct ak;

struct policy;
struct workspace;

#define NEWNAMES_LOOK_MS 50
#define NEWNAMES_BEGIN_MS 10   /* after the start; shorter runs are checked once, at their end */
#define NEWNAMES_BURST_MAX 32u /* names moved in NEWNAMES_BURST_MS; more ends the sandbox */
#define NEWNAMES_BURST_MS 60000u
#define NEWNAMES_FILES_MAX 32u    /* git settings files watched for changes */
#define NEWNAMES_NOTICES_MAX 256u /* kept for the caller */

struct newnames_version {
	ino_t inode;
	struct timespec changed;
};

/* A protected file with git's settings. */
struct newnames_file {
	int place_fd;                    /* the workspace or git directory, borrowed */
	char *path;                      /* relative to that */
	struct newnames_version version; /* the protected version */
	int wd;                          /* the watch on its directory */
	bool has_lock_been_made, was_replaced;
	char **accepted; /* harmful settings that existed at the start */
};

struct newnames {
	const struct workspace *workspace; /* NULL: nothing to watch */
	struct quarantine quarantine;
	int inotify_fd; /* -1: none */
	struct newnames_file *files;
	unsigned file_count;
	const char *sandbox; /* the sandbox's name for the audit log; NULL: none */
	char **notices;      /* messages, ended by NULL; or NULL */
	uint64_t burst_from_ms;
	unsigned burst_count;
	uint64_t look_at_ms; /* no check before this time */
	bool has_to_look;
	bool has_begun; /* an inotify instance was created, or none was left */
	bool is_over;   /* no process of the sandbox runs, or all are frozen */
};

void newnames_init(struct newnames *n);
/* Call before anything runs inside. Borrows the workspace and the sandbox's name. */
ERR_CHECKED int newnames_open(struct newnames *n, const struct policy *p, const struct workspace *w,
			      const struct ak *ak, const char *sandbox, struct err *e);
void newnames_done(struct newnames *n); /* may run twice */

/* For a poll loop: a descriptor that becomes readable, or -1; and the maximum time to wait. */
int newnames_poll_fd(const struct newnames *n);
int newnames_wait_ms(const struct newnames *n); /* -1: no limit */

/* On failure the sandbox has to be ended, for the reason in *e. */
ERR_CHECKED int newnames_look(struct newnames *n, struct err *e);

/* When no process of the sandbox runs, or all are frozen: final check of names and repositories. */
void newnames_conclude(struct newnames *n); /* failures become notices */
ERR_CHECKED int newnames_inspect(struct newnames *n, struct err *e);
