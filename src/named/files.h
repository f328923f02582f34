#pragma once
/*
 * files - access to a named sandbox's files from outside: read, write, list, stat, mkdir, rename,
 * remove, watch.
 *
 * A child with the identity of the sandbox's user (tree/owner), in the sandbox's mount namespace,
 * does the work on a descriptor of the root: every path, links included, is resolved inside that
 * root, the permissions are those of the sandbox's user, and protected, masked and mounted paths
 * cannot be replaced, just as from inside. The child passes files as descriptors, so it copies no
 * bytes.
 *
 * The sandbox must be running. Everything inside may change at any moment and is hostile.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct ak;

#define FILES_PATH_MAX_BYTES 4096u
#define FILES_LIST_MAX 65536u

struct files {
	int root_fd, userns_fd, mntns_fd;
	uint32_t uid, gid;
	int control_fd; /* keeps the sandbox awake */
	int agent_fd;   /* our end of the agent's socket */
	pid_t agent_pid;
	const struct ak *ak;
	char *sandbox;
};

void files_init(struct files *f);
ERR_CHECKED int files_open(const struct ak *ak, const char *sandbox, struct files *ret,
			   struct err *e);
void files_close(struct files *f); /* may run twice */

enum files_flags {
	FILES_READ = 1 << 0,
	FILES_WRITE = 1 << 1,   /* truncates; creates a missing file */
	FILES_APPEND = 1 << 2,  /* with FILES_WRITE: does not truncate */
	FILES_NEW = 1 << 3,     /* with FILES_WRITE: fails if it exists */
	FILES_PARENTS = 1 << 4, /* creates missing parent directories */
	FILES_TREE = 1 << 5,    /* removes a directory with its content */
	FILES_EDIT = 1 << 6,    /* with FILES_WRITE: existing file, also readable, not truncated */
};

/* Opens a plain file; the caller closes the descriptor. */
ERR_CHECKED int files_open_file(struct files *f, const char *path, unsigned flags, mode_t mode,
				int *ret_fd, struct err *e);

/* Reads from `offset` up to the buffer's maximum; *ret_size is the size of the whole file. */
ERR_CHECKED int files_read(struct files *f, const char *path, uint64_t offset, struct buf *out,
			   uint64_t *ret_size, struct err *e);
ERR_CHECKED int files_write(struct files *f, const char *path, unsigned flags, mode_t mode,
			    const void *bytes, size_t len, struct err *e);

struct files_entry {
	char *name;   /* in a list; "" from files_stat() */
	char *target; /* of a symbolic link; or NULL */
	uint32_t mode, uid, gid;
	uint64_t size_bytes, modified_ms;
};
/* Does not follow a symbolic link. */
ERR_CHECKED int files_stat(struct files *f, const char *path, struct files_entry *ret,
			   struct err *e);
void files_entry_done(struct files_entry *entry);

struct files_list {
	struct files_entry *entries; /* sorted by name */
	size_t count;
	bool is_cut; /* there are more than fit */
};
ERR_CHECKED int files_list(struct files *f, const char *path, struct files_list *ret,
			   struct err *e);
void files_list_done(struct files_list *l);

ERR_CHECKED int files_mkdir(struct files *f, const char *path, unsigned flags, mode_t mode,
			    struct err *e);
ERR_CHECKED int files_remove(struct files *f, const char *path, unsigned flags, struct err *e);
