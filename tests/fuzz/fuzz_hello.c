/*
 * fuzz_hello - TLS ClientHellos into sniff, cut in different ways.
 *
 * The first byte of an input says how it is used: even, the rest are the client's bytes after
 * the byte that makes them TLS; odd, the rest is a hello's message, which is wrapped into
 * records. Then the cuts between records are ours, and must not change what is found.
 */
#include "fuzz.h"

#include "feed.h"

#define WIRE_MAX_BYTES 40000u
#define MESSAGE_MAX_BYTES 6000u

static uint8_t wire[WIRE_MAX_BYTES];

static void check_cuts(const uint8_t *bytes, size_t len, uint32_t seed, struct feed_trace *ret)
{
	struct feed_trace cut;

	*ret = feed_run(bytes, len, (struct feed_options){ .server = "" });
	for (uint32_t i = 1; i <= 3; i++) {
		cut = feed_run(bytes, len,
			       (struct feed_options){ .seed = seed * 16 + i, .server = "" });
		feed_check_same(ret, &cut);
	}
}

/* The message as records of up to `most` bytes. Returns the length in `wire`. */
static size_t wrap(const uint8_t *message, size_t len, size_t most)
{
	size_t used = 0;

	while (len > 0) {
		size_t piece = len < most ? len : most;

		memcpy(wire + used, (uint8_t[]){ 22, 3, 1, (uint8_t)(piece >> 8), (uint8_t)piece },
		       5);
		memcpy(wire + used + 5, message, piece);
		used += 5 + piece;
		message += piece;
		len -= piece;
	}
	return used;
}

static void check_records(const uint8_t *body, size_t len, uint32_t seed)
{
	static uint8_t message[MESSAGE_MAX_BYTES + 4];
	struct feed_trace one, many;

	len = len < MESSAGE_MAX_BYTES ? len : MESSAGE_MAX_BYTES;
	memcpy(message, (uint8_t[]){ 1, 0, (uint8_t)(len >> 8), (uint8_t)len }, 4);
	memcpy(message + 4, body, len);
	check_cuts(wire, wrap(message, len + 4, 16384), seed, &one);
	FEED_CHECK(one.verdict != SNIFF_MORE);
	check_cuts(wire, wrap(message, len + 4, 1 + seed % 97), seed, &many);
	one.released = many.released = 0; /* differs by the record headers */
	feed_check_same(&one, &many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed_trace trace;

	if (size < 2 || size > WIRE_MAX_BYTES)
		return 0;
	if (data[0] & 1) {
		check_records(data + 1, size - 1, data[0]);
		return 0;
	}
	memcpy(wire, data, size);
	wire[0] = HELLO_FIRST_BYTE;
	check_cuts(wire, size, data[0], &trace);
	return 0;
}
