#pragma once
/*
 * treefile - copies one file's content and attributes to another file.
 *
 * All functions return 0 or -errno.
 */
#include "base/pace.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define TREEFILE_OPAQUE "user.overlay.opaque"

/* What was learnt about the two file systems while copying; zeroed at first. */
struct treefile_copier {
	bool cannot_clone;
	bool cannot_copy; /* copy_file_range() */
	char *buffer;     /* allocated when needed */
	char *other;      /* likewise */
	char *names;      /* names of attributes; likewise */
	char *value;
	struct pace pace; /* of the content */
	bool is_urgent;   /* counts, but does not wait: treefile_catch_up() does */
};
void treefile_copier_done(struct treefile_copier *c); /* may run twice */
/* Waits until what was copied in a hurry is within the rate. */
void treefile_catch_up(struct treefile_copier *c);

/*
 * Copies the content of from_fd to the empty file to_fd. Shares blocks if the file system can;
 * holes stay holes. *ret_bytes is the size without holes; -EFBIG if that exceeds max_bytes.
 */
int treefile_copy_content(struct treefile_copier *c, int from_fd, const struct stat *st, int to_fd,
			  uint64_t max_bytes, uint64_t *ret_bytes);

/*
 * Makes to_fd, an earlier copy of from_fd open for reading and writing, the same again: only blocks
 * that differ are written. -EOPNOTSUPP if a new copy is better: a file with holes, or one that can
 * share blocks. *ret_bytes is what was written.
 */
int treefile_update_content(struct treefile_copier *c, int from_fd, const struct stat *st,
			    int to_fd, uint64_t *ret_bytes);

/*
 * Copies owner, attributes, mode and times of files and directories. Attributes are user
 * attributes, access control lists and capabilities; of overlay's own only the opaque mark, because
 * the others refer to inodes elsewhere. Capabilities that the kernel does not let this process set
 * are left out, so the file can only do less. (Root of the machine can set all; root of a user
 * namespace those set in that namespace, on files whose owners it maps.)
 */
int treefile_copy_attributes(struct treefile_copier *c, int from_fd, const struct stat *st,
			     int to_fd);

/*
 * Copies a symbolic link, fifo, socket or whiteout, with its owner, mode and times. A socket
 * becomes one without a listener.
 */
int treefile_copy_special(int from_fd, const char *name, const struct stat *st, int to_fd);

/* Removes a directory's user attributes, except the opaque mark. */
int treefile_clear_attributes(struct treefile_copier *c, int fd);

bool treefile_is_opaque(int fd);
bool treefile_is_whiteout(const struct stat *st);
