/* download - writes the bytes of one blob to a file; see download.h. */
#include "image/download.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE_BYTES (256u << 10)

int download_init(struct download *d, int fd, const char *digest, uint64_t size_bytes,
		  struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "look at the file of blob %s", digest);
	*d = (struct download){
		.fd = fd,
		.size_bytes = size_bytes,
		.old_bytes = (uint64_t)st.st_size,
		.is_pieced = st.st_size > 0,
		.sum = digest_new(),
		.piece = mem_alloc(PIECE_BYTES),
	};
	(void)snprintf(d->digest, sizeof(d->digest), "%s", digest);
	if (d->old_bytes > size_bytes) /* not the beginning of this blob */
		return download_restart(d, e);
	return 0;
}

void download_done(struct download *d)
{
	digest_freep(&d->sum);
	free(take_ptr(d->piece));
	d->piece_len = 0;
}

int download_catch_up(struct download *d, size_t max_bytes, bool *ret_is_through, struct err *e)
{
	uint64_t stop = d->done_bytes + max_bytes;

	if (stop > d->old_bytes)
		stop = d->old_bytes;
	while (d->done_bytes < stop) {
		uint64_t left = stop - d->done_bytes;
		ssize_t n = pread(d->fd, d->piece, left < PIECE_BYTES ? left : PIECE_BYTES,
				  (off_t)d->done_bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, errno, "read the beginning of blob %s", d->digest);
		if (n == 0) /* somebody truncated it: continue at its end */
			stop = d->old_bytes = d->done_bytes;
		digest_add(d->sum, d->piece, (size_t)n);
		d->done_bytes += (uint64_t)n;
	}
	*ret_is_through = d->done_bytes == d->old_bytes;
	return 0;
}

int download_flush(struct download *d, struct err *e)
{
	int r = file_pwrite_all(d->fd, d->piece, d->piece_len,
				(off_t)(d->done_bytes - d->piece_len));

	if (r < 0)
		return err_sys(e, -r, "write blob %s", d->digest);
	d->piece_len = 0;
	return 0;
}

int download_add(struct download *d, const void *bytes, size_t len, struct err *e)
{
	const char *from = bytes;

	if (len > d->size_bytes - d->done_bytes)
		return err_set(e, ERR_REMOTE, "blob %s has more than its %" PRIu64 " bytes",
			       d->digest, d->size_bytes);
	digest_add(d->sum, bytes, len);
	while (len > 0) {
		size_t room = PIECE_BYTES - d->piece_len;
		size_t take = len < room ? len : room;

		memcpy(d->piece + d->piece_len, from, take);
		d->piece_len += take;
		d->done_bytes += take;
		from += take;
		len -= take;
		if (d->piece_len == PIECE_BYTES && download_flush(d, e) < 0)
			return -1;
	}
	return 0;
}

int download_restart(struct download *d, struct err *e)
{
	if (ftruncate(d->fd, 0) < 0)
		return err_sys(e, errno, "empty the file of blob %s", d->digest);
	digest_freep(&d->sum);
	d->sum = digest_new();
	d->old_bytes = 0;
	d->done_bytes = 0;
	d->piece_len = 0;
	d->is_pieced = false;
	return 0;
}

int download_check(struct download *d, bool *ret_is_right, struct err *e)
{
	char found[REFERENCE_DIGEST_MAX_BYTES];

	assert(d->done_bytes == d->size_bytes);
	if (download_flush(d, e) < 0)
		return -1;
	digest_finish(d->sum, found);
	*ret_is_right = strcmp(found, d->digest) == 0;
	return 0;
}
