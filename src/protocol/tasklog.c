/* tasklog - the logged output of a detached command; see tasklog.h. */
#include "protocol/tasklog.h"

#include "base/cleanup.h"
#include "base/timestamp.h"

#include <string.h>
#include <sys/uio.h>

void tasklog_init(struct tasklog *l, int first_fd, int second_fd)
{
	*l = (struct tasklog){ .fds = { first_fd, second_fd } };
}

void tasklog_done(struct tasklog *l)
{
	cleanup_closep(&l->fds[0]);
	cleanup_closep(&l->fds[1]);
}

static void take_turns(struct tasklog *l)
{
	l->current = !l->current;
	l->file_bytes = 0;
	(void)!ftruncate(l->fds[l->current], 0);
	(void)lseek(l->fds[l->current], 0, SEEK_SET);
}

static void write_chunk(struct tasklog *l, enum tasklog_stream stream, const void *bytes,
			size_t len)
{
	const struct tasklog_chunk chunk = {
		.magic = TASKLOG_MAGIC,
		.stream = stream,
		.len = (uint32_t)len,
		.time_ms = timestamp_now_ms(),
		.offset = l->offset,
	};
	struct iovec parts[] = { { (void *)&chunk, sizeof(chunk) }, { (void *)bytes, len } };
	ssize_t n;

	if (l->file_bytes + sizeof(chunk) + len > TASKLOG_FILE_MAX_BYTES)
		take_turns(l);
	n = writev(l->fds[l->current], parts, 2);
	/* remove a partial chunk: it would end the file for every reader */
	if (n != (ssize_t)(sizeof(chunk) + len)) {
		(void)!ftruncate(l->fds[l->current], (off_t)l->file_bytes);
		(void)lseek(l->fds[l->current], (off_t)l->file_bytes, SEEK_SET);
	} else {
		l->file_bytes += (uint64_t)n;
	}
	if (stream != TASKLOG_END)
		l->offset += len;
}

void tasklog_write(struct tasklog *l, enum tasklog_stream stream, const void *bytes, size_t len)
{
	const char *at = bytes;

	if (l->fds[0] < 0 || l->fds[1] < 0)
		return;
	while (len > 0) {
		size_t part = len < TASKLOG_CHUNK_MAX_BYTES ? len : TASKLOG_CHUNK_MAX_BYTES;

		write_chunk(l, stream, at, part);
		at += part;
		len -= part;
	}
}

int tasklog_read_chunk(const char *bytes, size_t len, size_t at, struct tasklog_chunk *ret,
		       size_t *ret_size)
{
	if (at > len || len - at < sizeof(*ret))
		return 0;
	memcpy(ret, bytes + at, sizeof(*ret));
	if (ret->magic != TASKLOG_MAGIC || ret->len > TASKLOG_CHUNK_MAX_BYTES ||
	    ret->stream > TASKLOG_STDERR ||
	    (ret->stream == TASKLOG_END && ret->len != sizeof(struct tasklog_end)))
		return -1;
	if (len - at - sizeof(*ret) < ret->len)
		return 0;
	*ret_size = sizeof(*ret) + ret->len;
	return 1;
}
