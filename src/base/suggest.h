#pragma once
/*
 * suggest - "did you mean": the known word nearest to a mistyped one.
 */
#include <stddef.h>

#define SUGGEST_WORD_MAX_BYTES 64 /* longer words are never near */

/* Returns the nearest of `count` words, or NULL if none is near. */
const char *suggest_nearest(const char *typed, const char *const *words, size_t count);
