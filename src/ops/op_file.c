/* op_file - files of named sandboxes; see op_file.h. */
#include "ops/op_file.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "named/filecopy.h"
#include "named/inventory.h"
#include "named/lifecycle.h"
#include "ops/access.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MODE 0644
#define DIR_MODE 0755

void op_file_result_done(struct op_file_result *r)
{
	free(r->path);
	buf_done(&r->content);
	files_list_done(&r->list);
}

/* Starts the sandbox if needed, opens its files and resolves the path. */
static int open_files(struct ak *ak, const struct op_file_args *args, struct files *f,
		      struct op_file_result *ret, struct err *e)
{
	if (access_need_running(ak, args->name, e) < 0 || files_open(ak, args->name, f, e) < 0)
		return -1;
	return access_resolve_path(ak, args->name, args->path, &ret->path, e);
}

/* ---- writing and reading ---- */

int op_file_write(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		  struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;
	unsigned flags = FILES_WRITE | FILES_PARENTS | (args->appends ? FILES_APPEND : 0);
	cleanup_fd int fd = -1;
	char bytes[65536];
	ssize_t n;

	(void)ev;
	files_init(&f);
	if (open_files(ak, args, &f, ret, e) < 0 ||
	    files_open_file(&f, ret->path, flags, FILE_MODE, &fd, e) < 0)
		return -1;
	while ((n = read(args->fd, bytes, sizeof(bytes))) > 0) {
		int r = file_write_all(fd, bytes, (size_t)n);

		if (r < 0)
			return err_sys(e, -r, "write '%s'", ret->path);
		ret->bytes += (uint64_t)n;
	}
	return n < 0 ? err_sys(e, errno, "read the content") : 0;
}

/* Copies the whole file to args->fd, for a server that forwards the bytes. */
static int send_all(struct files *f, const struct op_file_args *args, struct op_file_result *ret,
		    struct err *e)
{
	cleanup_fd int fd = -1;
	struct stat st;
	int r;

	if (files_open_file(f, ret->path, FILES_READ, 0, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", ret->path);
	r = file_copy(fd, args->fd, UINT64_MAX);
	if (r < 0)
		return err_sys(e, -r, "send '%s'", ret->path);
	ret->bytes = (uint64_t)st.st_size;
	return 0;
}

int op_file_read(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		 struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;

	(void)ev;
	files_init(&f);
	if (open_files(ak, args, &f, ret, e) < 0)
		return -1;
	if (args->sends_all)
		return send_all(&f, args, ret, e);
	buf_done(&ret->content);
	buf_init(&ret->content, args->length);
	return files_read(&f, ret->path, args->offset, &ret->content, &ret->bytes, e);
}

/* ---- editing ---- */

/* Copies `text` with each `old` replaced by `new`; returns the number of replacements. */
static uint64_t replace(const struct buf *text, const char *old, const char *new, struct buf *out)
{
	size_t old_len = strlen(old), new_len = strlen(new), from = 0;
	uint64_t count = 0;
	const char *found;

	while ((found = memmem(text->bytes + from, text->len - from, old, old_len))) {
		size_t at = (size_t)(found - text->bytes);

		buf_add(out, text->bytes + from, at - from);
		buf_add(out, new, new_len);
		from = at + old_len;
		count++;
	}
	buf_add(out, text->bytes + from, text->len - from);
	return count;
}

static int check_count(const char *path, uint64_t count, bool replaces_all, struct err *e)
{
	if (count == 0)
		return err_set(e, ERR_INVALID,
			       "old_text: '%s' does not contain it (it has to match exactly, with "
			       "blanks and line ends)",
			       path);
	if (count > 1 && !replaces_all)
		return err_set(e, ERR_INVALID,
			       "old_text: '%s' contains it %" PRIu64
			       " times (add lines around it, or set replace_all)",
			       path, count);
	return 0;
}

/* Allocates the space first, so that a full disk leaves the file unchanged. */
static int write_in_place(int fd, const struct buf *text, struct err *e)
{
	int r;

	if (fallocate(fd, 0, 0, (off_t)(text->len ? text->len : 1)) < 0 && errno != EOPNOTSUPP)
		return err_sys(e, errno, "make room for the new text");
	r = file_pwrite_all(fd, text->bytes, text->len, 0);
	if (r < 0)
		return err_sys(e, -r, "write the new text");
	if (ftruncate(fd, (off_t)text->len) < 0)
		return err_sys(e, errno, "set the new size");
	return 0;
}

static int read_to_edit(int fd, const char *path, struct buf *out, struct err *e)
{
	char piece[16384];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0)
		buf_add(out, piece, (size_t)n);
	if (n < 0)
		return err_sys(e, errno, "read '%s'", path);
	if (out->is_cut)
		return err_set(e, ERR_LIMIT, "'%s' has more than %u bytes", path,
			       (unsigned)out->max);
	return 0;
}

int op_file_edit(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		 struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;
	cleanup_buf struct buf before, after;
	cleanup_fd int fd = -1;

	(void)ev;
	files_init(&f);
	buf_init(&before, args->max_bytes);
	buf_init(&after, args->max_bytes);
	if (!args->old[0])
		return err_set(e, ERR_INVALID,
			       "old_text: it is empty (sandbox_file_write writes a whole file)");
	if (open_files(ak, args, &f, ret, e) < 0 ||
	    files_open_file(&f, ret->path, FILES_WRITE | FILES_EDIT, 0, &fd, e) < 0 ||
	    read_to_edit(fd, ret->path, &before, e) < 0)
		return -1;
	ret->count = before.len ? replace(&before, args->old, args->new, &after) : 0;
	if (check_count(ret->path, ret->count, args->replaces_all, e) < 0)
		return -1;
	if (after.is_cut)
		return err_set(e, ERR_LIMIT, "'%s' would have more than %" PRIu64 " bytes",
			       ret->path, args->max_bytes);
	if (write_in_place(fd, &after, e) < 0)
		return err_wrap(e, "edit '%s'", ret->path);
	ret->bytes = after.len;
	return 0;
}

/* ---- directories ---- */

int op_file_list(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		 struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;

	(void)ev;
	files_init(&f);
	if (open_files(ak, args, &f, ret, e) < 0)
		return -1;
	return files_list(&f, ret->path, &ret->list, e);
}

int op_file_remove(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		   struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;

	(void)ev;
	files_init(&f);
	if (open_files(ak, args, &f, ret, e) < 0)
		return -1;
	if (files_remove(&f, ret->path, args->removes_tree ? FILES_TREE : 0, e) == 0)
		return 0;
	return e->sys == ENOTEMPTY ? err_set(e, ERR_INVALID,
					     "'%s' is a directory that is not empty (set recursive "
					     "to remove all in it)",
					     ret->path)
				   : -1;
}

int op_upload(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
	      struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;

	(void)ev;
	files_init(&f);
	if (open_files(ak, args, &f, ret, e) < 0 ||
	    (ret->path[1] && files_mkdir(&f, ret->path, FILES_PARENTS, DIR_MODE, e) < 0))
		return -1;
	if (filecopy_in_tar(&f, args->fd, ret->path, 0, e) < 0)
		return err_wrap(e, "unpack the archive");
	return 0;
}

int op_download(struct ak *ak, const struct op_file_args *args, const struct op_events *ev,
		struct op_file_result *ret, struct err *e)
{
	CLEANUP(files_close) struct files f;
	CLEANUP(files_entry_done) struct files_entry entry = { 0 };

	(void)ev;
	files_init(&f);
	if (open_files(ak, args, &f, ret, e) < 0 || files_stat(&f, ret->path, &entry, e) < 0)
		return -1;
	return filecopy_out_tar(&f, ret->path, args->fd, 0, e);
}

/* ---- copies ---- */

static int copy(struct ak *ak, const struct op_copy_args *args, struct err *e)
{
	CLEANUP(files_close) struct files f;
	bool is_stream = strcmp(args->outside, "-") == 0;

	files_init(&f);
	if (files_open(ak, args->name, &f, e) < 0)
		return -1;
	if (args->is_out)
		return is_stream ? filecopy_out_tar(&f, args->inside, STDOUT_FILENO, args->flags, e)
				 : filecopy_out(&f, args->inside, args->outside, args->flags, e);
	return is_stream ? filecopy_in_tar(&f, STDIN_FILENO, args->inside, args->flags, e)
			 : filecopy_in(&f, args->outside, args->inside, args->flags, e);
}

int op_copy(struct ak *ak, const struct op_copy_args *args, const struct op_events *ev,
	    struct err *e)
{
	bool is_running = true;
	struct err ignored;
	int r;

	(void)ev;
	/* a stopped sandbox is started for the copy, because only then its files are mounted */
	if (access_check_sandbox(ak, args->name, ACCESS_USES_IT, e) < 0 ||
	    inventory_is_running(ak, args->name, &is_running, e) < 0 ||
	    (!is_running && lifecycle_start(ak, args->name, e) < 0))
		return -1;
	r = copy(ak, args, e);
	if (!is_running)
		(void)!lifecycle_stop(ak, args->name, 0, 0, &ignored);
	return r;
}
