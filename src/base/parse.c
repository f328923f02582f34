/*
 * parse - parses numbers that people type; see parse.h.
 *
 * A number is stored in thousandths: enough for "1.5g" and "0.25" cpus, and exact, so that the
 * range checks below are integer arithmetic with overflow checks.
 */
#include "base/parse.h"

#include "base/cleanup.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MILLI 1000u

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit byte_unit[] = {
	{ "", 1 },
	{ "b", 1 },
	{ "k", 1ull << 10 },
	{ "kb", 1ull << 10 },
	{ "kib", 1ull << 10 },
	{ "m", 1ull << 20 },
	{ "mb", 1ull << 20 },
	{ "mib", 1ull << 20 },
	{ "g", 1ull << 30 },
	{ "gb", 1ull << 30 },
	{ "gib", 1ull << 30 },
	{ "t", 1ull << 40 },
	{ "tb", 1ull << 40 },
	{ "tib", 1ull << 40 },
};

static const struct unit duration_unit[] = {
	{ "", 1000 },       { "ms", 1 },          { "s", 1000 },
	{ "m", 60 * 1000 }, { "h", 3600 * 1000 }, { "d", 24 * 3600 * 1000 },
};

static const struct unit *find_unit(const struct unit *units, size_t count, const char *name,
				    size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(units[i].name) == len && strncasecmp(units[i].name, name, len) == 0)
			return &units[i];
	return NULL;
}

/*
 * Parses digits with up to three decimals and moves *text past them. Returns the value in
 * thousandths. `what` is for the error message: "size", "duration", ...
 */
static int read_milli(const char **text, const char *what, const char *whole, uint64_t *ret,
		      struct err *e)
{
	const char *p = *text;
	uint64_t value = 0;
	unsigned scale = MILLI;

	if (*p < '0' || *p > '9')
		return err_set(e, ERR_INVALID, "%s '%s' does not start with a digit", what, whole);
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return err_set(e, ERR_INVALID, "%s '%s' is too large", what, whole);
	if (__builtin_mul_overflow(value, MILLI, &value))
		return err_set(e, ERR_INVALID, "%s '%s' is too large", what, whole);
	if (*p == '.') {
		p++;
		if (*p < '0' || *p > '9')
			return err_set(e, ERR_INVALID, "%s '%s' has no digit after the point", what,
				       whole);
		for (; *p >= '0' && *p <= '9'; p++) {
			scale /= 10;
			if (scale == 0)
				return err_set(e, ERR_INVALID,
					       "%s '%s' has more than three decimals", what, whole);
			value += (uint64_t)(*p - '0') * scale;
		}
	}
	*text = p;
	*ret = value;
	return 0;
}

/* `value` is in thousandths of `factor`; false if the product overflows or is not an integer. */
static bool scale(uint64_t value, uint64_t factor, uint64_t *ret)
{
	__extension__ unsigned __int128 wide = (unsigned __int128)value * factor;

	*ret = (uint64_t)(wide / MILLI);
	return wide % MILLI == 0 && wide / MILLI <= UINT64_MAX;
}

/* The first `len` bytes of `text` are the number and its unit. */
static int parse_with_unit(const char *text, size_t len, const char *what, uint64_t min,
			   uint64_t max, uint64_t *ret, struct err *e)
{
	char low[PARSE_FORMAT_MAX_BYTES], high[PARSE_FORMAT_MAX_BYTES];
	const struct unit *unit;
	const char *end = text;
	uint64_t value = 0;

	if (read_milli(&end, what, text, &value, e) < 0)
		return -1;
	unit = find_unit(byte_unit, COUNT_OF(byte_unit), end, len - (size_t)(end - text));
	if (!unit)
		return err_set(e, ERR_INVALID, "%s '%s' has an unknown unit (use K, M, G or T)",
			       what, text);
	if (!scale(value, unit->factor, &value) || value > max || value < min)
		return err_set(e, ERR_INVALID, "%s '%s' is outside %s to %s", what, text,
			       parse_format_bytes(min, low), parse_format_bytes(max, high));
	*ret = value;
	return 0;
}

int parse_bytes(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	return parse_with_unit(text, strlen(text), "size", min, max, ret, e);
}

int parse_rate(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	size_t len = strlen(text);

	if (len > 2 && strcasecmp(text + len - 2, "/s") == 0)
		len -= 2;
	return parse_with_unit(text, len, "rate", min, max, ret, e);
}

/* Adds one "number unit" pair of a duration to *total. */
static int add_duration_part(const char **text, const char *whole, uint64_t *total, struct err *e)
{
	const struct unit *unit;
	const char *start = *text;
	const char *name;
	uint64_t value = 0;
	uint64_t part;

	if (read_milli(text, "duration", whole, &value, e) < 0)
		return -1;
	name = *text;
	while (**text && (**text < '0' || **text > '9'))
		(*text)++;
	unit = find_unit(duration_unit, COUNT_OF(duration_unit), name, (size_t)(*text - name));
	/* "30" is seconds; in "1h30" the unit is ambiguous */
	if (!unit || (unit == &duration_unit[0] && start != whole))
		return err_set(e, ERR_INVALID,
			       "duration '%s' has an unknown unit (use ms, s, m, h or d)", whole);
	if (!scale(value, unit->factor, &part) || __builtin_add_overflow(*total, part, total))
		return err_set(e, ERR_INVALID,
			       "duration '%s' is too large, or no whole number of milliseconds",
			       whole);
	return 0;
}

int parse_duration_ms(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	char low[PARSE_FORMAT_MAX_BYTES], high[PARSE_FORMAT_MAX_BYTES];
	const char *p = text;
	uint64_t total = 0;

	do {
		if (add_duration_part(&p, text, &total, e) < 0)
			return -1;
	} while (*p);
	if (total < min || total > max)
		return err_set(e, ERR_INVALID, "duration '%s' is outside %s to %s", text,
			       parse_format_duration(min, low), parse_format_duration(max, high));
	*ret = total;
	return 0;
}

int parse_milli(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	const char *p = text;
	uint64_t value = 0;

	if (read_milli(&p, "number", text, &value, e) < 0)
		return -1;
	if (*p)
		return err_set(e, ERR_INVALID, "number '%s' has '%s' after it", text, p);
	if (value < min || value > max)
		return err_set(e, ERR_INVALID, "number '%s' is outside %g to %g", text,
			       (double)min / MILLI, (double)max / MILLI);
	*ret = value;
	return 0;
}

int parse_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *e)
{
	const char *p = text;
	uint64_t value = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return err_set(e, ERR_INVALID, "number '%s' is too large", text);
	if (p == text || *p)
		return err_set(e, ERR_INVALID, "'%s' is not a whole number", text);
	if (value < min || value > max)
		return err_set(e, ERR_INVALID, "number '%s' is outside %" PRIu64 " to %" PRIu64,
			       text, min, max);
	*ret = value;
	return 0;
}

const char *parse_format_bytes(uint64_t bytes, char out[PARSE_FORMAT_MAX_BYTES])
{
	static const char *const name[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t rest = 0;
	unsigned step = 0;

	while (bytes >= 1024 && step + 1 < COUNT_OF(name)) {
		rest = bytes % 1024;
		bytes /= 1024;
		step++;
	}
	if (rest * 10 / 1024)
		(void)snprintf(out, PARSE_FORMAT_MAX_BYTES, "%" PRIu64 ".%" PRIu64 " %s", bytes,
			       rest * 10 / 1024, name[step]);
	else
		(void)snprintf(out, PARSE_FORMAT_MAX_BYTES, "%" PRIu64 " %s", bytes, name[step]);
	return out;
}

const char *parse_format_duration(uint64_t ms, char out[PARSE_FORMAT_MAX_BYTES])
{
	static const struct unit unit[] = {
		{ "d", 24 * 3600 * 1000 },
		{ "h", 3600 * 1000 },
		{ "m", 60 * 1000 },
		{ "s", 1000 },
		{ "ms", 1 },
	};
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < COUNT_OF(unit); i++) {
		uint64_t count = ms / unit[i].factor;
		int len;

		if (count == 0)
			continue;
		len = snprintf(out + used, PARSE_FORMAT_MAX_BYTES - used, "%" PRIu64 "%s", count,
			       unit[i].name);
		if (len < 0 || (size_t)len >= PARSE_FORMAT_MAX_BYTES - used)
			break;
		used += (size_t)len;
		ms %= unit[i].factor;
	}
	if (used == 0)
		(void)snprintf(out, PARSE_FORMAT_MAX_BYTES, "0s");
	return out;
}
