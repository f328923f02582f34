#pragma once
/*
 * hash - spreads text over a table (FNV-1a). Whoever chooses the text can choose collisions, so
 * tables of hostile text are bounded.
 */
#include <stdint.h>

uint32_t hash_text(uint32_t seed, const char *text);
