/* hash - hashes text for tables; see hash.h. */
#include "base/hash.h"

uint32_t hash_text(uint32_t seed, const char *text)
{
	uint32_t h = 2166136261u ^ seed;

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h;
}
