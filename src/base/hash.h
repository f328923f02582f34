#pragma once
/*
 * hash - hashes text for tables (FNV-1a). An attacker who chooses the text can choose collisions,
 * so tables of hostile text are bounded.
 */
#include <stdint.h>

uint32_t hash_text(uint32_t seed, const char *text);
