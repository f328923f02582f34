#pragma once
/*
 * jsonedit - edits one value in a JSON document and keeps everything else.
 *
 * Text in, text out: no files. The document, which belongs to another program, is checked first
 * (jsonscan.h) and refused with line and column if that program would not accept it. Only the value
 * and the commas beside it change; order, blanks, comments, line ends and a byte order mark stay,
 * and new text follows the existing style.
 *
 * A place is given by the keys that lead to it, ended by NULL. If a key occurs twice the last one
 * is effective, as in all JSON readers we know: that one is compared and replaced. Removing removes
 * all of them, because otherwise an earlier one would become effective.
 *
 *	static const char *const keys[] = { "mcpServers", "agentkernel", NULL };
 *
 *	r = jsonedit_set(&text, keys, "{\"command\":\"agentkernel\"}", 0, &edited, &len, e);
 */
#include "base/jsonscan.h"

#define JSONEDIT_KEYS_MAX 8u            /* of one place */
#define JSONEDIT_SAME_KEY_MAX 64u       /* duplicate members of one object to be removed */
#define JSONEDIT_VALUE_MAX_BYTES 65536u /* of a value to set */
#define JSONEDIT_INDENT_MAX_BYTES 256u  /* of a line; a longer one is not used as style */

enum jsonedit_flags {
	JSONEDIT_ALLOW_COMMENTS = 1 << 0,
	JSONEDIT_ALLOW_TRAILING_COMMAS = 1 << 1,
	JSONEDIT_REPLACE = 1 << 2, /* replace a different existing value */
};

enum jsonedit_state {
	JSONEDIT_ABSENT,
	JSONEDIT_SAME, /* in meaning */
	JSONEDIT_DIFFERENT,
};

/*
 * Compares the value at the place with `value`, which is JSON text of our own. A document of only
 * blanks and comments has no value at any place. ERR_INVALID and ERR_LIMIT as in jsonscan_check(),
 * and if something on the path is not an object.
 */
ERR_CHECKED int jsonedit_look(const struct jsonscan_text *t, const char *const *keys,
			      const char *value, unsigned flags, enum jsonedit_state *ret,
			      struct err *e);

/*
 * Sets the value, creating the objects on the path. Returns 1 with the new text, NUL-terminated,
 * which the caller frees; 0 if the value is already there. ERR_EXISTS: a different one is.
 */
ERR_CHECKED int jsonedit_set(const struct jsonscan_text *t, const char *const *keys,
			     const char *value, unsigned flags, char **ret_text, size_t *ret_len,
			     struct err *e);

/*
 * Removes the value, and the objects on the path that become empty, even of comments. Returns as
 * jsonedit_set(); 0: there was nothing.
 */
ERR_CHECKED int jsonedit_remove(const struct jsonscan_text *t, const char *const *keys,
				unsigned flags, char **ret_text, size_t *ret_len, struct err *e);

/* Does a checked document contain only "{}" and blanks, or only blanks? */
bool jsonedit_is_empty(const char *bytes, size_t len);
