/* steprecord - a step of a build in the store; see steprecord.h. */
#include "image/steprecord.h"

#include "base/cleanup.h"
#include "base/keyrows.h"

#include <string.h>

#define ROW(key, kind, member) KEYROWS_ROW(struct steprecord, key, kind, member)
static const struct keyrows_row rows[] = {
	ROW("key", KEYROWS_TEXT, key),           ROW("node", KEYROWS_ARRAY, node),
	ROW("layer", KEYROWS_ARRAY, layer),      ROW("owners", KEYROWS_ARRAY, owners),
	ROW("diff", KEYROWS_ARRAY, diff_id),     ROW("digest", KEYROWS_ARRAY, digest),
	ROW("size", KEYROWS_NUMBER, size_bytes), ROW("made", KEYROWS_NUMBER, made_s),
	ROW("boot", KEYROWS_ARRAY, boot),
};

static const struct keyrows format = {
	.what = "step",
	.version = 1,
	.rows = rows,
	.count = COUNT_OF(rows),
};

static bool is_id(const char *text)
{
	return strlen(text) == RECORD_ID_BYTES &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz234567") == RECORD_ID_BYTES;
}

int steprecord_parse(const char *bytes, size_t len, struct steprecord *ret, struct err *e)
{
	CLEANUP(steprecord_done) struct steprecord r = { 0 };

	if (keyrows_parse(&format, bytes, len, &r, e) < 0)
		return -1;
	/* they become names of files */
	if (!r.key || !is_id(r.node) || (r.layer[0] && !is_id(r.layer)) ||
	    (r.layer[0] && (!reference_is_digest(r.digest) || !reference_is_digest(r.diff_id))))
		return err_set(e, ERR_CORRUPT, "the record of a build's step is incomplete");
	*ret = r;
	r = (struct steprecord){ 0 };
	return 0;
}

void steprecord_format(const struct steprecord *r, struct buf *out)
{
	keyrows_format(&format, r, out);
}

void steprecord_done(struct steprecord *r)
{
	keyrows_done(&format, r);
}
