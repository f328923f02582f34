#pragma once
/*
 * op_file - files of named sandboxes: write, read, edit, list, remove, whole directories as tar
 * archives, copies from and to this machine.
 *
 * Everything goes through named/files, as the sandbox's own user. A path inside may be relative to
 * the sandbox's working directory or begin with "~" (access_resolve_path()); each result has it as
 * an absolute one. A stopped sandbox is started.
 */
#include "base/buf.h"
#include "named/files.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct op_events;

/* What the operations below have in common. */
struct op_file_args {
	const char *name;
	const char *path; /* NULL: the working directory */

	int fd;       /* write, upload: where the bytes come from; download: where they go */
	bool appends; /* write */

	uint64_t offset;       /* read */
	uint64_t length;       /* read: at most */
	bool sends_all;        /* read: all of it to .fd instead */
	bool removes_tree;     /* remove: also a directory that is not empty */
	const char *old, *new; /* edit: texts */
	bool replaces_all;     /* edit: every place; else there has to be exactly one */
	uint64_t max_bytes;    /* edit: of the file, before and after */
};
struct op_file_result {
	char *path;     /* absolute */
	uint64_t bytes; /* written, or in the file after an edit, or (read) in the file */
	uint64_t count; /* of replacements */
	struct buf content;
	struct files_list list;
};
void op_file_result_init(struct op_file_result *r);
void op_file_result_done(struct op_file_result *r);

typedef int op_file_fn(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		       struct op_file_result *ret, struct err *e);
/*
 * An edit happens in place, so the file keeps its mode, its owner and its other names; whoever
 * reads it meanwhile may see a part of it.
 */
op_file_fn op_file_write, op_file_read, op_file_edit, op_file_list, op_file_remove, op_upload,
	op_download;

struct op_copy_args {
	const char *name;
	const char *inside;  /* begins with a slash */
	const char *outside; /* "-": a tar archive on stdin or stdout */
	bool is_out;
	unsigned flags; /* FILECOPY_* */
};
/* A sandbox that is stopped is started for so long. */
ERR_CHECKED int op_copy(struct ak *ak, const struct op_copy_args *args, const struct op_events *ev,
			struct err *e);
