#pragma once
/*
 * jsonedit - one value in somebody else's JSON settings, and everything else as it was.
 *
 * Text in, text out: nothing here looks at a file. The document is checked whole first (jsonscan.h)
 * and refused with line and column when it is not what its reader accepts. What changes is the
 * value and the commas beside it; order, blanks, comments, line ends and a byte order mark stay,
 * and what is new follows the style of what is there.
 *
 * A place is named by the keys that lead to it, ended by NULL. Where a key is there twice the last
 * one counts, as for the readers that we know: that one is compared and replaced. Removing removes
 * all of them, since otherwise the one before would come to count.
 *
 *	static const char *const keys[] = { "mcpServers", "agentkernel", NULL };
 *
 *	r = jsonedit_set(&text, keys, "{\"command\":\"agentkernel\"}", 0, &edited, &len, e);
 */
#include "base/jsonscan.h"

#define JSONEDIT_KEYS_MAX 8u            /* of one place */
#define JSONEDIT_SAME_KEY_MAX 64u       /* members of one object to be removed */
#define JSONEDIT_VALUE_MAX_BYTES 65536u /* of a value to set */
#define JSONEDIT_INDENT_MAX_BYTES 256u  /* of a line; beyond it, it is no style to follow */

enum jsonedit_flags {
	JSONEDIT_ALLOW_COMMENTS = 1 << 0,
	JSONEDIT_ALLOW_TRAILING_COMMAS = 1 << 1,
	JSONEDIT_REPLACE = 1 << 2, /* a different value that is there */
};

enum jsonedit_state {
	JSONEDIT_ABSENT,
	JSONEDIT_SAME, /* in meaning */
	JSONEDIT_DIFFERENT,
};

/*
 * What is at the place, against `value`, which is JSON text of our own. A document of nothing but
 * blanks and comments has nothing at any place. ERR_INVALID and ERR_LIMIT as jsonscan_check(), and
 * where something on the way is no object.
 */
ERR_CHECKED int jsonedit_look(const struct jsonscan_text *t, const char *const *keys,
			      const char *value, unsigned flags, enum jsonedit_state *ret,
			      struct err *e);

/*
 * Sets the value there, making the objects on the way. Returns 1 with the new text, NUL-terminated
 * and the caller's to free; 0 when it is there already. ERR_EXISTS: a different one is.
 */
ERR_CHECKED int jsonedit_set(const struct jsonscan_text *t, const char *const *keys,
			     const char *value, unsigned flags, char **ret_text, size_t *ret_len,
			     struct err *e);

/*
 * Removes what is there, and the objects on the way that nothing else is in, comments included.
 * Returns as jsonedit_set(); 0: nothing is there.
 */
ERR_CHECKED int jsonedit_remove(const struct jsonscan_text *t, const char *const *keys,
				unsigned flags, char **ret_text, size_t *ret_len, struct err *e);

/* A checked document that holds "{}" and blanks alone, or blanks alone. */
bool jsonedit_is_empty(const char *bytes, size_t len);
