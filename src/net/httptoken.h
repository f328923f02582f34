#pragma once
/* httptoken - character classes of HTTP, shared by its parsers. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is it allowed in a method or a field name? */
static inline bool httptoken_is_char(uint8_t b)
{
	if ((b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9'))
		return true;
	switch (b) {
	case '!':
	case '#':
	case '$':
	case '%':
	case '&':
	case '\'':
	case '*':
	case '+':
	case '-':
	case '.':
	case '^':
	case '_':
	case '`':
	case '|':
	case '~':
		return true;
	default:
		return false;
	}
}

static inline bool httptoken_is_control(uint8_t b)
{
	return b < 0x20 || b == 0x7f;
}

static inline bool httptoken_is_digit(uint8_t b)
{
	return b >= '0' && b <= '9';
}
