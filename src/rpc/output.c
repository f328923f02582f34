/* output - stores a command's output; see output.h. */
#include "rpc/output.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/shown.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HALF (OUTPUT_SHOWN_MAX_BYTES / 2)
#define REPLACEMENT "\xef\xbf\xbd"

void output_init(struct output *o)
{
	*o = (struct output){ .fd = -1 };
	buf_init(&o->head, HALF);
}

void output_done(struct output *o)
{
	cleanup_closep(&o->fd);
	buf_done(&o->head);
	free(o->tail);
	o->tail = NULL;
}

/* A temporary file on disk if possible, else in memory. */
static int open_file(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("agentkernel-output", MFD_CLOEXEC);
}

static void add_tail(struct output *o, const char *bytes, size_t len)
{
	if (!o->tail)
		o->tail = mem_alloc(HALF);
	if (len > HALF) {
		o->tail_count += len - HALF;
		bytes += len - HALF;
		len = HALF;
	}
	for (size_t done = 0; done < len;) {
		size_t at = o->tail_count % HALF;
		size_t part = HALF - at < len - done ? HALF - at : len - done;

		memcpy(o->tail + at, bytes + done, part);
		o->tail_count += part;
		done += part;
	}
}

void output_add(struct output *o, const char *bytes, size_t len)
{
	size_t first = HALF - o->head.len < len ? HALF - o->head.len : len;
	uint64_t room = OUTPUT_KEPT_MAX_BYTES - o->kept_bytes;
	size_t kept = room < len ? (size_t)room : len;

	o->total_bytes += len;
	if (o->fd < 0)
		o->fd = open_file();
	if (kept && o->fd >= 0 && file_write_all(o->fd, bytes, kept) == 0)
		o->kept_bytes += kept;
	buf_add(&o->head, bytes, first);
	if (first < len)
		add_tail(o, bytes + first, len - first);
}

bool output_is_cut(const struct output *o, uint64_t max_bytes)
{
	return o->total_bytes > max_bytes;
}

void output_add_utf8(struct buf *out, const char *bytes, size_t len)
{
	size_t plain = 0;

	for (size_t at = 0; at < len;) {
		size_t char_len = shown_utf8_len(bytes + at, len - at);

		if (char_len > 0) {
			at += char_len;
			continue;
		}
		buf_add(out, bytes + plain, at - plain);
		buf_add_text(out, REPLACEMENT);
		plain = ++at;
	}
	buf_add(out, bytes + plain, len - plain);
}

/* The end of the last complete character. */
static size_t end_of_characters(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)bytes[len - back];

		if ((c & 0xc0) == 0x80)
			continue;
		if ((c & 0x80) && shown_utf8_len(bytes + len - back, back) == 0)
			return len - back;
		break;
	}
	return len;
}

static size_t begin_of_characters(const char *bytes, size_t len)
{
	size_t at = 0;

	while (at < len && at < 3 && ((unsigned char)bytes[at] & 0xc0) == 0x80)
		at++;
	return at;
}

/* Adds the bytes of the ring in order. */
static void add_ring(const struct output *o, struct buf *out)
{
	size_t at = o->tail_count % HALF;

	if (!o->tail)
		return;
	if (o->tail_count > HALF)
		buf_add(out, o->tail + at, HALF - at);
	buf_add(out, o->tail, o->tail_count < HALF ? (size_t)o->tail_count : at);
}

void output_format(const struct output *o, uint64_t max_bytes, struct buf *out)
{
	size_t half = max_bytes < OUTPUT_SHOWN_MAX_BYTES ? (size_t)max_bytes / 2 : HALF;
	size_t begin, end, first, last;
	cleanup_buf struct buf known; /* all of the output, or its first and last part */

	buf_init(&known, OUTPUT_SHOWN_MAX_BYTES);
	buf_add(&known, o->head.bytes, o->head.len);
	add_ring(o, &known);
	if (!output_is_cut(o, max_bytes)) {
		output_add_utf8(out, buf_text(&known), known.len);
		return;
	}
	first = half < known.len ? half : known.len;
	last = known.len - first < half ? known.len - first : half;
	end = end_of_characters(known.bytes, first);
	begin = begin_of_characters(known.bytes + known.len - last, last);
	output_add_utf8(out, known.bytes, end);
	buf_addf(out, "\n[... %" PRIu64 " of %" PRIu64 " bytes left out here ...]\n",
		 o->total_bytes - end - (last - begin), o->total_bytes);
	output_add_utf8(out, known.bytes + known.len - last + begin, last - begin);
}

int output_read(const struct output *o, uint64_t offset, size_t max, struct buf *out)
{
	char bytes[65536];

	while (max > 0) {
		size_t part = max < sizeof(bytes) ? max : sizeof(bytes);
		ssize_t n = o->fd < 0 ? 0 : pread(o->fd, bytes, part, (off_t)offset);

		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		buf_add(out, bytes, (size_t)n);
		offset += (uint64_t)n;
		max -= (size_t)n;
	}
	return 0;
}
