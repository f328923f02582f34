#pragma once
/* tomlnumber - parses the integers and floats of a TOML document; for toml*.c only. */
#include "base/tomltree.h"

/* Sets *ret from a word of at most TOML_WORD_MAX_BYTES. Returns NULL or the error. */
const char *tomlnumber_parse(const char *word, size_t len, struct toml_value *ret);
