#pragma once
/*
 * parse - parses numbers that people type: sizes, durations, rates, counts.
 *
 * Every function takes the minimum and maximum of its result, so a caller cannot forget the range.
 * Sizes are binary (K, KB and KiB all mean 1024), as in similar tools. Nothing is rounded silently
 * and no text after the number is ignored.
 */
#include "base/err.h"

#include <stdint.h>

/* "512", "64k", "2GiB", "1.5g" -> bytes */
ERR_CHECKED int parse_bytes(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
			    struct err *e);

/* "10MB/s", "512k" -> bytes per second */
ERR_CHECKED int parse_rate(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
			   struct err *e);

/* "30", "1.5s", "250ms", "2h", "1h30m" -> milliseconds; a bare number is seconds */
ERR_CHECKED int parse_duration_ms(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
				  struct err *e);

/* "12" -> 12 */
ERR_CHECKED int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
			    struct err *e);

/* "1.5" -> 1500 */
ERR_CHECKED int parse_milli(const char *text, uint64_t min, uint64_t max, uint64_t *ret,
			    struct err *e);

#define PARSE_FORMAT_MAX_BYTES 32

/* Formats for people, shortened: "2 GiB", "1.5 GiB", "250ms", "1m30s". Returns `out`. */
const char *parse_format_bytes(uint64_t bytes, char out[PARSE_FORMAT_MAX_BYTES]);
const char *parse_format_duration(uint64_t ms, char out[PARSE_FORMAT_MAX_BYTES]);
