/* tomltime - parses the dates and times of a TOML document; see tomltime.h. */
#include "base/tomltime.h"

#include "base/mem.h"


#define NANOSECOND_DIGITS 9

#define BAD_DATE "not a date as 1979-05-27"
#define BAD_TIME "not a time as 07:32:00"
#define BAD_OFFSET "not an offset as Z or +07:00"

struct reader {
	const char *at;
	const char *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char peek(const struct reader *r)
{
	return r->at < r->end ? *r->at : '\0';
}

static bool take(struct reader *r, char c)
{
	if (peek(r) != c)
		return false;
	r->at++;
	return true;
}

/* Parses exactly `digits` digits; the number must be in the range. */
static bool take_number(struct reader *r, unsigned digits, int min, int max, int *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < digits; i++) {
		if (!is_digit(peek(r)))
			return false;
		*ret = *ret * 10 + (*r->at++ - '0');
	}
	return *ret >= min && *ret <= max;
}

static int days_in_month(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && is_leap ? 29 : days[month - 1];
}

static bool take_date(struct reader *r, struct toml_time *t)
{
	return take_number(r, 4, 0, 9999, &t->year) && take(r, '-') &&
	       take_number(r, 2, 1, 12, &t->month) && take(r, '-') &&
	       take_number(r, 2, 1, days_in_month(t->year, t->month), &t->day);
}

/* Parses after '.'. The text keeps all digits, the number the first nine. */
static bool take_fraction(struct reader *r, struct toml_time *t)
{
	unsigned count = 0;

	for (; is_digit(peek(r)); r->at++, count++)
		if (count < NANOSECOND_DIGITS)
			t->nanosecond = t->nanosecond * 10 + (*r->at - '0');
	for (unsigned i = count; i < NANOSECOND_DIGITS; i++)
		t->nanosecond *= 10;
	return count > 0;
}

static bool take_time(struct reader *r, struct toml_time *t)
{
	return take_number(r, 2, 0, 23, &t->hour) && take(r, ':') &&
	       take_number(r, 2, 0, 59, &t->minute) && take(r, ':') &&
	       take_number(r, 2, 0, 60, &t->second) && (!take(r, '.') || take_fraction(r, t));
}

static bool take_offset(struct reader *r, struct toml_time *t)
{
	bool is_west = peek(r) == '-';
	int hours = 0, minutes = 0;

	if (take(r, 'Z') || take(r, 'z'))
		return true;
	if (!take(r, '+') && !take(r, '-'))
		return false;
	if (!take_number(r, 2, 0, 23, &hours) || !take(r, ':') ||
	    !take_number(r, 2, 0, 59, &minutes))
		return false;
	t->offset_minutes = (hours * 60 + minutes) * (is_west ? -1 : 1);
	return true;
}

static const char *parse(struct reader *r, enum toml_type *ret_type, struct toml_time *t)
{
	if (r->end - r->at > 2 && r->at[2] == ':') {
		*ret_type = TOML_LOCAL_TIME;
		return take_time(r, t) && r->at == r->end ? NULL : BAD_TIME;
	}
	*ret_type = TOML_LOCAL_DATE;
	if (!take_date(r, t))
		return BAD_DATE;
	if (r->at == r->end)
		return NULL;
	*ret_type = TOML_LOCAL_DATE_TIME;
	if (!take(r, 'T') && !take(r, 't') && !take(r, ' '))
		return BAD_DATE;
	if (!take_time(r, t))
		return BAD_TIME;
	if (r->at == r->end)
		return NULL;
	*ret_type = TOML_OFFSET_DATE_TIME;
	return take_offset(r, t) && r->at == r->end ? NULL : BAD_OFFSET;
}

static bool begins_with_digits(const char *word, size_t len, size_t digits, char then)
{
	if (len <= digits || word[digits] != then)
		return false;
	for (size_t i = 0; i < digits; i++)
		if (!is_digit(word[i]))
			return false;
	return true;
}

bool tomltime_is_likely(const char *word, size_t len)
{
	return begins_with_digits(word, len, 4, '-') || begins_with_digits(word, len, 2, ':');
}

bool tomltime_is_date(const char *word, size_t len)
{
	struct reader r = { word, word + len };
	struct toml_time t = { 0 };

	return take_date(&r, &t) && r.at == r.end;
}

const char *tomltime_parse(const char *word, size_t len, struct toml_value *ret)
{
	struct reader r = { word, word + len };
	struct toml_time t = { 0 };
	enum toml_type type;
	const char *problem = parse(&r, &type, &t);

	if (problem)
		return problem;
	t.text = mem_dup_bytes(word, len);
	ret->type = type;
	ret->time = t;
	return NULL;
}
