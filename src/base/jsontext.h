#pragma once
/*
 * jsontext - decodes a string of a checked JSON document (jsonscan.h).
 *
 * The result may contain NULs, from \\u0000. Half of a surrogate pair becomes U+FFFD.
 */
#include "base/buf.h"

/* `at` is on the opening quote, `end` behind the closing one. */
void jsontext_decode(const char *at, const char *end, struct buf *out);
