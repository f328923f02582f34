/*
 * fuzz_hello - TLS ClientHellos for sniff, cut in different ways.
 *
 * The first byte of an input selects how it is used. Even: the rest are the client's bytes after
 * the byte that makes them TLS. Odd: the rest is a hello's message, which is wrapped into records;
 * then the cuts between records are ours, and must not change the result. The next bit requests a
 * second hello after the first, in which everything must be found again.
 */
#include "fuzz.h"

#include "feed.h"

#define WIRE_MAX_BYTES 80000u
#define MESSAGE_MAX_BYTES 6000u
#define IS_MESSAGE 1u
#define IS_RETRIED 2u

static uint8_t wire[WIRE_MAX_BYTES];

/* This answer requests a second hello; any other one is a ServerHello. */
static const uint8_t retry_request[] = {
	0x16, 0x03, 0x03, 0x00, 0x58, 0x02, 0x00, 0x00, 0x54, 0x03, 0x03, 0xcf, 0x21, 0xad, 0x74,
	0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
	0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c, 0x20,
};

static void check_cuts(const uint8_t *bytes, size_t len, uint32_t seed, struct feed_trace *ret)
{
	struct feed_options o = { .server = retry_request, .server_len = sizeof(retry_request) };
	struct feed_trace cut;

	if (!(seed & IS_RETRIED))
		o.server_len = 12; /* with its own random */
	if (!(seed & IS_RETRIED))
		o.server = "\x16\x03\x03\x00\x58\x02\x00\x00\x54\x03\x03\x00";
	*ret = feed_run(bytes, len, o);
	for (uint32_t i = 1; i <= 3; i++) {
		o.seed = seed * 16 + i;
		cut = feed_run(bytes, len, o);
		feed_check_same(ret, &cut);
	}
}

/* Appends the message to `wire` as records of up to `most` bytes. */
static size_t wrap(size_t used, const uint8_t *message, size_t len, size_t most)
{
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

/* Once, or twice with a ChangeCipherSpec between. Returns the length in `wire`. */
static size_t wrap_all(const uint8_t *message, size_t len, size_t most, uint32_t seed)
{
	static const uint8_t change[] = { 20, 3, 3, 0, 1, 1 };
	size_t used = wrap(0, message, len, most);

	if (!(seed & IS_RETRIED))
		return used;
	memcpy(wire + used, change, sizeof(change));
	return wrap(used + sizeof(change), message, len, most);
}

static void check_records(const uint8_t *body, size_t len, uint32_t seed)
{
	static uint8_t message[MESSAGE_MAX_BYTES + 4];
	struct feed_trace one, many;

	len = len < MESSAGE_MAX_BYTES ? len : MESSAGE_MAX_BYTES;
	memcpy(message, (uint8_t[]){ 1, 0, (uint8_t)(len >> 8), (uint8_t)len }, 4);
	memcpy(message + 4, body, len);
	check_cuts(wire, wrap_all(message, len + 4, 16384, seed), seed, &one);
	FUZZ_CHECK(one.verdict == SNIFF_PASS || one.verdict == SNIFF_BAD);
	check_cuts(wire, wrap_all(message, len + 4, 1 + seed % 97, seed), seed, &many);
	FUZZ_CHECK(one.verdict == many.verdict);
	FUZZ_CHECK(one.problem == many.problem);
	FUZZ_CHECK(one.asks == many.asks);
	FUZZ_CHECK(one.verdict != SNIFF_PASS || one.questions == (seed & IS_RETRIED ? 2 : 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed_trace trace;

	if (size < 2 || size > WIRE_MAX_BYTES)
		return 0;
	if (data[0] & IS_MESSAGE) {
		check_records(data + 1, size - 1, data[0]);
		return 0;
	}
	memcpy(wire, data, size);
	wire[0] = HELLO_FIRST_BYTE;
	check_cuts(wire, size, data[0], &trace);
	return 0;
}
