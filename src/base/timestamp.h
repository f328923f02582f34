#pragma once
/* timestamp - formats and parses times (RFC 3339). */
#include <stdbool.h>
#include <stdint.h>

#define TIMESTAMP_TEXT_MAX_BYTES 32u
#define TIMESTAMP_MAX_MS 253402300799999ull /* the end of the year 9999 */

uint64_t timestamp_now_ms(void); /* since 1970 */

/* "2025-03-01T12:30:00.250Z". Returns `out`. */
const char *timestamp_format(uint64_t ms, char out[TIMESTAMP_TEXT_MAX_BYTES]);

/*
 * Parses "2025-03-01" (midnight UTC), or a date with a time and an offset: "2025-03-01T12:30:00Z",
 * "2025-03-01 12:30:00.25+01:00". False: invalid, or before 1970.
 */
bool timestamp_parse(const char *text, uint64_t *ret_ms);
