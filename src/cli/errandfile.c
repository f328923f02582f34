/* errandfile - files of named sandboxes for programs. */
#include "cli/errand.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/shown.h"
#include "engine/files.h"
#include "engine/named.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_LENGTH_DEFAULT (256u << 10)
#define FILE_MODE 0644

static int open_files(struct errand *w, struct files *f, struct err *e)
{
	const char *name = errand_text(w, "name");

	if (errand_need_running(w, name, e) < 0)
		return -1;
	return files_open(w->environ_list, name, f, e);
}

static int check_path(const char *path, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, ERR_INVALID, "path: '%s' is not absolute", path);
	return 0;
}

/* Its bytes are our standard input, to the end. */
int errandfile_write(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	const char *path = errand_text(w, "path");
	unsigned flags =
		FILES_WRITE | FILES_PARENTS | (errand_flag(w, "append") ? FILES_APPEND : 0);
	cleanup_fd int fd = -1;
	uint64_t total = 0;
	char bytes[65536];

	files_init(&f);
	if (check_path(path, e) < 0 || open_files(w, &f, e) < 0 ||
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

static void add_base64(struct json *j, const char *key, const struct buf *b)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	cleanup_free char *text = mem_alloc(b->len / 3 * 4 + 5);
	size_t out = 0;

	for (size_t at = 0; at < b->len; at += 3) {
		size_t left = b->len - at;
		uint32_t three = (uint32_t)(unsigned char)b->bytes[at] << 16;

		if (left > 1)
			three |= (uint32_t)(unsigned char)b->bytes[at + 1] << 8;
		if (left > 2)
			three |= (unsigned char)b->bytes[at + 2];
		text[out++] = digits[three >> 18];
		text[out++] = digits[three >> 12 & 63];
		text[out++] = left > 1 ? digits[three >> 6 & 63] : '=';
		text[out++] = left > 2 ? digits[three & 63] : '=';
	}
	text[out] = '\0';
	json_add_bytes(j, key, text, out);
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

int errandfile_read(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	const char *path = errand_text(w, "path");
	uint64_t offset = errand_number(w, "offset", 0), size = 0;
	cleanup_buf struct buf bytes;

	files_init(&f);
	buf_init(&bytes, errand_number(w, "length", READ_LENGTH_DEFAULT));
	if (check_path(path, e) < 0 || open_files(w, &f, e) < 0 ||
	    files_read(&f, path, offset, &bytes, &size, e) < 0)
		return -1;
	if (errand_flag(w, "raw"))
		return send_raw(&f, path, j, e);
	end_at_character(&bytes, offset + bytes.len >= size);
	if (is_text(&bytes)) {
		json_add_bytes(j, "content", buf_text(&bytes), bytes.len);
		json_add_text(j, "encoding", "utf8");
	} else {
		add_base64(j, "content", &bytes);
		json_add_text(j, "encoding", "base64");
	}
	json_add_number(j, "size", (int64_t)size);
	json_add_number(j, "offset", (int64_t)offset);
	if (offset + bytes.len < size)
		json_add_number(j, "next_offset", (int64_t)(offset + bytes.len));
	return 0;
}

static const char *type_word(uint32_t mode)
{
	return S_ISDIR(mode)   ? "directory"
	       : S_ISREG(mode) ? "file"
	       : S_ISLNK(mode) ? "link"
			       : "other";
}

/* Without a path: where its commands start. */
static int find_dir(const struct errand *w, char **ret, struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(policy_done) struct policy policy = { 0 };
	const char *path = errand_text(w, "path");

	named_init(&n);
	if (path) {
		*ret = mem_dup(path);
		return check_path(path, e);
	}
	if (named_open(w->environ_list, errand_text(w, "name"), &n, e) < 0 ||
	    named_load_policy(&n, &policy, e) < 0)
		return -1;
	*ret = mem_dup(policy.workdir);
	return 0;
}

int errandfile_list(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	CLEANUP(files_list_done) struct files_list list = { 0 };
	cleanup_free char *path = NULL;

	files_init(&f);
	if (open_files(w, &f, e) < 0 || find_dir(w, &path, e) < 0 ||
	    files_list(&f, path, &list, e) < 0)
		return -1;
	json_add_text(j, "path", path);
	json_open_array(j, "entries");
	for (size_t i = 0; i < list.count; i++) {
		const struct files_entry *entry = &list.entries[i];
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
	json_close_array(j);
	json_add_bool(j, "cut", list.is_cut);
	return 0;
}

int errandfile_remove(struct errand *w, struct json *j, struct err *e)
{
	CLEANUP(files_close) struct files f;
	const char *path = errand_text(w, "path");

	files_init(&f);
	if (check_path(path, e) < 0 || open_files(w, &f, e) < 0 || files_remove(&f, path, 0, e) < 0)
		return -1;
	json_add_text(j, "note", "it is gone");
	return 0;
}
