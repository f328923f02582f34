#pragma once
/*
 * tasklog - the kept output of a command that nobody waits for.
 *
 * Two files that take turns: when one is full the other is emptied and goes on, so the last
 * TASKLOG_FILE_MAX_BYTES at least are always there and twice that at most. A file is a row of
 * chunks, each a header and its bytes; `offset` counts all bytes of the command's output since its
 * start, so a reader knows what is missing and continues where it was. The last chunk tells how the
 * command ended. docs/design/named-sandboxes.md has the format.
 *
 * Written by init, whose own time and memory are the sandbox's, into descriptors made outside.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TASKLOG_FILE_MAX_BYTES (1u << 20)
#define TASKLOG_CHUNK_MAX_BYTES 16384u
#define TASKLOG_MAGIC 0x676f6c74u /* "tlog" */

enum tasklog_stream {
	TASKLOG_END, /* the bytes are a struct tasklog_end */
	TASKLOG_STDOUT,
	TASKLOG_STDERR,
};

struct tasklog_chunk {
	uint32_t magic;
	uint32_t stream;
	uint32_t len;
	uint32_t reserved;
	uint64_t time_ms; /* since 1970 */
	uint64_t offset;
};

struct tasklog_end {
	int32_t wait_status;
	uint32_t has_timed_out;
};

struct tasklog {
	int fds[2]; /* -1: none */
	unsigned current;
	uint64_t file_bytes; /* in the current file */
	uint64_t offset;
};

void tasklog_init(struct tasklog *l, int first_fd, int second_fd); /* takes the descriptors */
void tasklog_done(struct tasklog *l);

/* What cannot be written (a full disk) is lost; the command is not held up by it. */
void tasklog_write(struct tasklog *l, enum tasklog_stream stream, const void *bytes, size_t len);

/*
 * Reading: the chunk at `at` of a file's bytes. 1 and its size in *ret_size; 0: not whole yet, or
 * the end; -1: not a log.
 */
int tasklog_read_chunk(const char *bytes, size_t len, size_t at, struct tasklog_chunk *ret,
		       size_t *ret_size);
