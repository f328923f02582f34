#pragma once
/*
 * pluginfile - files of a project or of a home directory that are changed together.
 *
 * A change has three steps, and each is taken for all files before the next: pluginfile_read()
 * only looks; pluginfile_stage() puts the new bytes beside the old ones, under a temporary name and
 * on the disk; pluginfile_commit() renames. So a file that cannot be read, a directory that
 * cannot be written or a full disk are found while every file is as it was, and
 * pluginfile_undo() takes back what was made.
 *
 * A project may be a stranger's: beneath it no symbolic link is followed. What lies in the user's
 * own directories is followed wherever they lead, and a link stays a link.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#define PLUGINFILE_MAX_BYTES (16u << 20)
#define PLUGINFILE_TEMP_MAX_BYTES 48u

struct pluginfile {
	int project_fd; /* borrowed; -1: the path is absolute, and links are followed */
	char *path;
	size_t root_len; /* of the path: directories above are never removed */

	/* as it was read */
	bool is_there;
	bool is_link; /* a link that was followed */
	char *text;   /* "" when it is not there */
	size_t len;
	struct stat stat;

	/* what is staged */
	bool is_removal;
	int dir_fd;                           /* -1: nothing is */
	char *name;                           /* in it */
	char temp[PLUGINFILE_TEMP_MAX_BYTES]; /* beside it; "" when there is none */
	unsigned made;                        /* so many of the directories on the way are new */
};

/* Reads the file, or finds that there is none. `path` is copied. */
ERR_CHECKED int pluginfile_read(int project_fd, const char *path, size_t root_len,
				struct pluginfile *ret, struct err *e);
void pluginfile_done(struct pluginfile *f); /* may run twice, and on a zeroed struct */

/* Makes ready to have these bytes. A file that is there keeps its mode and its owner. */
ERR_CHECKED int pluginfile_stage(struct pluginfile *f, const char *text, size_t len, mode_t mode,
				 struct err *e);

/* Makes ready to be removed; of a link, the link is. */
ERR_CHECKED int pluginfile_stage_removal(struct pluginfile *f, struct err *e);

/* ERR_BUSY when somebody else has changed the file since it was read. */
ERR_CHECKED int pluginfile_check(const struct pluginfile *f, struct err *e);

/* The staged change. After a removal, directories that are empty now go too. */
ERR_CHECKED int pluginfile_commit(struct pluginfile *f, struct err *e);

/* Forgets what was staged and was not committed; of several, the last one first. */
void pluginfile_undo(struct pluginfile *f);
