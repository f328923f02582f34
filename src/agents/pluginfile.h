#pragma once
/*
 * pluginfile - changes files of a project or a home directory together.
 *
 * A change has three steps, each done for all files before the next: pluginfile_read() only reads;
 * pluginfile_stage() writes and syncs the new content beside the old file, under a temporary name;
 * pluginfile_commit() renames. So an unreadable file, a directory without write permission or a
 * full disk is found while every file is unchanged, and pluginfile_undo() removes what was created.
 *
 * A project may come from elsewhere: no symbolic link is followed below it. In the user's own
 * directories links are followed, and stay links.
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
	size_t root_len; /* directories in this part of the path are never removed */

	/* as read */
	bool is_there;
	bool is_link; /* a link that was followed */
	char *text;   /* "" if it does not exist */
	size_t len;
	struct stat stat;

	/* staged */
	bool is_removal;
	int dir_fd;                           /* -1: nothing is staged */
	char *name;                           /* in dir_fd */
	char temp[PLUGINFILE_TEMP_MAX_BYTES]; /* in dir_fd; "": none */
	unsigned made;                        /* number of created parent directories */
};

/* Reads the file, if it exists. Copies `path`. */
ERR_CHECKED int pluginfile_read(int project_fd, const char *path, size_t root_len,
				struct pluginfile *ret, struct err *e);
void pluginfile_done(struct pluginfile *f); /* may run twice, and on a zeroed struct */

/* Prepares the new content. An existing file keeps its mode and owner. */
ERR_CHECKED int pluginfile_stage(struct pluginfile *f, const char *text, size_t len, mode_t mode,
				 struct err *e);

/* Prepares the removal; removes a link, not its target. */
ERR_CHECKED int pluginfile_stage_removal(struct pluginfile *f, struct err *e);

/* ERR_BUSY if someone else changed the file since it was read. */
ERR_CHECKED int pluginfile_check(const struct pluginfile *f, struct err *e);

/* Applies the staged change. A removal also removes parent directories that become empty. */
ERR_CHECKED int pluginfile_commit(struct pluginfile *f, struct err *e);

/* Discards staged changes that were not committed; call for the last file first. */
void pluginfile_undo(struct pluginfile *f);
