#pragma once
/* tomltime - parses the dates and times of a TOML document; for toml*.c only. */
#include "base/tomltree.h"

/* Does a word start like a date ("1979-") or a time ("07:")? */
bool tomltime_is_likely(const char *word, size_t len);

/* Is a word a complete date, which a space and a time may follow? */
bool tomltime_is_date(const char *word, size_t len);

/* Sets *ret from a word. Returns NULL or the error. */
const char *tomltime_parse(const char *word, size_t len, struct toml_value *ret);
