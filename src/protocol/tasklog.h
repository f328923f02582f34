#pragma once
/*
 * tasklog - the logged output of a detached command.
 *
 * Two files used in turn: when one is full the other is truncated and used, so at least the last
 * TASKLOG_FILE_MAX_BYTES are kept, and at most twice as many. A file is a sequence of chunks, each
 * a header and its bytes; `offset` counts all bytes of the command's output since its start, so a
 * reader detects gaps and can continue where it stopped. The last chunk records how the command
 * ended. docs/design/named-sandboxes.md has the format.
 *
 * Written by init, whose CPU time and memory are the sandbox's, into descriptors opened outside.
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

/* Output that cannot be written (full disk) is lost; the command is not blocked. */
void tasklog_write(struct tasklog *l, enum tasklog_stream stream, const void *bytes, size_t len);

/*
 * Parses the chunk at offset `at` of a file's bytes. Returns 1 with its size in *ret_size; 0 at the
 * end or if the chunk is incomplete; -1 if this is not a log.
 */
int tasklog_read_chunk(const char *bytes, size_t len, size_t at, struct tasklog_chunk *ret,
		       size_t *ret_size);
