/* timestamp - formats and parses times; see timestamp.h. */
#include "base/timestamp.h"

#include <stdio.h>
#include <time.h>

#define MINUTE_MS 60000

uint64_t timestamp_now_ms(void)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec < 0 ? 0 : (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const char *timestamp_format(uint64_t ms, char out[TIMESTAMP_TEXT_MAX_BYTES])
{
	time_t seconds = (time_t)((ms > TIMESTAMP_MAX_MS ? TIMESTAMP_MAX_MS : ms) / 1000);
	struct tm tm = { 0 };

	(void)gmtime_r(&seconds, &tm);
	(void)snprintf(out, TIMESTAMP_TEXT_MAX_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ",
		       tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
		       tm.tm_sec, (unsigned)(ms > TIMESTAMP_MAX_MS ? 999 : ms % 1000));
	return out;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parses exactly `digits` digits; the number must be in the range. */
static bool take_number(const char **text, unsigned digits, int min, int max, int *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < digits; i++, (*text)++) {
		if (!is_digit(**text))
			return false;
		*ret = *ret * 10 + (**text - '0');
	}
	return *ret >= min && *ret <= max;
}

static bool take(const char **text, char c)
{
	return *(*text)++ == c;
}

/* Parses any number of digits; those below a millisecond are ignored. */
static bool take_fraction(const char **text, int *ret_ms)
{
	int unit = 100;

	*ret_ms = 0;
	if (**text != '.')
		return true;
	(*text)++;
	if (!is_digit(**text))
		return false;
	for (; is_digit(**text); (*text)++, unit /= 10)
		*ret_ms += (**text - '0') * unit;
	return true;
}

static bool take_offset(const char **text, int *ret_minutes)
{
	int sign = **text == '-' ? -1 : 1, hours, minutes;

	*ret_minutes = 0;
	if (**text == 'Z' || **text == 'z') {
		(*text)++;
		return true;
	}
	if (**text != '+' && **text != '-')
		return false;
	(*text)++;
	if (!take_number(text, 2, 0, 23, &hours) || !take(text, ':') ||
	    !take_number(text, 2, 0, 59, &minutes))
		return false;
	*ret_minutes = sign * (hours * 60 + minutes);
	return true;
}

static bool take_date(const char **text, struct tm *tm)
{
	if (!take_number(text, 4, 1970, 9999, &tm->tm_year) || !take(text, '-') ||
	    !take_number(text, 2, 1, 12, &tm->tm_mon) || !take(text, '-') ||
	    !take_number(text, 2, 1, 31, &tm->tm_mday))
		return false;
	tm->tm_year -= 1900;
	tm->tm_mon--;
	return true;
}

bool timestamp_parse(const char *text, uint64_t *ret_ms)
{
	struct tm tm = { 0 };
	int ms = 0, offset_minutes = 0, day;
	int64_t moment_ms;
	bool is_date;

	if (!take_date(&text, &tm))
		return false;
	is_date = *text == '\0';
	if (!is_date) {
		if (*text != 'T' && *text != 't' && *text != ' ')
			return false;
		text++;
		if (!take_number(&text, 2, 0, 23, &tm.tm_hour) || !take(&text, ':') ||
		    !take_number(&text, 2, 0, 59, &tm.tm_min) || !take(&text, ':') ||
		    !take_number(&text, 2, 0, 60, &tm.tm_sec) || !take_fraction(&text, &ms) ||
		    !take_offset(&text, &offset_minutes) || *text != '\0')
			return false;
	}
	if (tm.tm_sec == 60) /* a leap second, which the clock does not count */
		tm.tm_sec = 59;
	day = tm.tm_mday;
	moment_ms = (int64_t)timegm(&tm) * 1000 + ms - (int64_t)offset_minutes * MINUTE_MS;
	if (tm.tm_mday != day || moment_ms < 0 || moment_ms > (int64_t)TIMESTAMP_MAX_MS)
		return false; /* the 31st of February, or out of range */
	*ret_ms = (uint64_t)moment_ms;
	return true;
}
