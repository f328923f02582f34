#pragma once
/*
 * tomltext - the strings and keys of a TOML document; for toml*.c only.
 */
#include "base/buf.h"
#include "base/tomlscan.h"

/* A string in one of its four forms, at an opening quote. `out` gets the text, NULs and all. */
ERR_CHECKED int tomltext_take_string(struct tomlscan *s, struct buf *out, struct err *e);

/* One part of a key: bare, or in quotes on one line. */
ERR_CHECKED int tomltext_take_key(struct tomlscan *s, struct buf *out, struct err *e);
