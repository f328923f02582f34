#pragma once
/*
 * file - whole small files, and writes that finish.
 *
 * Each function wraps one idea around system calls and returns -errno without words: the
 * caller knows what the file means and says so. Reads take a maximum, always.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads all of dir_fd/path (dir_fd may be AT_FDCWD), at most max_bytes (-EFBIG beyond). The text
 * is NUL-terminated and the caller's to free. */
int file_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_len);

/* As above, what is left of an open file. */
int file_read_fd(int fd, size_t max_bytes, char **ret_text, size_t *ret_len);

/* As file_read_at() for a file that holds one line, such as one in /proc: trailing newline removed.
 */
int file_read_line(int dir_fd, const char *path, char *out, size_t out_size);

/* Writes all bytes, through short writes and EINTR. */
int file_write_all(int fd, const void *bytes, size_t len);

/*
 * All that is left of from_fd to to_fd, at most max_bytes (-EFBIG beyond). Works between any two
 * kinds of file.
 */
int file_copy(int from_fd, int to_fd, uint64_t max_bytes);

/* Opens for writing and writes once: for /proc and cgroup files, where one write is one act. */
int file_write_at(int dir_fd, const char *path, const char *text);

/* Makes dir_fd/path with the text in it; fails when it exists. */
int file_create_at(int dir_fd, const char *path, mode_t mode, const char *text);

/*
 * What opening a name says (-errno) when there is nothing there to open: no such thing, one of
 * another kind, or one that is not for the caller. All else, such as descriptors that are used up,
 * says nothing about the name.
 */
bool file_is_absence(int r);

/* Puts /dev/null in the place of stdin, stdout and stderr: whoever reads them waits for their end.
 */
int file_leave_streams(void);

/* mkdir -p with `mode` for what is missing. */
int file_make_dirs(const char *path, mode_t mode);
