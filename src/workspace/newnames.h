#pragma once
/*
 * newnames - protected names that appear in a workspace while a sandbox runs.
 *
 * A name that does not exist cannot be protected by a mount (workspace/workspace lists them). The
 * supervisor watches the directories that could hold one, from outside: what appears is moved to
 * the quarantine at once and told. A sandbox that makes such names again and again has to end. It
 * also notices two things about git's settings: that git inside tried to change them and could not,
 * and that somebody outside replaced the file, with which its protection goes; then what is not
 * harmless in later versions is taken out.
 *
 * The moment between making and moving is the window in which a program outside could obey the
 * name;
 * --protect-new strict has none. At the end, and whenever asked, workspace/gitinspect looks at what
 * the sandbox left in repositories.
 *
 * An inotify instance costs a start a twentieth of its time. Without a repository, watching
 * begins NEWNAMES_BEGIN_MS after the start, with a look at every name; a run that ends earlier is
 * looked at once, at its end.
 *
 * Where the account has no inotify instance left the names are looked at NEWNAMES_LOOK_MS apart.
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
#define NEWNAMES_BEGIN_MS 10   /* after the start: shorter runs are looked at once, at their end */
#define NEWNAMES_BURST_MAX 32u /* names moved in NEWNAMES_BURST_MS: more ends the sandbox */
#define NEWNAMES_BURST_MS 60000u
#define NEWNAMES_FILES_MAX 32u    /* of git's settings that are watched for changes */
#define NEWNAMES_NOTICES_MAX 256u /* that are kept for the caller */

struct newnames_version {
	ino_t inode;
	struct timespec changed;
};

/* A file of git's settings that is protected. */
struct newnames_file {
	int place_fd;                    /* of the workspace, borrowed */
	char *path;                      /* relative to that */
	struct newnames_version version; /* that is protected */
	int wd;                          /* of its directory */
	bool has_lock_been_made, was_replaced;
	char **accepted; /* settings that are not harmless, at the start */
};

struct newnames {
	const struct workspace *workspace; /* NULL: nothing to watch */
	struct quarantine quarantine;
	int inotify_fd; /* -1: none */
	struct newnames_file *files;
	unsigned file_count;
	const char *sandbox; /* its name, for the audit log; NULL: none */
	char **notices;      /* for people, ended by NULL; or NULL */
	uint64_t burst_from_ms;
	unsigned burst_count;
	uint64_t look_at_ms; /* not before */
	bool has_to_look;
	bool has_begun; /* an inotify instance was made, or there was none left */
	bool is_over;   /* nothing of the sandbox runs, or all is frozen */
};

void newnames_init(struct newnames *n);
/* The workspace is borrowed, and the sandbox's name. Before anything runs inside. */
ERR_CHECKED int newnames_open(struct newnames *n, const struct policy *p, const struct workspace *w,
			      const struct ak *ak, const char *sandbox, struct err *e);
void newnames_done(struct newnames *n); /* may run twice */

/* For a poll loop: readable when there is something to do, or -1; and how long to wait at most. */
int newnames_poll_fd(const struct newnames *n);
int newnames_wait_ms(const struct newnames *n); /* -1: for ever */

/* Failure means that the sandbox has to end, with the reason. */
ERR_CHECKED int newnames_look(struct newnames *n, struct err *e);

/* Nothing of the sandbox runs, or all of it is frozen: looks once more, and into repositories. */
void newnames_conclude(struct newnames *n); /* what cannot be looked at is a notice */
ERR_CHECKED int newnames_inspect(struct newnames *n, struct err *e);
