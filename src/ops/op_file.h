#pragma once
/*
 * op_file - files of named sandboxes: write, read, edit, list, remove, directories as tar archives,
 * copies from and to this machine.
 *
 * Everything goes through named/files, as the sandbox's user. A path inside may be relative to the
 * sandbox's working directory or begin with "~" (access_resolve_path()); results have the absolute
 * path. A stopped sandbox is started.
 */
#include "base/buf.h"
#include "named/files.h"

#include <stdbool.h>
#include <stdint.h>

struct ak;
struct op_events;

/* Common to the operations below. */
struct op_file_args {
	const char *name;
	const char *path; /* NULL: the working directory */

	int fd;       /* write, upload: source of the bytes; download: target */
	bool appends; /* write */

	uint64_t offset;       /* read */
	uint64_t length;       /* read: maximum */
	bool sends_all;        /* read: the whole file to .fd instead */
	bool removes_tree;     /* remove: also a directory that is not empty */
	const char *old, *new; /* edit: texts */
	bool replaces_all;     /* edit: replace every match; else there must be exactly one */
	uint64_t max_bytes;    /* edit: maximum size of the file, before and after */
};
struct op_file_result {
	char *path;     /* absolute */
	uint64_t bytes; /* written, or size of the file after an edit or read */
	uint64_t count; /* number of replacements */
	struct buf content;
	struct files_list list;
};
void op_file_result_done(struct op_file_result *r);

typedef int op_file_fn(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		       struct op_file_result *ret, struct err *e);
/*
 * An edit writes in place, so the file keeps its mode, owner and hard links; a concurrent reader
 * may see a partial change.
 */
op_file_fn op_file_write, op_file_read, op_file_edit, op_file_list, op_file_remove, op_upload,
	op_download;

struct op_copy_args {
	const char *name;
	const char *inside;  /* absolute */
	const char *outside; /* "-": a tar archive on stdin or stdout */
	bool is_out;
	unsigned flags; /* FILECOPY_* */
};
/* A stopped sandbox is started for the copy and stopped again. */
ERR_CHECKED int op_copy(struct ak *ak, const struct op_copy_args *args, const struct op_events *ev,
			struct err *e);
