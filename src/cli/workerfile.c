/*
 * workerfile - files of named sandboxes for programs: write, read, edit, list, remove.
 *
 * All of it goes through named/files, as the sandbox's own user. A path may be relative to the
 * sandbox's working directory or begin with "~" (worker_resolve_path()). An edit happens in place,
 * so the file keeps its mode, its owner and its other names; whoever reads it meanwhile may see a
 * part of it.
 */
#include "cli/worker.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/shown.h"
#include "named/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MODE 0644

int workerfile_open(struct worker *w, struct files *f, char **ret_path, struct err *e)
{
	const char *name = worker_text(w, "name");

	if (worker_need_running(w, name, e) < 0 || files_open(w->ak, name, f, e) < 0)
		return -1;
	return worker_resolve_path(w, name, worker_text(w, "path"), ret_path, e);
}

/* Its bytes are our standard input, to the end. */
int workerfile_write(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	cleanup_free char *path = NULL;
	unsigned flags =
		FILES_WRITE | FILES_PARENTS | (worker_flag(w, "append") ? FILES_APPEND : 0);
	cleanup_fd int fd = -1;
	uint64_t total = 0;
	char bytes[65536];

	files_init(&f);
	if (workerfile_open(w, &f, &path, e) < 0 ||
	    files_open_file(&f, path, flags, FILE_MODE, &fd, e) < 0)
		return -1;
	for (;;) {
		ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

		if (n < 0)
			return err_sys(e, errno, "read the content");
		if (n == 0)
			break;
		for (ssize_t done = 0; done < n;) {
			ssize_t written = write(fd, bytes + done, (size_t)(n - done));

			if (written < 0)
				return err_sys(e, errno, "write '%s'", path);
			done += written;
		}
		total += (uint64_t)n;
	}
	json_add_text(j, "path", path);
	json_add_number(j, "bytes", (int64_t)total);
	return 0;
}

static bool is_text(const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		size_t len = b->bytes[at] ? shown_utf8_len(b->bytes + at, b->len - at) : 0;

		if (len == 0)
			return false;
		at += len;
	}
	return true;
}

/* A range may end inside a character: then it ends before it. */
static void end_at_character(struct buf *b, bool is_last)
{
	for (size_t back = 1; !is_last && back <= 3 && back <= b->len; back++) {
		unsigned char c = (unsigned char)b->bytes[b->len - back];

		if ((c & 0xc0) == 0x80)
			continue;
		if ((c & 0x80) && shown_utf8_len(b->bytes + b->len - back, back) == 0)
			b->len -= back;
		return;
	}
}

/* All of it to standard output, for a face that hands it on as it is. */
static int send_raw(struct files *f, const char *path, struct json *j, struct err *e)
{
	cleanup_fd int fd = -1;
	struct stat st;
	int r;

	if (files_open_file(f, path, FILES_READ, 0, &fd, e) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at '%s'", path);
	r = file_copy(fd, STDOUT_FILENO, UINT64_MAX);
	if (r < 0)
		return err_sys(e, -r, "send '%s'", path);
	json_add_number(j, "size", (int64_t)st.st_size);
	return 0;
}

/*
 * Without a range all of the file is wanted: a part of it would look like the whole. What a face
 * hands on to a program ("whole") may be longer than what a model reads.
 */
static int check_whole(const struct worker *w, const char *path, uint64_t size, uint64_t most,
		       struct err *e)
{
	if (worker_text(w, "offset") || worker_text(w, "length") || size <= most)
		return 0;
	if (worker_flag(w, "whole"))
		return err_set(e, ERR_LIMIT,
			       "'%s' has %" PRIu64 " bytes, and a JSON answer at most %" PRIu64
			       ": ask for the bytes themselves with the header 'Accept: "
			       "application/octet-stream', or for parts with ?offset= and &length=",
			       path, size, most);
	return err_set(e, ERR_LIMIT,
		       "'%s' has %" PRIu64 " bytes, more than the %" PRIu64
		       " that are read at once: read it in parts with offset and length",
		       path, size, most);
}

int workerfile_read(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	uint64_t most =
		worker_flag(w, "whole") ? OPERATION_CONTENT_MAX_BYTES : OPERATION_SHOWN_MAX_BYTES;
	uint64_t offset = worker_number(w, "offset", 0), size = 0;
	cleanup_free char *path = NULL;
	cleanup_buf struct buf bytes;

	files_init(&f);
	buf_init(&bytes, worker_number(w, "length", most));
	if (workerfile_open(w, &f, &path, e) < 0)
		return -1;
	if (worker_flag(w, "raw"))
		return send_raw(&f, path, j, e);
	if (files_read(&f, path, offset, &bytes, &size, e) < 0 ||
	    check_whole(w, path, size, most, e) < 0)
		return -1;
	end_at_character(&bytes, offset + bytes.len >= size);
	if (is_text(&bytes)) {
		json_add_bytes(j, "content", buf_text(&bytes), bytes.len);
		json_add_text(j, "encoding", "utf8");
	} else {
		json_add_base64(j, "content", buf_text(&bytes), bytes.len);
		json_add_text(j, "encoding", "base64");
	}
	json_add_number(j, "size", (int64_t)size);
	json_add_number(j, "offset", (int64_t)offset);
	if (offset + bytes.len < size)
		json_add_number(j, "next_offset", (int64_t)(offset + bytes.len));
	return 0;
}

/* ---- editing ---- */

/* A copy of `text` with each `old` replaced by `new`; how many there were. */
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

static int check_count(const struct worker *w, const char *path, uint64_t count, struct err *e)
{
	if (count == 0)
		return err_set(e, ERR_INVALID,
			       "old_text: '%s' does not contain it (it has to match exactly, with "
			       "blanks and line ends)",
			       path);
	if (count > 1 && !worker_flag(w, "replace_all"))
		return err_set(e, ERR_INVALID,
			       "old_text: '%s' contains it %" PRIu64
			       " times (add lines around it, or set replace_all)",
			       path, count);
	return 0;
}

/* Room is made first: a disk that is full leaves the file as it was. */
static int write_in_place(int fd, const struct buf *text, struct err *e)
{
	size_t done = 0;

	if (fallocate(fd, 0, 0, (off_t)(text->len ? text->len : 1)) < 0 && errno != EOPNOTSUPP)
		return err_sys(e, errno, "make room for the new text");
	while (done < text->len) {
		ssize_t n = pwrite(fd, text->bytes + done, text->len - done, (off_t)done);

		if (n < 0)
			return err_sys(e, errno, "write the new text");
		done += (size_t)n;
	}
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
			       OPERATION_CONTENT_MAX_BYTES);
	return 0;
}

int workerfile_edit(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	const char *old = worker_text(w, "old_text"), *new = worker_text(w, "new_text");
	cleanup_free char *path = NULL;
	cleanup_buf struct buf before, after;
	cleanup_fd int fd = -1;
	uint64_t count;

	files_init(&f);
	buf_init(&before, OPERATION_CONTENT_MAX_BYTES);
	buf_init(&after, OPERATION_CONTENT_MAX_BYTES);
	if (!old[0])
		return err_set(e, ERR_INVALID,
			       "old_text: it is empty (sandbox_file_write writes a whole file)");
	if (workerfile_open(w, &f, &path, e) < 0 ||
	    files_open_file(&f, path, FILES_WRITE | FILES_EDIT, 0, &fd, e) < 0 ||
	    read_to_edit(fd, path, &before, e) < 0)
		return -1;
	count = before.len ? replace(&before, old, new, &after) : 0;
	if (check_count(w, path, count, e) < 0)
		return -1;
	if (after.is_cut)
		return err_set(e, ERR_LIMIT, "'%s' would have more than %u bytes", path,
			       OPERATION_CONTENT_MAX_BYTES);
	if (write_in_place(fd, &after, e) < 0)
		return err_wrap(e, "edit '%s'", path);
	json_add_text(j, "path", path);
	json_add_number(j, "replaced", (int64_t)count);
	json_add_number(j, "bytes", (int64_t)after.len);
	return 0;
}

/* ---- directories ---- */

static const char *type_word(uint32_t mode)
{
	return S_ISDIR(mode)   ? "directory"
	       : S_ISREG(mode) ? "file"
	       : S_ISLNK(mode) ? "link"
			       : "other";
}

int workerfile_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	CLEANUP(files_list_done) struct files_list list = { 0 };
	const char *after = worker_text(w, "after"); /* they are sorted by name */
	cleanup_free char *path = NULL;

	files_init(&f);
	if (workerfile_open(w, &f, &path, e) < 0 || files_list(&f, path, &list, e) < 0)
		return -1;
	json_add_text(j, "path", path);
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++) {
		const struct files_entry *entry = &list.entries[i];
		char mode[8];

		if (after && strcmp(entry->name, after) <= 0)
			continue;
		(void)snprintf(mode, sizeof(mode), "%04o", entry->mode & 07777);
		json_open_object(j, NULL);
		json_add_text(j, "name", entry->name);
		json_add_text(j, "type", type_word(entry->mode));
		json_add_number(j, "size", (int64_t)entry->size_bytes);
		json_add_text(j, "mode", mode);
		json_add_number(j, "modified_ms", (int64_t)entry->modified_ms);
		if (entry->target)
			json_add_text(j, "target", entry->target);
		json_close_object(j);
	}
	json_close_array(j);
	json_add_bool(j, "cut", list.is_cut);
	return 0;
}

int workerfile_remove(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	cleanup_free char *path = NULL;

	files_init(&f);
	if (workerfile_open(w, &f, &path, e) < 0)
		return -1;
	if (files_remove(&f, path, worker_flag(w, "recursive") ? FILES_TREE : 0, e) < 0)
		return e->sys == ENOTEMPTY ? err_set(e, ERR_INVALID,
						     "'%s' is a directory that is not empty (set "
						     "recursive to remove all in it)",
						     path)
					   : -1;
	json_add_text(j, "path", path);
	json_add_text(j, "note", "it is gone");
	return 0;
}
