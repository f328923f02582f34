#pragma once
/*
 * tomltime - the dates and times of a TOML document; for toml*.c only.
 */
#include "base/tomltree.h"

/* Does a word begin as a date ("1979-") or a time ("07:") does? */
bool tomltime_is_likely(const char *word, size_t len);

/* Is a word a whole date, after which a space and a time may follow? */
bool tomltime_is_date(const char *word, size_t len);

/* Fills the value from a word. NULL, or what is wrong with it. */
const char *tomltime_parse(const char *word, size_t len, struct toml_value *ret);
