/* file - reads and writes whole small files; see file.h. */
#include "base/file.h"

#include "base/cleanup.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_STEP_BYTES 4096
#define FILE_COPY_BYTES (1u << 20)

/* Most files fit into `first`, so only as much as the text needs is allocated. */
int file_read_fd(int fd, size_t max_bytes, char **ret_text, size_t *ret_len)
{
	char first[FILE_STEP_BYTES];
	cleanup_free char *text = NULL;
	size_t capacity = sizeof(first);
	size_t len = 0;

	for (;;) {
		/* cppcheck-suppress legacyUninitvar ; read() fills it */
		ssize_t n = read(fd, (text ? text : first) + len, capacity - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max_bytes)
			return -EFBIG;
		if (len == capacity) {
			capacity *= 2;
			if (text)
				text = mem_grow(text, capacity + 1, 1);
			else
				text = memcpy(mem_alloc(capacity + 1), first, len);
		}
	}
	if (!text)
		text = memcpy(mem_alloc(len + 1), first, len);
	text[len] = '\0';
	*ret_text = take_ptr(text);
	*ret_len = len;
	return 0;
}

int file_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_len)
{
	cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : file_read_fd(fd, max_bytes, ret_text, ret_len);
}

int file_read_text(int dir_fd, const char *path, char *out, size_t out_size)
{
	cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	while (len < out_size) {
		ssize_t n = read(fd, out + len, out_size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0) {
			out[len] = '\0';
			return 0;
		}
		len += (size_t)n;
	}
	return -EFBIG;
}

int file_read_line(int dir_fd, const char *path, char *out, size_t out_size)
{
	cleanup_fd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, out, out_size - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

int file_write_all(int fd, const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_pwrite_all(int fd, const void *bytes, size_t len, off_t at)
{
	const char *p = bytes;

	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

int file_copy(int from_fd, int to_fd, uint64_t max_bytes)
{
	cleanup_free char *bytes = mem_alloc(FILE_COPY_BYTES);
	uint64_t total = 0;

	for (;;) {
		ssize_t n = read(from_fd, bytes, FILE_COPY_BYTES);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		total += (uint64_t)n;
		if (total > max_bytes)
			return -EFBIG;
		r = file_write_all(to_fd, bytes, (size_t)n);
		if (r < 0)
			return r;
	}
}

int file_write_at(int dir_fd, const char *path, const char *text)
{
	cleanup_fd int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		return -errno;
	return 0;
}

int file_create_at(int dir_fd, const char *path, mode_t mode, const char *text)
{
	cleanup_fd int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	if (fd < 0)
		return -errno;
	return file_write_all(fd, text, strlen(text));
}

bool file_is_absence(int r)
{
	switch (-r) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case EXDEV:
	case ENXIO:
	case EACCES:
	case EPERM:
		return true;
	}
	return false;
}

int file_leave_streams(void)
{
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0)
		return -errno;
	for (int stream = 0; stream < 3; stream++)
		if (dup2(null_fd, stream) < 0)
			return -errno;
	if (null_fd < 3)
		(void)take_fd(&null_fd); /* it is one of the streams itself */
	return 0;
}

int file_make_dirs(const char *path, mode_t mode)
{
	char partial[PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(partial))
		return -ENAMETOOLONG;
	memcpy(partial, path, len + 1);
	if (mkdir(path, mode) == 0 || errno == EEXIST)
		return 0;
	for (char *p = partial + 1; p <= partial + len; p++) {
		char kept = *p;

		if (kept != '/' && kept != '\0')
			continue;
		*p = '\0';
		if (mkdir(partial, mode) < 0 && errno != EEXIST)
			return -errno;
		*p = kept;
	}
	return 0;
}

bool file_read_exactly(int fd, void *out, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, (char *)out + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}
