/*
 * tomlnumber - parses the integers and floats of a TOML document; see tomlnumber.h.
 *
 * The grammar is checked here, character by character, while a copy without underscores is made;
 * only that copy is passed to strtod(), whose grammar is wider. Our programs never call
 * setlocale(), so its decimal point is '.'.
 */
#include "base/tomlnumber.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOT_A_VALUE "not a value (text needs quotes)"
#define BAD_NUMBER "not a number"
#define NO_DIGIT "a digit is missing"

/* The rest of the word, and a copy of what was read, without underscores. */
struct reader {
	const char *at;
	const char *end;
	char plain[TOML_WORD_MAX_BYTES + 1];
	size_t plain_len;
};

static char peek(const struct reader *r)
{
	return r->at < r->end ? *r->at : '\0';
}

static void take(struct reader *r)
{
	r->plain[r->plain_len++] = *r->at++;
}

/* 16 or more: not a digit in any base. */
static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 16;
}

/* One or more digits with single underscores between them. */
static bool take_digits(struct reader *r, unsigned base)
{
	for (;;) {
		if (digit_of(peek(r)) >= base)
			return false;
		while (digit_of(peek(r)) < base)
			take(r);
		if (peek(r) != '_')
			return true;
		r->at++;
	}
}

static void take_sign(struct reader *r)
{
	if (peek(r) == '+' || peek(r) == '-')
		take(r);
}

/* ---- integers ---- */

/* Accumulates negative numbers, because their range is larger by one. */
static const char *sum_up(const char *digits, unsigned base, bool is_negative, int64_t *ret)
{
	int64_t sum = 0;

	for (; *digits; digits++)
		if (__builtin_mul_overflow(sum, (int64_t)base, &sum) ||
		    __builtin_sub_overflow(sum, (int64_t)digit_of(*digits), &sum))
			return "the integer does not fit into 64 bits";
	if (!is_negative && __builtin_sub_overflow((int64_t)0, sum, &sum))
		return "the integer does not fit into 64 bits";
	*ret = sum;
	return NULL;
}

/* Parses after 0x, 0o or 0b. */
static const char *parse_based(struct reader *r, unsigned base, struct toml_value *ret)
{
	r->at += 2;
	if (!take_digits(r, base))
		return NO_DIGIT;
	if (r->at < r->end)
		return BAD_NUMBER;
	ret->type = TOML_INTEGER;
	return sum_up(r->plain, base, false, &ret->integer);
}

static const char *parse_decimal(const struct reader *r, struct toml_value *ret)
{
	bool has_sign = r->plain[0] == '+' || r->plain[0] == '-';

	ret->type = TOML_INTEGER;
	return sum_up(r->plain + has_sign, 10, r->plain[0] == '-', &ret->integer);
}

/* ---- floats ---- */

/* Parses from '.' or the exponent on. */
static const char *parse_float(struct reader *r, struct toml_value *ret)
{
	if (peek(r) == '.') {
		take(r);
		if (!take_digits(r, 10))
			return NO_DIGIT;
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		take(r);
		take_sign(r);
		if (!take_digits(r, 10))
			return NO_DIGIT;
	}
	if (r->at < r->end)
		return BAD_NUMBER;
	ret->type = TOML_FLOAT;
	ret->real = strtod(r->plain, NULL);
	if (isinf(ret->real))
		return "the float is too large";
	return NULL;
}

static bool is_word(const struct reader *r, const char *word)
{
	return (size_t)(r->end - r->at) == strlen(word) && memcmp(r->at, word, strlen(word)) == 0;
}

/* Parses inf and nan, after the sign. */
static bool parse_special(const struct reader *r, struct toml_value *ret)
{
	double value = is_word(r, "inf") ? (double)INFINITY : (double)NAN;

	if (!is_word(r, "inf") && !is_word(r, "nan"))
		return false;
	ret->type = TOML_FLOAT;
	ret->real = r->plain[0] == '-' ? -value : value;
	return true;
}

const char *tomlnumber_parse(const char *word, size_t len, struct toml_value *ret)
{
	struct reader r = { .at = word, .end = word + len };
	const char *first;

	assert(len <= TOML_WORD_MAX_BYTES);
	if (len > 2 && word[0] == '0' && strchr("xob", word[1]))
		return parse_based(&r, word[1] == 'x' ? 16 : word[1] == 'o' ? 8 : 2, ret);
	take_sign(&r);
	if (parse_special(&r, ret))
		return NULL;
	first = r.at;
	if (digit_of(peek(&r)) >= 10 && peek(&r) != '_')
		return NOT_A_VALUE;
	if (!take_digits(&r, 10))
		return NO_DIGIT;
	if (*first == '0' && r.at > first + 1)
		return "a number cannot begin with a zero";
	if (r.at == r.end)
		return parse_decimal(&r, ret);
	return parse_float(&r, ret);
}
