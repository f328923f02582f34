/*
 * httpbody - finds the end of a request body; see httpbody.h.
 *
 * A state machine parses a chunked body byte by byte, but skips the data of a chunk in one piece.
 * Chunk extensions and trailers are refused: they are rarely used, and servers disagree about where
 * they end, which allows hiding a second request in a body.
 */
#include "net/httpbody.h"

#define SIZE_DIGITS_MAX 15 /* so that a size cannot overflow */

enum state {
	STATE_DONE,
	STATE_DATA,     /* `left` bytes, not chunked */
	STATE_SIZE,     /* the digits of a chunk's size */
	STATE_SIZE_LF,  /* the end of that line */
	STATE_CHUNK,    /* `left` bytes of a chunk */
	STATE_CHUNK_CR, /* the line end after them */
	STATE_CHUNK_LF,
	STATE_LAST_CR, /* the empty line after the last chunk */
	STATE_LAST_LF,
};

void httpbody_init_length(struct httpbody *b, uint64_t bytes)
{
	*b = (struct httpbody){ .left = bytes, .state = bytes > 0 ? STATE_DATA : STATE_DONE };
}

void httpbody_init_chunked(struct httpbody *b)
{
	*b = (struct httpbody){ .state = STATE_SIZE };
}

bool httpbody_is_done(const struct httpbody *b)
{
	return b->state == STATE_DONE;
}

static int hex_value(uint8_t byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	if (byte >= 'A' && byte <= 'F')
		return byte - 'A' + 10;
	return -1;
}

static const char *read_size(struct httpbody *b, uint8_t byte)
{
	int value = hex_value(byte);

	if (value < 0 && byte == '\r' && b->digits > 0) {
		b->state = STATE_SIZE_LF;
		return NULL;
	}
	if (value < 0 || b->digits == SIZE_DIGITS_MAX)
		return "HTTP: not the size of a chunk";
	b->left = b->left << 4 | (uint64_t)value;
	b->digits++;
	return NULL;
}

static const char *read_expected(struct httpbody *b, uint8_t byte, char expected, enum state next)
{
	if (byte != (uint8_t)expected)
		return "HTTP: something else where a chunk's line ends";
	b->state = (uint8_t)next;
	return NULL;
}

static const char *read_byte(struct httpbody *b, uint8_t byte)
{
	switch (b->state) {
	case STATE_SIZE:
		return read_size(b, byte);
	case STATE_SIZE_LF:
		return read_expected(b, byte, '\n', b->left > 0 ? STATE_CHUNK : STATE_LAST_CR);
	case STATE_CHUNK_CR:
		return read_expected(b, byte, '\r', STATE_CHUNK_LF);
	case STATE_CHUNK_LF:
		b->digits = 0;
		return read_expected(b, byte, '\n', STATE_SIZE);
	case STATE_LAST_CR:
		if (byte != '\r')
			return "HTTP: fields after a chunked body";
		b->state = STATE_LAST_LF;
		return NULL;
	default:
		return read_expected(b, byte, '\n', STATE_DONE);
	}
}

static size_t read_data(struct httpbody *b, size_t len)
{
	size_t used = b->left < len ? (size_t)b->left : len;

	b->left -= used;
	if (b->left == 0)
		b->state = b->state == STATE_DATA ? STATE_DONE : STATE_CHUNK_CR;
	return used;
}

const char *httpbody_read(struct httpbody *b, const uint8_t *bytes, size_t len, size_t *ret_used)
{
	const char *problem = NULL;
	size_t used = 0;

	while (used < len && b->state != STATE_DONE) {
		if (b->state == STATE_DATA || b->state == STATE_CHUNK) {
			used += read_data(b, len - used);
			continue;
		}
		problem = read_byte(b, bytes[used]);
		if (problem)
			break;
		used++;
	}
	*ret_used = used;
	return problem;
}
