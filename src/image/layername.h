#pragma once
/*
 * layername - parses the names of archive entries, and refuses some.
 *
 * "./a//b/", "/a/b" and "a/b" are one name: some image builders write absolute names, and every
 * reader takes them as relative to the root of the layer. Refused are: empty names, "..",
 * components and names that are too long or too deep, and names that would create a real file
 * called ".wh.something", which the next reader of the layer would take for a whiteout. No system
 * calls.
 */
#include "image/layer.h"

#include <stddef.h>

#define LAYERNAME_WHITEOUT_MARK ".wh."
#define LAYERNAME_OPAQUE_MARK ".wh..wh..opq"

enum layername_kind {
	LAYERNAME_ROOT,
	LAYERNAME_ENTRY,
	LAYERNAME_WHITEOUT, /* `path` and `last` name what it hides */
	LAYERNAME_OPAQUE,   /* the parent hides lower layers */
	LAYERNAME_IGNORED,  /* aufs's private files, and all beneath */
};

struct layername {
	enum layername_kind kind;
	char path[LAYER_NAME_MAX_BYTES]; /* components separated by one '/'; "" for the root */
	size_t parent_len;               /* of `path`; 0: the root is the parent */
	const char *last;                /* last component, in `path` */
};

/* Error messages do not repeat the name. */
ERR_CHECKED int layername_parse(const char *text, struct layername *ret, struct err *e);

/* For an archive that is not a layer: only LAYERNAME_ROOT and _ENTRY, whatever the name, and
 * absolute names are refused. */
ERR_CHECKED int layername_parse_any(const char *text, struct layername *ret, struct err *e);

#define LAYERNAME_QUOTED_MAX_BYTES 200

/* For messages: control characters become '?', long names are cut. Returns `out`. */
const char *layername_quote(const char *text, char out[LAYERNAME_QUOTED_MAX_BYTES]);
