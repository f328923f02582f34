#pragma once
/*
 * layername - what the name of an archive's entry means, and which names are refused.
 *
 * "./a//b/", "/a/b" and "a/b" are one name: some builders of images write absolute names, and
 * every reader takes them from the root of the layer. Refused are: empty names, "..", parts and
 * names that are too long or too deep, and any way to a real file called ".wh.something", which
 * would be a whiteout to whoever reads the layer next. Pure code.
 */
#include "image/layer.h"

#include <stddef.h>

#define LAYERNAME_WHITEOUT_MARK ".wh."
#define LAYERNAME_OPAQUE_MARK ".wh..wh..opq"

enum layername_kind {
	LAYERNAME_ROOT,
	LAYERNAME_ENTRY,
	LAYERNAME_WHITEOUT, /* `path` and `last` are of what it hides */
	LAYERNAME_OPAQUE,   /* the parent hides what lies below it */
	LAYERNAME_IGNORED,  /* what aufs keeps for itself, and all beneath it */
};

struct layername {
	enum layername_kind kind;
	char path[LAYER_NAME_MAX_BYTES]; /* parts with one '/' between them; "" for the root */
	size_t parent_len;               /* of `path`; 0: the root is the parent */
	const char *last;                /* in `path` */
};

/* The words do not repeat the name. */
ERR_CHECKED int layername_parse(const char *text, struct layername *ret, struct err *e);

/* Of an archive that is no layer: only LAYERNAME_ROOT and _ENTRY, whatever it is called, and
 * absolute names are refused. */
ERR_CHECKED int layername_parse_any(const char *text, struct layername *ret, struct err *e);

#define LAYERNAME_QUOTED_MAX_BYTES 200

/* For messages: control characters as '?', the end cut. Returns `out`. */
const char *layername_quote(const char *text, char out[LAYERNAME_QUOTED_MAX_BYTES]);
