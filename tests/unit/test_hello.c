/* test_hello - the server name in a ClientHello. */
#include "talk.h"

#include "base/mem.h"

#include <stdlib.h>

/* Recorded from OpenSSL 3.0, for example.com, and for www.example.org. */
static const char openssl_tls12[] =
	"16030100b1010000ad0303e283b517c49cc8826b8fa753e44ba1bfc8b7eb40a49f6e28634b71a9b1"
	"6e01bb00001ec02cc030c02bc02fcca9cca8c024c028c023c027009f009e006b006700ff01000066"
	"00000010000e00000b6578616d706c652e636f6d000b000403000102000a000c000a001d0017001e"
	"00190018002300000016000000170000000d002a0028040305030603080708080809080a080b0804"
	"08050806040105010601030303010302040205020602";
static const char openssl_tls13[] =
	"1603010200010001fc03038754ad92fce014b7eb2e7f971397273ea040c44d48dc67113f9490c1c6"
	"d39bf520a6fbd04ca43de795ed48562c4dcaa4b6de07cfc1b5444ebf1af4770311651f2a00241302"
	"13031301c02cc030c02bc02fcca9cca8c024c028c023c027009f009e006b006700ff0100018f0000"
	"0014001200000f7777772e6578616d706c652e6f7267000b000403000102000a00160014001d0017"
	"001e0019001801000101010201030104002300000016000000170000000d002a0028040305030603"
	"080708080809080a080b080408050806040105010601030303010302040205020602002b00050403"
	"040303002d00020101003300260024001d002004803183233eaac3f6448a05b8694b8999bb08f62c"
	"ddb42db5ba3b3746d3af71001500de00000000000000000000000000000000000000000000000000"
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
	"00000000000000000000000000000000000000000000000000000000000000000000000000000000"
	"00000000000000000000000000000000000000000000000000000000000000000000000000";

/* Recorded from OpenSSL 3.0: the start of a ServerHello, and a complete HelloRetryRequest. */
static const uint8_t server_hello[] = {
	0x16, 0x03, 0x03, 0x00, 0x9b, 0x02, 0x00, 0x00, 0x97, 0x03, 0x03, 0x5d, 0x64, 0x6f, 0x50,
	0xcf, 0x76, 0x08, 0xe3, 0xe9, 0x19, 0xdd, 0x29, 0x94, 0x85, 0x85, 0xdb, 0x79, 0xb4, 0xb0,
	0x03, 0x6c, 0x0f, 0xba, 0x85, 0xbf, 0x11, 0xbd, 0xa7, 0x14, 0x1b, 0x73, 0xa3, 0x20,
};
static const uint8_t retry_request[] = {
	0x16, 0x03, 0x03, 0x00, 0x58, 0x02, 0x00, 0x00, 0x54, 0x03, 0x03, 0xcf, 0x21, 0xad, 0x74,
	0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
	0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c, 0x20, 0xdd,
	0x31, 0x4a, 0x20, 0x04, 0x79, 0xa4, 0xb7, 0x52, 0xbd, 0xb4, 0x5a, 0xc9, 0x27, 0xe1, 0xc0,
	0x1e, 0x8c, 0x76, 0xe3, 0x20, 0x09, 0x98, 0x77, 0x74, 0x3e, 0xf6, 0xe3, 0x4d, 0xa3, 0x2c,
	0x6d, 0x13, 0x02, 0x00, 0x00, 0x0c, 0x00, 0x2b, 0x00, 0x02, 0x03, 0x04, 0x00, 0x33, 0x00,
	0x02, 0x00, 0x17, 0x14, 0x03, 0x03, 0x00, 0x01, 0x01,
};
#define RETRY_RANDOM_END 43u

#define WIRE_MAX_BYTES (256u << 10)

/* Bytes being built; the length before a part is inserted when the part ends. */
struct wire {
	uint8_t bytes[WIRE_MAX_BYTES];
	size_t len;
};

static void add(struct wire *w, const void *bytes, size_t len)
{
	assert_true(len <= sizeof(w->bytes) - w->len);
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

static void add_number(struct wire *w, uint32_t value, unsigned size)
{
	while (size-- > 0)
		add(w, (uint8_t[]){ (uint8_t)(value >> 8 * size) }, 1);
}

/* Inserts the length of everything since `start` before it. */
static void add_length_before(struct wire *w, size_t start, unsigned size)
{
	size_t len = w->len - start;

	add_number(w, 0, size);
	memmove(w->bytes + start + size, w->bytes + start, len);
	w->len = start;
	add_number(w, (uint32_t)len, size);
	w->len += len;
}

static void add_hex(struct wire *w, const char *hex)
{
	for (; hex[0]; hex += 2) {
		char digits[3] = { hex[0], hex[1], '\0' };

		add_number(w, (uint32_t)strtoul(digits, NULL, 16), 1);
	}
}

static void add_extension(struct wire *w, uint32_t type, const char *hex)
{
	size_t start;

	add_number(w, type, 2);
	start = w->len;
	add_hex(w, hex);
	add_length_before(w, start, 2);
}

static void add_server_name(struct wire *w, const void *name, size_t len)
{
	size_t start, list;

	add_number(w, 0, 2);
	start = w->len;
	add_number(w, 0, 1);
	list = w->len;
	add(w, name, len);
	add_length_before(w, list, 2);
	add_length_before(w, start, 2);
	add_length_before(w, start, 2);
}

/* A hello's message up to its extensions, with a GREASE cipher among the others. */
static void start_message(struct wire *w)
{
	w->len = 0;
	add_hex(w, "0303");
	for (uint32_t i = 0; i < 32; i++)
		add_number(w, i, 1);
	add_hex(w, "04deadbeef"
		   "00060a0a1301c02f"
		   "0100");
}

/* Adds the message header to `message`, and cuts it into records of up to `most` bytes. */
static void wrap(const struct wire *message, size_t most, struct wire *ret)
{
	cleanup_free struct wire *whole = mem_alloc(sizeof(*whole));

	add_number(whole, 1, 1);
	add_number(whole, (uint32_t)message->len, 3);
	add(whole, message->bytes, message->len);
	ret->len = 0;
	for (size_t at = 0; at < whole->len; at += most) {
		size_t len = whole->len - at < most ? whole->len - at : most;

		add_hex(ret, "160301");
		add_number(ret, (uint32_t)len, 2);
		add(ret, whole->bytes + at, len);
	}
}

/*
 * Checks the questions for a client's bytes. Until the server answers, bytes after the hello are
 * held; its hello lets everything pass.
 */
static void expect_asks(const struct wire *w, const char *asks)
{
	char expected[512];

	(void)snprintf(expected, sizeof(expected), "%s -> pass", asks);
	talk_expect_bytes(w->bytes, w->len, server_hello, sizeof(server_hello), expected);
	(void)snprintf(expected, sizeof(expected), "%s -> more", asks);
	talk_expect(w->bytes, w->len, NULL, expected);
}

/* The unchanged message, in records of different lengths, gives the same result. */
static void expect_message(const struct wire *message, const char *asks)
{
	static const size_t most[] = { 16384, 1, 3, 50 };
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	for (size_t i = 0; i < COUNT_OF(most); i++) {
		wrap(message, most[i], w);
		expect_asks(w, asks);
	}
}

/* In one record; everything is held. */
static void expect_message_refused(const struct wire *message, const char *problem)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	char expected[256];

	wrap(message, 16384, w);
	(void)snprintf(expected, sizeof(expected), "-> bad, %zu held: %s", w->len, problem);
	talk_expect(w->bytes, w->len, NULL, expected);
}

/* A hello with only these extensions, in hex. */
static void extensions_message(struct wire *w, const char *hex)
{
	size_t start;

	start_message(w);
	start = w->len;
	add_hex(w, hex);
	add_length_before(w, start, 2);
}

static void named_message(struct wire *w, const void *name, size_t len)
{
	size_t start;

	start_message(w);
	start = w->len;
	add_extension(w, 0x1a1a, "");
	add_extension(w, 23, "");
	add_server_name(w, name, len);
	add_extension(w, 43, "0403040303");
	add_extension(w, 0x2a2a, "00");
	add_length_before(w, start, 2);
}

static void the_server_name_of_a_real_hello_is_found(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	add_hex(w, openssl_tls12);
	expect_asks(w, "tls example.com");
	w->len = 0;
	add_hex(w, openssl_tls13);
	expect_asks(w, "tls www.example.org");
}

static void a_hello_is_read_however_it_is_cut_into_records(void **state)
{
	cleanup_free struct wire *message = mem_alloc(sizeof(*message));

	(void)state;
	named_message(message, "a.example", 9);
	expect_message(message, "tls a.example");
	message->len = 0;
	add_hex(message, openssl_tls13 + 2 * 9); /* without its own headers */
	expect_message(message, "tls www.example.org");
}

static void a_hello_without_a_name_is_asked_about(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	start_message(w);
	expect_message(w, "tls -");
	extensions_message(w, "");
	expect_message(w, "tls -");
	extensions_message(w, "00170000"
			      "0a0a0000");
	expect_message(w, "tls -");
}

static void an_address_as_name_is_given_as_it_is(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	named_message(w, "192.0.2.1", 9);
	expect_message(w, "tls 192.0.2.1");
	named_message(w, "2001:db8::1", 11);
	expect_message(w, "tls 2001:db8::1");
	named_message(w, "A.Example.", 10);
	expect_message(w, "tls A.Example.");
}

static void nothing_of_a_hello_is_released_before_the_answer(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	struct sniff_result result;
	struct sniff s;

	(void)state;
	add_hex(w, openssl_tls12);
	sniff_init(&s);
	for (size_t len = 0; len < w->len; len++) {
		assert_int_equal(sniff_client(&s, w->bytes, len, &result), SNIFF_MORE);
		assert_int_equal(result.release, 0);
	}
	assert_int_equal(sniff_client(&s, w->bytes, w->len, &result), SNIFF_ASK);
	assert_int_equal(result.release, 0);
	assert_false(sniff_wants_server(&s));
	sniff_allow(&s);
	assert_int_equal(sniff_client(&s, w->bytes, w->len, &result), SNIFF_MORE);
	assert_int_equal(result.release, w->len);
	assert_true(sniff_wants_server(&s));
}

static void names_that_are_no_names_are_refused(void **state)
{
	static const struct {
		const char *name;
		size_t len;
	} bad[] = {
		{ "", 0 },      { "a b", 3 },          { "a\0b", 3 },      { "a@b", 3 },
		{ "a%b", 3 },   { "a/b", 3 },          { "a\nb", 3 },      { "a\x7f", 2 },
		{ "a:443", 5 }, { "[::1]", 5 },        { "b\xc3\xbc", 3 }, { "a\0", 2 },
		{ "::1\0", 4 }, { "a.example,b", 11 },
	};
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	uint8_t longest[256];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		named_message(w, bad[i].name, bad[i].len);
		expect_message_refused(w, "TLS server name: not a host name");
	}
	memset(longest, 'n', sizeof(longest));
	named_message(w, longest, sizeof(longest));
	expect_message_refused(w, "TLS server name: too long");
}

static void odd_server_names_are_refused(void **state)
{
	static const struct {
		const char *hex;
		const char *problem;
	} bad[] = {
		/* the extension twice; two names in it; another type of name */
		{ "00000006"
		  "0004"
		  "00"
		  "0001"
		  "61"
		  "00000006"
		  "0004"
		  "00"
		  "0001"
		  "62",
		  "TLS hello: two server names" },
		{ "0000000a"
		  "0008"
		  "00"
		  "0001"
		  "61"
		  "00"
		  "0001"
		  "62",
		  "TLS server name: not exactly one name" },
		{ "00000006"
		  "0004"
		  "01"
		  "0001"
		  "61",
		  "TLS server name: not a host name" },
		/* empty; empty list; list too long, too short; name too long; trailing bytes */
		{ "00000000", "TLS server name: its list has another length" },
		{ "00000001"
		  "00",
		  "TLS server name: its list has another length" },
		{ "00000002"
		  "0000",
		  "TLS server name: not exactly one name" },
		{ "00000003"
		  "0001"
		  "00",
		  "TLS server name: not exactly one name" },
		{ "00000006"
		  "0005"
		  "00"
		  "0001"
		  "61",
		  "TLS server name: its list has another length" },
		{ "00000006"
		  "0003"
		  "00"
		  "0001"
		  "61",
		  "TLS server name: its list has another length" },
		{ "00000006"
		  "0004"
		  "00"
		  "0002"
		  "61",
		  "TLS server name: not exactly one name" },
		{ "00000007"
		  "0004"
		  "00"
		  "0001"
		  "61"
		  "00",
		  "TLS server name: its list has another length" },
		{ "00000007"
		  "0005"
		  "00"
		  "0001"
		  "61"
		  "00",
		  "TLS server name: not exactly one name" },
		/* truncated extensions */
		{ "00", "TLS hello: its lengths do not add up" },
		{ "001700", "TLS hello: its lengths do not add up" },
		{ "00170001", "TLS hello: its lengths do not add up" },
		{ "0000000a"
		  "0004"
		  "00"
		  "0001"
		  "61",
		  "TLS hello: its lengths do not add up" },
	};
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		extensions_message(w, bad[i].hex);
		expect_message_refused(w, bad[i].problem);
	}
}

static void lengths_in_a_hello_add_up(void **state)
{
	static const char *const bad[] = {
		"00",     /* half a length */
		"0001",   /* less than it says */
		"000000", /* more */
		"00040017000000",
	};
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	size_t fixed;

	(void)state;
	start_message(w);
	fixed = w->len;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		w->len = fixed;
		add_hex(w, bad[i]);
		expect_message_refused(w, "TLS hello: its lengths do not add up");
	}
}

static void the_fixed_part_of_a_hello_is_possible(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	start_message(w);
	w->bytes[0] = 2;
	expect_message_refused(w, "TLS hello: not a TLS version");
	start_message(w);
	w->bytes[34] = 33;
	expect_message_refused(w, "TLS hello: a session id of an impossible length");
	start_message(w);
	w->bytes[40] = 5;
	expect_message_refused(w, "TLS hello: a list of ciphers of an impossible length");
	w->bytes[40] = 0;
	expect_message_refused(w, "TLS hello: a list of ciphers of an impossible length");
	w->bytes[40] = 200;
	expect_message_refused(w, "TLS hello: no compression method");
	start_message(w);
	w->bytes[47] = 0;
	expect_message_refused(w, "TLS hello: no compression method");
	w->bytes[47] = 9;
	expect_message_refused(w, "TLS hello: its lengths do not add up");
	start_message(w);
	for (w->len = 20; w->len > 0; w->len--)
		expect_message_refused(w, "TLS hello: a list of ciphers of an impossible length");
	expect_message_refused(w, "TLS hello: not a TLS version");
}

static void odd_records_are_refused(void **state)
{
	static const struct {
		const char *hex;
		const char *expected;
	} bad[] = {
		{ "1602010001", "-> bad, 5 held: TLS hello: not a TLS version" },
		{ "1604010001", "-> bad, 5 held: TLS hello: not a TLS version" },
		{ "1603010000", "-> bad, 5 held: TLS hello: a record of an impossible length" },
		{ "1603014001", "-> bad, 5 held: TLS hello: a record of an impossible length" },
		{ "160301000102", "-> bad, 6 held: TLS hello: the first message is another one" },
		{ "160301000101"
		  "1703010001",
		  "-> bad, 11 held: TLS hello: another record in the middle of it" },
		{ "160301000101"
		  "1503010002",
		  "-> bad, 11 held: TLS hello: another record in the middle of it" },
		{ "160301000101"
		  "1602010001",
		  "-> bad, 11 held: TLS hello: not a TLS version" },
		{ "1603010006"
		  "01000001"
		  "0303",
		  "-> bad, 11 held: TLS hello: more in its last record" },
		{ "1603010005"
		  "01000000"
		  "01",
		  "-> bad, 10 held: TLS hello: more in its last record" },
	};
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		w->len = 0;
		add_hex(w, bad[i].hex);
		talk_expect(w->bytes, w->len, NULL, bad[i].expected);
	}
}

static void a_second_message_in_the_hello_s_record_is_refused(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	char expected[256];

	(void)state;
	add_hex(w, openssl_tls12);
	add(w, w->bytes + 5, w->len - 5);
	w->bytes[3] = (uint8_t)((w->len - 5) >> 8);
	w->bytes[4] = (uint8_t)(w->len - 5);
	(void)snprintf(expected, sizeof(expected),
		       "-> bad, %zu held: TLS hello: more in its last record", w->len);
	talk_expect(w->bytes, w->len, NULL, expected);
}

static void a_hello_of_more_than_64_kib_is_refused(void **state)
{
	cleanup_free struct wire *message = mem_alloc(sizeof(*message));
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	size_t start;

	(void)state;
	start_message(message);
	start = message->len;
	add_server_name(message, "a.example", 9);
	add_number(message, 21, 2);
	/* with four record headers and the message's own this is exactly 64 KiB */
	add_number(message, SNIFF_HEAD_MAX_BYTES - 4 * 5 - 4 - (uint32_t)message->len - 4, 2);
	message->len = SNIFF_HEAD_MAX_BYTES - 4 * 5 - 4 - 2;
	add_length_before(message, start, 2);
	wrap(message, 16384, w);
	assert_int_equal(w->len, SNIFF_HEAD_MAX_BYTES);
	expect_asks(w, "tls a.example");
	wrap(message, 13500, w); /* the same with one more record header */
	assert_int_equal(w->len, SNIFF_HEAD_MAX_BYTES + 5);
	talk_expect(w->bytes, SNIFF_HEAD_MAX_BYTES, NULL,
		    "-> bad, 65536 held: more than 64 KiB without saying whom it is for");
}

/* ---- the server's answer, and a second hello ---- */

static void add_hello(struct wire *w, const char *name)
{
	cleanup_free struct wire *message = mem_alloc(sizeof(*message));
	cleanup_free struct wire *wrapped = mem_alloc(sizeof(*wrapped));

	named_message(message, name, strlen(name));
	wrap(message, 16384, wrapped);
	add(w, wrapped->bytes, wrapped->len);
}

static void expect_after_retry(const struct wire *w, const char *expected)
{
	talk_expect_bytes(w->bytes, w->len, retry_request, sizeof(retry_request), expected);
}

static bool can_end(const struct wire *w, const void *server, size_t server_len)
{
	return talk_can_end(w->bytes, w->len, server, server_len);
}

static void nothing_follows_a_hello_before_the_server_has_answered(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	add_hello(w, "a.example");
	add_hex(w, "140303000101"
		   "1703030001ff"); /* early data */
	talk_expect(w->bytes, w->len, NULL, "tls a.example -> more, 12 held");
	talk_expect_bytes(w->bytes, w->len, retry_request, RETRY_RANDOM_END - 1,
			  "tls a.example -> more, 12 held");
	talk_expect_bytes(w->bytes, w->len, server_hello, sizeof(server_hello),
			  "tls a.example -> pass");
}

static void anything_but_a_retry_lets_everything_pass(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	uint8_t answer[sizeof(retry_request)];

	(void)state;
	add_hello(w, "a.example");
	add_hello(w, "b.example");
	talk_expect(w->bytes, w->len, "\x15\x03\x03", "tls a.example -> pass"); /* an alert */
	talk_expect(w->bytes, w->len, "HTTP/1.1 400 Bad Request", "tls a.example -> pass");
	for (size_t i = 0; i < RETRY_RANDOM_END; i++) {
		bool is_length = i == 3 || i == 4 || (i >= 6 && i <= 8);

		memcpy(answer, retry_request, sizeof(answer));
		answer[i] ^= 0x40;
		talk_expect_bytes(w->bytes, w->len, answer, sizeof(answer),
				  is_length ? "tls a.example, tls b.example -> pass"
					    : "tls a.example -> pass");
	}
}

static void the_second_hello_after_a_retry_is_asked_about(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	char expected[128];
	size_t first;

	(void)state;
	add_hello(w, "a.example");
	first = w->len;
	expect_after_retry(w, "tls a.example -> more");
	add_hello(w, "b.example");
	expect_after_retry(w, "tls a.example, tls b.example -> pass");
	for (size_t missing = 1; missing < w->len - first; missing++) {
		struct wire part = *w;

		part.len -= missing;
		(void)snprintf(expected, sizeof(expected), "tls a.example -> more, %zu held",
			       part.len - first);
		expect_after_retry(&part, expected);
	}
}

static void a_second_hello_is_found_however_it_and_the_retry_are_cut(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	add_hello(w, "a.example");
	add_hex(w, "140303000101"
		   "1703030003ffffff"
		   "17030300021603");
	add_hello(w, "b.example");
	for (size_t piece = 1; piece <= w->len; piece++)
		talk_expect_piece((struct talk){ .client = w->bytes,
						 .client_len = w->len,
						 .server = retry_request,
						 .server_len = sizeof(retry_request),
						 .piece = piece },
				  "tls a.example, tls b.example -> pass");
}

static void early_data_of_any_length_goes_by_before_a_second_hello(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	add_hello(w, "a.example");
	add_hex(w, "140303000101");
	for (int i = 0; i < 9; i++) {
		add_hex(w, "1703034000");
		memset(w->bytes + w->len, 0x16, 16384);
		w->len += 16384;
	}
	expect_after_retry(w, "tls a.example -> more");
	add_hello(w, "b.example");
	expect_after_retry(w, "tls a.example, tls b.example -> pass");
}

static void a_second_hello_is_as_strict_as_the_first(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	size_t first;

	(void)state;
	add_hello(w, "a.example");
	first = w->len;
	add_hex(w, "160301000102");
	expect_after_retry(
		w, "tls a.example -> bad, 6 held: TLS hello: the first message is another one");
	w->len = first;
	add_hex(w, "160301000101"
		   "1703030001");
	expect_after_retry(
		w, "tls a.example -> bad, 11 held: TLS hello: another record in the middle of it");
	w->len = first;
	add_hex(w, "1603010005"
		   "01000000"
		   "01");
	expect_after_retry(w, "tls a.example -> bad, 10 held: TLS hello: more in its last record");
}

static void nothing_but_what_names_nobody_goes_by_before_a_second_hello(void **state)
{
	static const char *const good[] = { "140303000101", "1703030001ff", "15030300020100" };
	static const char *const bad[] = { "00", "13", "18", "47", "80" };
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	size_t first;

	(void)state;
	add_hello(w, "a.example");
	first = w->len;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		w->len = first;
		add_hex(w, good[i]);
		expect_after_retry(w, "tls a.example -> more");
		w->len--;
		assert_false(can_end(w, retry_request, sizeof(retry_request)));
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		w->len = first;
		add_hex(w, bad[i]);
		expect_after_retry(w, "tls a.example -> bad, 1 held: "
				      "TLS: not a record where a second hello is due");
	}
}

static void a_second_hello_that_is_denied_is_never_released(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	struct sniff_result result;
	struct sniff s;
	size_t first;

	(void)state;
	add_hello(w, "a.example");
	first = w->len;
	add_hex(w, "140303000101");
	add_hello(w, "b.example");
	sniff_init(&s);
	assert_int_equal(sniff_client(&s, w->bytes, w->len, &result), SNIFF_ASK);
	sniff_allow(&s);
	assert_int_equal(sniff_client(&s, w->bytes, w->len, &result), SNIFF_MORE);
	assert_int_equal(result.release, first);
	sniff_server(&s, retry_request, sizeof(retry_request));
	assert_false(sniff_wants_server(&s));
	assert_int_equal(sniff_client(&s, w->bytes + first, w->len - first, &result), SNIFF_ASK);
	assert_int_equal(result.release, 6);
	assert_string_equal(result.ask.name, "b.example");
	first += 6;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sniff_client(&s, w->bytes + first, w->len - first, &result),
				 SNIFF_ASK);
		assert_int_equal(result.release, 0);
		assert_string_equal(result.ask.name, "b.example");
	}
}

static void there_are_two_hellos_at_most(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	for (int i = 0; i < 3; i++)
		add_hello(w, "a.example");
	expect_after_retry(w, "tls a.example, tls a.example -> pass");
}

/* ---- a client that ends ---- */

static void half_a_hello_may_not_end(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	size_t whole;

	(void)state;
	add_hello(w, "a.example");
	whole = w->len;
	for (w->len = 1; w->len < whole; w->len++)
		assert_false(can_end(w, NULL, 0));
	assert_true(can_end(w, NULL, 0));
}

static void early_data_may_end_before_the_server_has_answered(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	add_hello(w, "a.example");
	add_hex(w, "140303000101"
		   "1703030001ff");
	assert_true(can_end(w, NULL, 0));
	assert_true(can_end(w, server_hello, sizeof(server_hello)));
}

/* Otherwise a client could send both, end, and let the server request the unchecked second one. */
static void a_second_hello_may_not_end_before_the_server_has_answered(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));
	size_t first;

	(void)state;
	add_hello(w, "a.example");
	first = w->len;
	add_hello(w, "b.example");
	assert_false(can_end(w, NULL, 0));
	w->len = first + 1;
	assert_false(can_end(w, NULL, 0));
	w->len = first;
	add_hex(w, "140303000101"
		   "1703030001ff");
	add_hello(w, "b.example");
	assert_false(can_end(w, NULL, 0));
	w->len = first;
	add_hex(w, "140303000101"
		   "170303");
	assert_true(can_end(w, NULL, 0));
}

static void half_of_a_second_hello_may_not_end(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	add_hello(w, "a.example");
	add_hello(w, "b.example");
	assert_true(can_end(w, retry_request, sizeof(retry_request)));
	w->len--;
	assert_false(can_end(w, retry_request, sizeof(retry_request)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_server_name_of_a_real_hello_is_found),
		cmocka_unit_test(a_hello_is_read_however_it_is_cut_into_records),
		cmocka_unit_test(a_hello_without_a_name_is_asked_about),
		cmocka_unit_test(an_address_as_name_is_given_as_it_is),
		cmocka_unit_test(nothing_of_a_hello_is_released_before_the_answer),
		cmocka_unit_test(names_that_are_no_names_are_refused),
		cmocka_unit_test(odd_server_names_are_refused),
		cmocka_unit_test(lengths_in_a_hello_add_up),
		cmocka_unit_test(the_fixed_part_of_a_hello_is_possible),
		cmocka_unit_test(odd_records_are_refused),
		cmocka_unit_test(a_second_message_in_the_hello_s_record_is_refused),
		cmocka_unit_test(a_hello_of_more_than_64_kib_is_refused),
		cmocka_unit_test(nothing_follows_a_hello_before_the_server_has_answered),
		cmocka_unit_test(anything_but_a_retry_lets_everything_pass),
		cmocka_unit_test(the_second_hello_after_a_retry_is_asked_about),
		cmocka_unit_test(a_second_hello_is_found_however_it_and_the_retry_are_cut),
		cmocka_unit_test(early_data_of_any_length_goes_by_before_a_second_hello),
		cmocka_unit_test(a_second_hello_is_as_strict_as_the_first),
		cmocka_unit_test(nothing_but_what_names_nobody_goes_by_before_a_second_hello),
		cmocka_unit_test(a_second_hello_that_is_denied_is_never_released),
		cmocka_unit_test(there_are_two_hellos_at_most),
		cmocka_unit_test(half_a_hello_may_not_end),
		cmocka_unit_test(early_data_may_end_before_the_server_has_answered),
		cmocka_unit_test(a_second_hello_may_not_end_before_the_server_has_answered),
		cmocka_unit_test(half_of_a_second_hello_may_not_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
