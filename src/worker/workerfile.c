/*
 * workerfile - accesses files and directories of named sandboxes.
 *
 * An archive comes from our standard input, and goes to our standard output ("raw": for a server
 * that forwards bytes) or into the result in base64: at most OPERATION_TAR_MAX_BYTES, collected in
 * a memfd sealed to that size. Hostile input: the archive, and everything in the sandbox.
 */
#include "worker/worker.h"

#include "base/cleanup.h"
#include "base/shown.h"
#include "ops/op_file.h"
#include "state/ak.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_MAX_BYTES (1u << 20) /* unused rest after a write that did not fit */

static struct op_file_args file_args(const struct worker *w)
{
	return (struct op_file_args){ .name = worker_text(w, "name"),
				      .path = worker_text(w, "path") };
}

/* Writes our standard input to the file. */
int worker_file_write(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	struct op_file_args args = file_args(w);

	args.fd = STDIN_FILENO;
	args.appends = worker_flag(w, "append");
	if (op_file_write(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "path", result.path);
	json_add_number(j, "bytes", (int64_t)result.bytes);
	return 0;
}

/* ---- reading ---- */

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

/* If a range ends inside a character, ends before that character. */
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

/*
 * Without a range, fails for a file larger than the maximum, because a part would look like the
 * whole. The maximum for programs ("whole") is larger than for models.
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
		       " that are read at once: read it in parts with offset and length%s",
		       path, size, most,
		       w->ak->view.is_for_library ? ", or all of it with agentkernel_read_file()"
						  : "");
}

static void add_content(struct json *j, struct buf *content, uint64_t offset, uint64_t size)
{
	end_at_character(content, offset + content->len >= size);
	if (is_text(content)) {
		json_add_bytes(j, "content", buf_text(content), content->len);
		json_add_text(j, "encoding", "utf8");
	} else {
		json_add_base64(j, "content", buf_text(content), content->len);
		json_add_text(j, "encoding", "base64");
	}
	json_add_number(j, "size", (int64_t)size);
	json_add_number(j, "offset", (int64_t)offset);
	if (offset + content->len < size)
		json_add_number(j, "next_offset", (int64_t)(offset + content->len));
}

int worker_file_read(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	struct op_file_args args = file_args(w);
	uint64_t most =
		worker_flag(w, "whole") ? OPERATION_CONTENT_MAX_BYTES : OPERATION_SHOWN_MAX_BYTES;

	args.offset = worker_number(w, "offset", 0);
	args.length = worker_number(w, "length", most);
	args.sends_all = worker_flag(w, "raw");
	args.fd = STDOUT_FILENO;
	if (op_file_read(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	if (args.sends_all) {
		json_add_number(j, "size", (int64_t)result.bytes);
		return 0;
	}
	if (check_whole(w, result.path, result.bytes, most, e) < 0)
		return -1;
	add_content(j, &result.content, args.offset, result.bytes);
	return 0;
}

int worker_file_edit(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	struct op_file_args args = file_args(w);

	args.old = worker_text(w, "old_text");
	args.new = worker_text(w, "new_text");
	args.replaces_all = worker_flag(w, "replace_all");
	args.max_bytes = OPERATION_CONTENT_MAX_BYTES;
	if (op_file_edit(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "path", result.path);
	json_add_number(j, "replaced", (int64_t)result.count);
	json_add_number(j, "bytes", (int64_t)result.bytes);
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

static void add_entry(struct json *j, const struct files_entry *entry)
{
	char mode[8];

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

int worker_file_list(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	const struct op_file_args args = file_args(w);
	const char *after = worker_text(w, "after"); /* entries are sorted by name */

	if (op_file_list(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "path", result.path);
	json_open_array(j, "entries");
	for (size_t i = 0; i < result.list.count; i++)
		if (!after || strcmp(result.list.entries[i].name, after) > 0)
			add_entry(j, &result.list.entries[i]);
	json_close_array(j);
	json_add_bool(j, "cut", result.list.is_cut);
	return 0;
}

int worker_file_remove(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	struct op_file_args args = file_args(w);

	args.removes_tree = worker_flag(w, "recursive");
	if (op_file_remove(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "path", result.path);
	json_add_text(j, "note", "it is gone");
	return 0;
}

/* ---- archives ---- */

int worker_upload(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	struct op_file_args args = file_args(w);

	args.fd = STDIN_FILENO;
	if (op_upload(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "path", result.path);
	json_add_text(j, "note", "unpacked");
	return 0;
}

/* Creates a memfd of that size, sealed against growing. */
static int open_bounded(uint64_t max_bytes, int *ret_fd, struct err *e)
{
	cleanup_fd int fd = memfd_create("agentkernel-tar", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)max_bytes) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0)
		return err_sys(e, errno, "create a memory file");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int download_into_result(struct worker *w, struct op_file_args *args,
				struct op_file_result *result, struct json *j, struct err *e)
{
	cleanup_fd int fd = -1;
	const char *bytes;
	off_t len;
	int r;

	if (open_bounded(OPERATION_TAR_MAX_BYTES, &fd, e) < 0)
		return -1;
	args->fd = fd;
	r = op_download(w->ak, args, &w->events, result, e);
	len = lseek(fd, 0, SEEK_CUR); /* the helper shares our file offset */
	if (r < 0 && len > (off_t)(OPERATION_TAR_MAX_BYTES - BLOCK_MAX_BYTES))
		return err_set(e, ERR_LIMIT,
			       "the archive of '%s' has more than %u bytes: download parts of it, "
			       "or get it over HTTP, where it has no limit",
			       result->path, OPERATION_TAR_MAX_BYTES);
	if (r < 0)
		return -1;
	bytes = mmap(NULL, OPERATION_TAR_MAX_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, errno, "read the archive");
	json_add_text(j, "path", result->path);
	json_add_number(j, "bytes", len);
	json_add_base64(j, "tar", bytes, (size_t)len);
	return 0;
}

int worker_download(struct worker *w, struct json *j, struct err *e)
{
	CLEANUP(op_file_result_done) struct op_file_result result = { 0 };
	struct op_file_args args = file_args(w);

	if (!worker_flag(w, "raw"))
		return download_into_result(w, &args, &result, j, e);
	args.fd = STDOUT_FILENO;
	if (op_download(w->ak, &args, &w->events, &result, e) < 0)
		return -1;
	json_add_text(j, "path", result.path);
	return 0;
}
