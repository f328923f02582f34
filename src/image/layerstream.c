/*
 * layerstream - reads the bytes of a layer's archive; see layerstream.h.
 *
 * Theory of operation. One input buffer, one output buffer. The output is filled completely before
 * it is hashed and returned, so that the tar reader gets whole records and need not copy, and it is
 * small enough to stay in the cache until its bytes are written to files.
 *
 * ISA-L decompresses gzip: zlib, directly or through libarchive, takes more than twice the time,
 * and decompression is half of the cost of unpacking.
 *
 * Hostile input: all of it. A small input may have endless output, so the limits are checked after
 * each buffer.
 */
#include "image/layerstream.h"

#include "base/cleanup.h"
#include "base/mem.h"
#include "image/digest.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <string.h>
#include <zstd.h>

#define IN_BYTES (128u << 10)
#define OUT_BYTES (256u << 10)
#define MAGIC_BYTES 4u
#define BLOCK_BYTES 512u /* of a tar */
#define GZIP_FIRST 0x1f

struct layerstream {
	int fd;
	const struct layer_limits *limits;
	/* Decompresses into out[*at...]; *at is unchanged only at the end of the stream. */
	int (*step)(struct layerstream *s, size_t *at);

	uint8_t *in;
	size_t in_at; /* consumed so far of in_len */
	size_t in_len;
	uint64_t in_bytes; /* read in total */
	bool is_input_over;
	uint8_t *out;
	uint64_t out_bytes;
	uint64_t content_end;

	bool is_in_part; /* in the middle of a gzip member or a zstd frame */
	struct inflate_state *gzip;
	ZSTD_DStream *zstd;
	struct digest *digest;
	struct digest *input_digest; /* NULL: not requested */

	bool is_padded;

	bool has_failed;
	struct err err;
};

static int read_some(struct layerstream *s, void *bytes, size_t len, size_t *ret_len)
{
	ssize_t n;

	do
		n = read(s->fd, bytes, len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(&s->err, errno, "read the archive");
	if (s->input_digest)
		digest_add(s->input_digest, bytes, (size_t)n);
	s->in_bytes += (uint64_t)n;
	s->is_input_over = n == 0;
	*ret_len = (size_t)n;
	return 0;
}

/* Afterwards there is input, or it has ended. */
static int fill(struct layerstream *s)
{
	if (s->in_at < s->in_len || s->is_input_over)
		return 0;
	s->in_at = 0;
	s->in_len = 0;
	return read_some(s, s->in, IN_BYTES, &s->in_len);
}

static bool has_input(const struct layerstream *s)
{
	return s->in_at < s->in_len;
}

/* ---- plain ---- */

static int step_plain(struct layerstream *s, size_t *at)
{
	size_t len = s->in_len - s->in_at;

	if (len > 0) { /* bytes read to detect the format */
		memcpy(s->out + *at, s->in + s->in_at, len);
		s->in_at += len;
	} else if (!s->is_input_over && read_some(s, s->out + *at, OUT_BYTES - *at, &len) < 0) {
		return -1;
	}
	*at += len;
	return 0;
}

/* ---- gzip ---- */

static int gzip_problem(struct layerstream *s, int code)
{
	if (code == ISAL_INCORRECT_CHECKSUM)
		return err_set(&s->err, ERR_INVALID, "the gzip data has a wrong checksum");
	return err_set(&s->err, ERR_INVALID, "the gzip data is damaged");
}

static int step_gzip(struct layerstream *s, size_t *at)
{
	struct inflate_state *z = s->gzip;
	int code;

	if (!s->is_in_part) {
		if (s->in[s->in_at] != GZIP_FIRST)
			return err_set(&s->err, ERR_INVALID,
				       "something follows the gzip data that is not gzip");
		isal_inflate_reset(z);
		s->is_in_part = true;
	}
	z->next_in = s->in + s->in_at;
	z->avail_in = (uint32_t)(s->in_len - s->in_at);
	z->next_out = s->out + *at;
	z->avail_out = (uint32_t)(OUT_BYTES - *at);
	code = isal_inflate(z);
	if (code != ISAL_DECOMP_OK)
		return gzip_problem(s, code);
	if (s->is_input_over && z->next_out == s->out + *at && z->block_state != ISAL_BLOCK_FINISH)
		return err_set(&s->err, ERR_INVALID, "the gzip data is cut off");
	s->in_at = s->in_len - z->avail_in;
	*at = OUT_BYTES - z->avail_out;
	if (z->block_state == ISAL_BLOCK_FINISH)
		s->is_in_part = false;
	return 0;
}

/* ---- zstd ---- */

static int step_zstd(struct layerstream *s, size_t *at)
{
	ZSTD_inBuffer in = { s->in, s->in_len, s->in_at };
	ZSTD_outBuffer out = { s->out, OUT_BYTES, *at };
	size_t left = ZSTD_decompressStream(s->zstd, &out, &in);

	if (ZSTD_isError(left))
		return err_set(&s->err, ERR_INVALID, "the zstd data is damaged: %s",
			       ZSTD_getErrorName(left));
	if (s->is_input_over && out.pos == *at && left > 0)
		return err_set(&s->err, ERR_INVALID, "the zstd data is cut off");
	s->in_at = in.pos;
	*at = out.pos;
	s->is_in_part = left > 0;
	return 0;
}

/* ---- all of them ---- */

static void start_gzip(struct layerstream *s)
{
	s->gzip = mem_alloc(sizeof(*s->gzip));
	isal_inflate_init(s->gzip);
	s->gzip->crc_flag = ISAL_GZIP;
	s->step = step_gzip;
}

static void start_zstd(struct layerstream *s)
{
	s->zstd = ZSTD_createDStream();
	if (!s->zstd)
		abort(); /* out of memory */
	s->step = step_zstd;
}

static int detect(struct layerstream *s)
{
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	static const uint8_t gzip[] = { GZIP_FIRST, 0x8b };

	while (s->in_len < MAGIC_BYTES && !s->is_input_over) {
		size_t len = 0;

		if (read_some(s, s->in + s->in_len, IN_BYTES - s->in_len, &len) < 0)
			return -1;
		s->in_len += len;
	}
	if (s->in_len >= sizeof(gzip) && memcmp(s->in, gzip, sizeof(gzip)) == 0)
		start_gzip(s);
	else if (s->in_len >= sizeof(zstd) && memcmp(s->in, zstd, sizeof(zstd)) == 0)
		start_zstd(s);
	else
		s->step = step_plain;
	return 0;
}

/* Fills the output buffer, or up to the end. */
static int produce(struct layerstream *s, size_t *ret_len)
{
	size_t at = 0;

	while (at < OUT_BYTES) {
		if (s->step == step_plain) {
			if (s->is_input_over && !has_input(s))
				break;
		} else {
			if (fill(s) < 0)
				return -1;
			if (!has_input(s) && !s->is_in_part)
				break;
		}
		if (s->step(s, &at) < 0)
			return -1;
	}
	*ret_len = at;
	return 0;
}

static int check_limits(struct layerstream *s)
{
	uint64_t consumed = s->in_bytes - (s->in_len - s->in_at);

	if (s->out_bytes > s->limits->archive_bytes)
		return err_set(&s->err, ERR_LIMIT, "the archive is larger than %llu bytes",
			       (unsigned long long)s->limits->archive_bytes);
	if (s->out_bytes > s->limits->ratio_free_bytes &&
	    s->out_bytes / s->limits->ratio > consumed)
		return err_set(&s->err, ERR_LIMIT,
			       "the archive grows more than %llu-fold when it is decompressed",
			       (unsigned long long)s->limits->ratio);
	return 0;
}

static void note_content(struct layerstream *s, size_t len)
{
	size_t end = len;

	while (end > 0 && s->out[end - 1] == 0)
		end--;
	if (end > 0)
		s->content_end = s->out_bytes + end;
}

static int next(struct layerstream *s, size_t *ret_len)
{
	size_t len = 0;

	if (!s->step && detect(s) < 0)
		return -1;
	if (produce(s, &len) < 0)
		return -1;
	note_content(s, len);
	s->out_bytes += len;
	if (check_limits(s) < 0)
		return -1;
	digest_add(s->digest, s->out, len);
	*ret_len = len;
	return 0;
}

int layerstream_next(struct layerstream *s, const void **ret, size_t *ret_len)
{
	if (s->has_failed || next(s, ret_len) < 0) {
		s->has_failed = true;
		return -1;
	}
	*ret = s->out;
	return 0;
}

size_t layerstream_pad(struct layerstream *s, const void **ret)
{
	static const char zeros[BLOCK_BYTES];
	size_t over = s->out_bytes % BLOCK_BYTES;

	if (over == 0 || s->is_padded)
		return 0;
	s->is_padded = true;
	*ret = zeros;
	return BLOCK_BYTES - over;
}

bool layerstream_is_padded(const struct layerstream *s)
{
	return s->is_padded;
}

const struct err *layerstream_get_error(const struct layerstream *s)
{
	return s->has_failed ? &s->err : NULL;
}

uint64_t layerstream_get_size(const struct layerstream *s)
{
	return s->out_bytes;
}

uint64_t layerstream_get_content_end(const struct layerstream *s)
{
	return s->content_end;
}

void layerstream_finish(struct layerstream *s, char ret_diff_id[REFERENCE_DIGEST_MAX_BYTES])
{
	digest_finish(s->digest, ret_diff_id);
}

void layerstream_hash_input(struct layerstream *s)
{
	s->input_digest = digest_new();
}

void layerstream_finish_input(struct layerstream *s, char ret_digest[REFERENCE_DIGEST_MAX_BYTES])
{
	digest_finish(s->input_digest, ret_digest);
}

struct layerstream *layerstream_new(int fd, const struct layer_limits *limits)
{
	struct layerstream *s = mem_alloc(sizeof(*s));

	s->fd = fd;
	s->limits = limits;
	s->in = mem_alloc(IN_BYTES);
	s->out = mem_alloc(OUT_BYTES);
	s->digest = digest_new();
	return s;
}

void layerstream_free(struct layerstream *s)
{
	if (!s)
		return;
	free(s->in);
	free(s->out);
	free(s->gzip);
	(void)ZSTD_freeDStream(s->zstd); /* always 0 */
	digest_free(s->digest);
	digest_free(s->input_digest);
	free(s);
}

void layerstream_freep(struct layerstream **s)
{
	layerstream_free(*s);
	*s = NULL;
}
