#pragma once
/*
 * dnswire - reads and writes numbers and names in DNS messages; input is untrusted.
 *
 * A reader walks forward through a message and never beyond its end. A name may continue elsewhere
 * through compression pointers if the caller permits them (replies have them, questions do not); a
 * pointer must lead backwards, and a name has at most DNSWIRE_POINTERS_MAX, so reading terminates.
 * A writer that is full ignores all further writes. No system calls.
 */
#include "policy/domain.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNSWIRE_NAME_MAX_BYTES 255u
#define DNSWIRE_POINTERS_MAX 32u

struct dnswire_reader {
	const uint8_t *bytes;
	size_t len, at;
};

enum dnswire_flags { DNSWIRE_PLAIN = 0, DNSWIRE_COMPRESSED = 1 };

enum dnswire_kind {
	DNSWIRE_HOST,   /* a name in normal form */
	DNSWIRE_ROOT,   /* "." */
	DNSWIRE_NOBODY, /* well-formed, but no possible host name: control characters, a number */
};

/* False: the message ends too early, or is malformed. */
bool dnswire_read_u16(struct dnswire_reader *r, uint16_t *ret);
bool dnswire_read_u32(struct dnswire_reader *r, uint32_t *ret);
bool dnswire_skip(struct dnswire_reader *r, size_t count);

/* `out` is the name for DNSWIRE_HOST, and "" for DNSWIRE_ROOT. */
bool dnswire_read_name(struct dnswire_reader *r, enum dnswire_flags flags,
		       char out[DOMAIN_MAX_BYTES + 1], enum dnswire_kind *ret_kind);

struct dnswire_writer {
	uint8_t *bytes;
	size_t len, max;
	bool is_full;
};

void dnswire_write(struct dnswire_writer *w, const void *bytes, size_t len);
void dnswire_write_u16(struct dnswire_writer *w, unsigned value);
void dnswire_write_name(struct dnswire_writer *w, const char *name); /* normal form; "": the root */
