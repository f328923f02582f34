/* layersink - hashes, compresses and writes an archive; see layersink.h. */
#include "image/layersink.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "image/digest.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <zlib.h>
#include <zstd.h>

#define OUT_BYTES (256u << 10)
#define GZIP_WINDOW (15 + 16) /* with gzip's header and trailer */
#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

struct layersink {
	int fd;
	enum layersink_form form;
	struct digest *before; /* of the archive */
	struct digest *after;  /* of the compressed output */
	uint64_t archive_bytes;
	uint64_t bytes;
	char *out; /* OUT_BYTES */
	z_stream gzip;
	ZSTD_CStream *zstd;
};

struct layersink *layersink_new(int fd, enum layersink_form form)
{
	struct layersink *s = mem_alloc(sizeof(*s));
	bool is_ok = true;

	s->fd = fd;
	s->form = form;
	s->before = digest_new();
	s->after = digest_new();
	s->out = mem_alloc(OUT_BYTES);
	if (form == LAYERSINK_GZIP)
		is_ok = deflateInit2(&s->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 9,
				     Z_DEFAULT_STRATEGY) == Z_OK;
	if (form == LAYERSINK_ZSTD) {
		s->zstd = ZSTD_createCStream();
		is_ok = s->zstd && !ZSTD_isError(ZSTD_initCStream(s->zstd, ZSTD_LEVEL)) &&
			!ZSTD_isError(ZSTD_CCtx_setParameter(s->zstd, ZSTD_c_checksumFlag, 1));
	}
	assert(is_ok); /* only out of memory */
	return s;
}

void layersink_free(struct layersink *s)
{
	if (!s)
		return;
	digest_free(s->before);
	digest_free(s->after);
	free(s->out);
	if (s->form == LAYERSINK_GZIP)
		(void)deflateEnd(&s->gzip);
	ZSTD_freeCStream(s->zstd); /* NULL is fine */
	free(s);
}

void layersink_freep(struct layersink **s)
{
	layersink_free(*s);
	*s = NULL;
}

static int put(struct layersink *s, const void *bytes, size_t len)
{
	digest_add(s->after, bytes, len);
	s->bytes += len;
	return s->fd >= 0 && len > 0 ? file_write_all(s->fd, bytes, len) : 0;
}

static int put_gzip(struct layersink *s, const void *bytes, size_t len, int flush)
{
	int r;

	s->gzip.next_in = (Bytef *)(uintptr_t)bytes;
	s->gzip.avail_in = (uInt)len;
	do {
		s->gzip.next_out = (Bytef *)s->out;
		s->gzip.avail_out = OUT_BYTES;
		r = deflate(&s->gzip, flush);
		assert(r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR);
		r = put(s, s->out, OUT_BYTES - s->gzip.avail_out);
	} while (r == 0 && s->gzip.avail_out == 0);
	/* cppcheck-suppress uninitvar ; the loop sets it */
	return r;
}

static int put_zstd(struct layersink *s, const void *bytes, size_t len, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { bytes, len, 0 };
	size_t left;
	int r;

	do {
		ZSTD_outBuffer out = { s->out, OUT_BYTES, 0 };

		left = ZSTD_compressStream2(s->zstd, &out, &in, end);
		if (ZSTD_isError(left))
			return -EIO;
		r = put(s, s->out, out.pos);
	} while (r == 0 && (in.pos < in.size || (end == ZSTD_e_end && left > 0)));
	return r;
}

int layersink_write(void *sink, const void *bytes, size_t len)
{
	struct layersink *s = sink;

	assert(len <= UINT32_MAX);
	digest_add(s->before, bytes, len);
	s->archive_bytes += len;
	switch (s->form) {
	case LAYERSINK_GZIP:
		return put_gzip(s, bytes, len, Z_NO_FLUSH);
	case LAYERSINK_ZSTD:
		return put_zstd(s, bytes, len, ZSTD_e_continue);
	default:
		return put(s, bytes, len);
	}
}

int layersink_finish(struct layersink *s, struct layersink_result *ret)
{
	int r = 0;

	if (s->form == LAYERSINK_GZIP)
		r = put_gzip(s, NULL, 0, Z_FINISH);
	if (s->form == LAYERSINK_ZSTD)
		r = put_zstd(s, NULL, 0, ZSTD_e_end);
	if (r < 0)
		return r;
	digest_finish(s->before, ret->diff_id);
	digest_finish(s->after, ret->digest);
	ret->archive_bytes = s->archive_bytes;
	ret->bytes = s->bytes;
	return 0;
}
