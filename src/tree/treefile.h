#pragma once
/*
 * treefile - what one file of a tree consists of, copied to another file: content and attributes.
 *
 * All functions return 0 or -errno.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define TREEFILE_OPAQUE "user.overlay.opaque"

/* What one way of copying has taught about the two file systems; zeroed at first. */
struct treefile_copier {
	bool cannot_clone;
	bool cannot_copy; /* copy_file_range() */
	char *buffer;     /* made when it is needed */
	char *names;      /* as well, of attributes */
	char *value;
};
void treefile_copier_done(struct treefile_copier *c); /* may run twice */

/*
 * The content of from_fd to to_fd, an empty file. Blocks are shared where the file system can,
 * holes stay holes. *ret_bytes: what is not a hole. More than max_bytes of that: -EFBIG.
 */
int treefile_copy_content(struct treefile_copier *c, int from_fd, const struct stat *st, int to_fd,
			  uint64_t max_bytes, uint64_t *ret_bytes);

/*
 * Owner, attributes, mode and times, of files and directories. Attributes are those of users,
 * access control lists and capabilities; of overlay's own only that a directory is opaque, since
 * the others speak of inodes elsewhere. Capabilities that the kernel does not let this process
 * give are left out: the file can do less then. (Root of the machine can give all; root of a user
 * namespace those that were given in that namespace, to files whose owners it knows.)
 */
int treefile_copy_attributes(struct treefile_copier *c, int from_fd, const struct stat *st,
			     int to_fd);

/* Removes what attributes of users a directory has, but leaves it opaque if it is. */
int treefile_clear_attributes(struct treefile_copier *c, int fd);

bool treefile_is_opaque(int fd);
bool treefile_is_whiteout(const struct stat *st);
