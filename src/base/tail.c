/* tail - selects a part of an output; see tail.h. */
#include "base/tail.h"

int tail_check(const struct tail_range *r, struct err *e)
{
	if (r->has_offset + (r->bytes > 0) + (r->lines > 0) > 1)
		return err_set(e, ERR_INVALID,
			       "use one of offset, tail_lines and tail_bytes, not several");
	return 0;
}

void tail_find(const struct tail_range *r, uint64_t total, uint64_t *ret_offset,
	       uint64_t *ret_length)
{
	uint64_t last = r->bytes ? r->bytes : r->length;

	if (!r->bytes && !r->lines) {
		*ret_offset = r->offset;
		*ret_length = r->length;
		return;
	}
	*ret_offset = total > last ? total - last : 0;
	*ret_length = last;
}

size_t tail_skip(const struct tail_range *r, const char *bytes, size_t len)
{
	size_t at = len;
	uint64_t found = 0;

	if (!r->lines || len == 0)
		return 0;
	/* the final newline belongs to the last line */
	for (at = len - 1; at > 0; at--)
		if (bytes[at - 1] == '\n' && ++found == r->lines)
			return at;
	return 0;
}
