#pragma once
/* tarwriter - writes tar archives byte by byte, as most tools would not. */
#include "unit.h"

#include "base/buf.h"

#include <stdio.h>
#include <time.h>

#define BLOCK 512u
#define MTIME 1600000000

struct entry {
	const char *name;
	char type; /* 0: a file */
	const char *content;
	size_t len;    /* 0: length of the text */
	unsigned mode; /* 0: 0644, for directories 0755 */
	const char *link;
	unsigned uid, gid;
	unsigned major, minor;
	time_t mtime;    /* 0: MTIME */
	const char *pax; /* records, "key=value\n" */
};

static inline void put_octal(char *field, size_t width, unsigned long value)
{
	(void)snprintf(field, width, "%0*lo", (int)width - 1, value);
}

static inline void put_checksum(char header[BLOCK])
{
	unsigned sum = 0;

	memset(header + 148, ' ', 8);
	for (unsigned i = 0; i < BLOCK; i++)
		sum += (unsigned char)header[i];
	(void)snprintf(header + 148, 8, "%06o", sum);
}

static inline void add_padded(struct buf *b, const void *bytes, size_t len)
{
	static const char zeros[BLOCK];

	buf_add(b, bytes, len);
	buf_add(b, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

static inline void fill_header(char h[BLOCK], const struct entry *n, size_t size)
{
	char type = n->type ? n->type : '0';

	memset(h, 0, BLOCK);
	memcpy(h, n->name, strnlen(n->name, 100));
	put_octal(h + 100, 8, n->mode ? n->mode : type == '5' ? 0755 : 0644);
	put_octal(h + 108, 8, n->uid);
	put_octal(h + 116, 8, n->gid);
	put_octal(h + 124, 12, size);
	put_octal(h + 136, 12, (unsigned long)(n->mtime ? n->mtime : MTIME));
	h[156] = type;
	if (n->link)
		memcpy(h + 157, n->link, strnlen(n->link, 100));
	memcpy(h + 257, "ustar\00000", 8);
	put_octal(h + 329, 8, n->major);
	put_octal(h + 337, 8, n->minor);
	put_checksum(h);
}

static inline void add_raw(struct buf *b, const struct entry *n)
{
	size_t len = n->content && n->len == 0 ? strlen(n->content) : n->len;
	char header[BLOCK];

	fill_header(header, n, len);
	buf_add(b, header, BLOCK);
	add_padded(b, n->content ? n->content : "", n->content ? len : 0);
}

/* "25 path=...", where the number includes itself. */
static inline void add_record(struct buf *b, const char *record, size_t record_len)
{
	size_t len = record_len + 3;
	char digits[24];

	while ((size_t)snprintf(digits, sizeof(digits), "%zu", len) + 1 + record_len != len)
		len++;
	buf_addf(b, "%zu ", len);
	buf_add(b, record, record_len);
}

static inline void add_pax(struct buf *b, const char *text)
{
	cleanup_buf struct buf records = { .max = 1u << 20 };

	while (*text) {
		size_t len = strcspn(text, "\n") + 1;

		add_record(&records, text, len);
		text += len;
	}
	add_raw(b, &(struct entry){ "pax", 'x', .content = records.bytes, .len = records.len });
}

static inline void add(struct buf *b, const struct entry *n)
{
	if (n->pax)
		add_pax(b, n->pax);
	add_raw(b, n);
}

#define ADD(...) add(b, &(struct entry){ __VA_ARGS__ })

static inline void add_end(struct buf *b)
{
	static const char zeros[2 * BLOCK];

	buf_add(b, zeros, sizeof(zeros));
}
