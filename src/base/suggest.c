/* suggest - finds the known word nearest to a mistyped one; see suggest.h. */
#include "base/suggest.h"

#include <string.h>

static size_t smallest(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* The number of letters to add, drop or change to turn one word into the other. */
static size_t edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t row[SUGGEST_WORD_MAX_BYTES + 1];

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t above = row[j];

			row[j] = smallest(above + 1, row[j - 1] + 1,
					  diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_len];
}

const char *suggest_nearest(const char *typed, const char *const *words, size_t count)
{
	size_t typed_len = strlen(typed);
	size_t best = typed_len < 3 ? 2 : 3; /* a distance of this or more is not near */
	const char *nearest = NULL;

	if (typed_len > SUGGEST_WORD_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(words[i]);
		size_t distance;

		if (len > SUGGEST_WORD_MAX_BYTES)
			continue;
		/* "--mem" for "--memory": a prefix is near, whatever is missing */
		if (typed_len >= 3 && strncmp(typed, words[i], typed_len) == 0)
			return words[i];
		distance = edit_distance(typed, typed_len, words[i], len);
		if (distance < best) {
			best = distance;
			nearest = words[i];
		}
	}
	return nearest;
}
