#pragma once
/* tomltext - parses the strings and keys of a TOML document; for toml*.c only. */
#include "base/buf.h"
#include "base/tomlscan.h"

/* Parses a string in one of its four forms, at an opening quote. `out` may contain NULs. */
ERR_CHECKED int tomltext_take_string(struct tomlscan *s, struct buf *out, struct err *e);

/* Parses one part of a key: bare, or quoted on one line. */
ERR_CHECKED int tomltext_take_key(struct tomlscan *s, struct buf *out, struct err *e);
