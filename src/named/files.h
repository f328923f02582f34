#pragma once
/*
 * files - a named sandbox's files, from outside: read, write, list, stat, make, rename, remove,
 * watch.
 *
 * The work is done by a child that is one of the sandbox's own users (tree/owner), in the
 * sandbox's mount namespace, and sees its finished root as a descriptor: every path is looked up
 * inside that root, whatever links are on the way, the rights are those of the sandbox's user, and
 * protected, masked and mounted paths can be replaced no more than from inside. Files are handed
 * over as descriptors, so bytes are not copied through it.
 *
 * The sandbox has to run. Everything inside may change at any moment and is hostile.
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
	int agent_fd; /* our end */
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
	FILES_WRITE = 1 << 1,   /* emptied first, made if it is missing */
	FILES_APPEND = 1 << 2,  /* with FILES_WRITE: not emptied */
	FILES_NEW = 1 << 3,     /* with FILES_WRITE: it must not be there */
	FILES_PARENTS = 1 << 4, /* directories above are made */
	FILES_TREE = 1 << 5,    /* remove: all that is in it, too */
	FILES_EDIT = 1 << 6,    /* with FILES_WRITE: it must be there, is read, and not emptied */
};

/* A plain file; the descriptor is the caller's to close. */
ERR_CHECKED int files_open_file(struct files *f, const char *path, unsigned flags, mode_t mode,
				int *ret_fd, struct err *e);

/* Bytes from `offset` on, as many as the buffer takes; *ret_size is the file's whole size. */
ERR_CHECKED int files_read(struct files *f, const char *path, uint64_t offset, struct buf *out,
			   uint64_t *ret_size, struct err *e);
ERR_CHECKED int files_write(struct files *f, const char *path, unsigned flags, mode_t mode,
			    const void *bytes, size_t len, struct err *e);

struct files_entry {
	char *name;   /* in a list; NULL from files_stat() */
	char *target; /* of a symbolic link; or NULL */
	uint32_t mode, uid, gid;
	uint64_t size_bytes, modified_ms;
};
/* Of a symbolic link itself. */
ERR_CHECKED int files_stat(struct files *f, const char *path, struct files_entry *ret,
			   struct err *e);
void files_entry_done(struct files_entry *entry);

struct files_list {
	struct files_entry *entries; /* sorted by name */
	size_t count;
	bool is_cut; /* there are more than FILES_LIST_MAX */
};
ERR_CHECKED int files_list(struct files *f, const char *path, struct files_list *ret,
			   struct err *e);
void files_list_done(struct files_list *l);

ERR_CHECKED int files_mkdir(struct files *f, const char *path, unsigned flags, mode_t mode,
			    struct err *e);
ERR_CHECKED int files_rename(struct files *f, const char *from, const char *to, struct err *e);
ERR_CHECKED int files_remove(struct files *f, const char *path, unsigned flags, struct err *e);

/* An inotify descriptor with one watch, for all that happens to it and right in it. */
ERR_CHECKED int files_watch(struct files *f, const char *path, int *ret_fd, struct err *e);
