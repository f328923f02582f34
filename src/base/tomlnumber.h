#pragma once
/*
 * tomlnumber - the integers and floats of a TOML document; for toml*.c only.
 */
#include "base/tomltree.h"

/* Fills the value from a word of at most TOML_WORD_MAX_BYTES. NULL, or what is wrong with it. */
const char *tomlnumber_parse(const char *word, size_t len, struct toml_value *ret);
