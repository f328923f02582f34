#pragma once
/*
 * file - reads and writes whole small files.
 *
 * Functions return -errno without a message: the caller knows what the file means and adds it.
 * Every read has a maximum.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads all of dir_fd/path (dir_fd may be AT_FDCWD), at most max_bytes (-EFBIG if longer). The text
 * is NUL-terminated; the caller frees it.
 */
int file_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_len);

/* Likewise, the rest of an open file. */
int file_read_fd(int fd, size_t max_bytes, char **ret_text, size_t *ret_len);

/* Like file_read_at(), into the caller's memory: -EFBIG if it is longer than size - 1 bytes. */
int file_read_text(int dir_fd, const char *path, char *out, size_t out_size);

/* Like file_read_at() for a file with one line, as in /proc; removes the trailing newline. */
int file_read_line(int dir_fd, const char *path, char *out, size_t out_size);

/* Writes all bytes, retrying after short writes and EINTR. */
int file_write_all(int fd, const void *bytes, size_t len);
int file_pwrite_all(int fd, const void *bytes, size_t len, off_t at);

/* Reads exactly that many bytes; false: the other end closed before, or reading failed. */
bool file_read_exactly(int fd, void *out, size_t len);

/*
 * Copies the rest of from_fd to to_fd, at most max_bytes (-EFBIG if longer), for files of any type.
 */
int file_copy(int from_fd, int to_fd, uint64_t max_bytes);

/* Opens and writes once: for /proc and cgroup files, where each write is one operation. */
int file_write_at(int dir_fd, const char *path, const char *text);

/* Creates dir_fd/path with this text; fails if it exists. */
int file_create_at(int dir_fd, const char *path, mode_t mode, const char *text);

/*
 * Does this -errno of an open mean that there is nothing to open: no such file, one of another
 * type, or one that the caller may not access? Other errors, such as a lack of descriptors, say
 * nothing about the file.
 */
bool file_is_absence(int r);

/* Replaces stdin, stdout and stderr by /dev/null, so that their readers get end-of-file. */
int file_leave_streams(void);

/* mkdir -p; missing directories get `mode`. */
int file_make_dirs(const char *path, mode_t mode);
