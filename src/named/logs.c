/*
 * logs - reads the stored output of detached commands; see logs.h.
 *
 * The writer continues meanwhile: a file may be truncated between two reads. Each file is read
 * whole (their size is bounded) and its chunks are taken by their offsets, starting with the file
 * whose first offset is lower.
 */
#include "named/logs.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "named/named.h"
#include "named/tasks.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (TASKLOG_FILE_MAX_BYTES + 65536u)
#define NAME_MAX_BYTES 32
#define READ_TRIES 8 /* for a file that is rewritten while we read */

void logs_init(struct logs *l)
{
	*l = (struct logs){ .fds = { -1, -1 } };
}

void logs_done(struct logs *l)
{
	cleanup_closep(&l->fds[0]);
	cleanup_closep(&l->fds[1]);
}

static int find_latest(int log_fd, uint32_t *ret_id, struct err *e)
{
	int fd = openat(log_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct timespec newest = { 0 };
	struct dirent *entry;
	bool is_found = false;
	struct stat st;
	int sys;

	if (!dir)
		return err_sys(e, errno, "list the logs");
	while ((errno = 0, entry = readdir(dir))) {
		if (strlen(entry->d_name) != 10 || entry->d_name[8] != '.' ||
		    fstatat(log_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (is_found &&
		    (st.st_mtim.tv_sec < newest.tv_sec ||
		     (st.st_mtim.tv_sec == newest.tv_sec && st.st_mtim.tv_nsec <= newest.tv_nsec)))
			continue;
		newest = st.st_mtim;
		*ret_id = (uint32_t)strtoul(entry->d_name, NULL, 16);
		is_found = true;
	}
	sys = errno;
	(void)closedir(dir);
	if (sys != 0)
		return err_sys(e, sys, "list the logs");
	if (!is_found)
		return err_set(e, ERR_NOT_FOUND,
			       "no command was started with 'exec -d' there, so there are no logs");
	return 0;
}

int logs_open(const struct ak *ak, const char *sandbox, const char *id, struct logs *ret,
	      struct err *e)
{
	CLEANUP(named_done) struct named n;
	CLEANUP(logs_done) struct logs l;
	cleanup_fd int log_fd = -1;
	char name[NAME_MAX_BYTES];

	named_init(&n);
	logs_init(&l);
	if (named_open(ak, sandbox, &n, e) < 0)
		return -1;
	log_fd = openat(n.dir_fd, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (log_fd < 0)
		return err_sys(e, errno, "open the logs of sandbox '%s'", sandbox);
	if (id ? tasks_parse_id(id, &l.id, e) < 0 : find_latest(log_fd, &l.id, e) < 0)
		return -1;
	for (unsigned half = 0; half < 2; half++) {
		(void)snprintf(name, sizeof(name), "%08" PRIx32 ".%u", l.id, half);
		l.fds[half] = openat(log_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (l.fds[half] < 0)
			return errno == ENOENT
				       ? err_set(e, ERR_NOT_FOUND,
						 "no log of command %08" PRIx32 " in sandbox '%s'",
						 l.id, sandbox)
				       : err_sys(e, errno, "open a log");
	}
	*ret = l;
	logs_init(&l);
	return 0;
}

/* One file's bytes, and the offset of its first chunk. */
struct half {
	char *bytes;
	size_t len;
	bool is_empty;
	uint64_t first_offset;
};

static void half_done(struct half *h)
{
	free(h->bytes);
	h->bytes = NULL;
}

/* Did the writer truncate and restart the file? Then the bytes may mix old and new chunks. */
static bool is_begun_anew(int fd, const struct half *h)
{
	struct tasklog_chunk first;

	return h->len >= sizeof(first) &&
	       (pread(fd, &first, sizeof(first), 0) != (ssize_t)sizeof(first) ||
		memcmp(&first, h->bytes, sizeof(first)) != 0);
}

static int read_whole(int fd, struct half *ret, struct err *e)
{
	for (unsigned i = 0; i < READ_TRIES; i++) {
		int r;

		half_done(ret);
		*ret = (struct half){ 0 };
		r = lseek(fd, 0, SEEK_SET) < 0
			    ? -errno
			    : file_read_fd(fd, FILE_MAX_BYTES, &ret->bytes, &ret->len);
		if (r < 0)
			return err_sys(e, -r, "read a log");
		if (!is_begun_anew(fd, ret))
			return 0;
	}
	ret->len = 0; /* it is written faster than we can read: skip all of it */
	return 0;
}

static int read_half(int fd, struct half *ret, struct err *e)
{
	struct tasklog_chunk chunk;
	size_t size = 0;

	if (read_whole(fd, ret, e) < 0)
		return -1;
	ret->is_empty = tasklog_read_chunk(ret->bytes, ret->len, 0, &chunk, &size) != 1;
	ret->first_offset = ret->is_empty ? UINT64_MAX : chunk.offset;
	return 0;
}

static void give(struct logs *l, const struct tasklog_chunk *chunk, const char *bytes, logs_fn *fn,
		 void *context, uint64_t *skipped)
{
	uint64_t done;

	if (chunk->stream == TASKLOG_END) {
		if (chunk->offset > l->offset) /* the last output found no space on the disk */
			*skipped += chunk->offset - l->offset;
		l->has_ended = true;
		assert(bytes); /* tasklog_read_chunk() has checked the length of an end */
		memcpy(&l->end, bytes, sizeof(l->end));
		return;
	}
	if (chunk->offset + chunk->len <= l->offset)
		return;
	if (chunk->offset > l->offset) {
		*skipped += chunk->offset - l->offset;
		l->offset = chunk->offset;
	}
	done = l->offset - chunk->offset;
	if (fn)
		fn(context, chunk->stream, bytes + done, chunk->len - done);
	l->offset = chunk->offset + chunk->len;
}

static int walk(struct logs *l, const struct half *h, logs_fn *fn, void *context, uint64_t *skipped,
		struct err *e)
{
	struct tasklog_chunk chunk;
	size_t at = 0, size = 0;
	int r;

	while ((r = tasklog_read_chunk(h->bytes, h->len, at, &chunk, &size)) == 1) {
		give(l, &chunk, h->bytes + at + sizeof(chunk), fn, context, skipped);
		at += size;
	}
	if (r < 0)
		return err_set(e, ERR_CORRUPT, "the log of command %08" PRIx32 " is damaged",
			       l->id);
	return 0;
}

int logs_read(struct logs *l, logs_fn *fn, void *context, uint64_t *ret_skipped, struct err *e)
{
	CLEANUP(half_done) struct half a = { 0 };
	CLEANUP(half_done) struct half b = { 0 };
	bool is_a_first;

	*ret_skipped = 0;
	if (read_half(l->fds[0], &a, e) < 0 || read_half(l->fds[1], &b, e) < 0)
		return -1;
	is_a_first = a.first_offset <= b.first_offset;
	if (walk(l, is_a_first ? &a : &b, fn, context, ret_skipped, e) < 0)
		return -1;
	return walk(l, is_a_first ? &b : &a, fn, context, ret_skipped, e);
}
