/* test_hello - whom TLS connections ask for: the server name in a ClientHello. */
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

#define WIRE_MAX_BYTES (80u << 10)

/* Bytes in the making; lengths in front of a part are filled in when it ends. */
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

/* Puts the length of everything since `start` in front of it. */
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

/* A hello's message up to where the extensions start, with a GREASE cipher among the others. */
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

/* Message header around what there is in `message`, cut into records of up to `most` bytes. */
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

/* The message as it is, in records of different lengths, tells the same story. */
static void expect_message(const struct wire *message, const char *expected)
{
	static const size_t most[] = { 16384, 1, 3, 50 };
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	for (size_t i = 0; i < COUNT_OF(most); i++) {
		wrap(message, most[i], w);
		talk_expect(w->bytes, w->len, NULL, expected);
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

/* A hello whose extensions are just this, in hex. */
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
	talk_expect(w->bytes, w->len, NULL, "tls example.com -> pass");
	w->len = 0;
	add_hex(w, openssl_tls13);
	talk_expect(w->bytes, w->len, NULL, "tls www.example.org -> pass");
	add_hex(w, "140303000101"
		   "1703030001ff"); /* early data behind it */
	talk_expect(w->bytes, w->len, NULL, "tls www.example.org -> pass");
}

static void a_hello_is_read_however_it_is_cut_into_records(void **state)
{
	cleanup_free struct wire *message = mem_alloc(sizeof(*message));

	(void)state;
	named_message(message, "a.example", 9);
	expect_message(message, "tls a.example -> pass");
	message->len = 0;
	add_hex(message, openssl_tls13 + 2 * 9); /* without its own headers */
	expect_message(message, "tls www.example.org -> pass");
}

static void a_hello_without_a_name_is_asked_about(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	start_message(w);
	expect_message(w, "tls - -> pass");
	extensions_message(w, "");
	expect_message(w, "tls - -> pass");
	extensions_message(w, "00170000"
			      "0a0a0000");
	expect_message(w, "tls - -> pass");
}

static void an_address_as_name_is_given_as_it_is(void **state)
{
	cleanup_free struct wire *w = mem_alloc(sizeof(*w));

	(void)state;
	named_message(w, "192.0.2.1", 9);
	expect_message(w, "tls 192.0.2.1 -> pass");
	named_message(w, "2001:db8::1", 11);
	expect_message(w, "tls 2001:db8::1 -> pass");
	named_message(w, "A.Example.", 10);
	expect_message(w, "tls A.Example. -> pass");
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
	sniff_allow(&s);
	assert_int_equal(sniff_client(&s, w->bytes, w->len, &result), SNIFF_PASS);
	assert_int_equal(result.release, w->len);
	assert_false(sniff_wants_server(&s));
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
		/* empty; empty list; list too long, too short; name too long; something behind */
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
		/* extensions that end in the middle */
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
	/* with four record headers and the message's own this fills 64 KiB exactly */
	add_number(message, SNIFF_HEAD_MAX_BYTES - 4 * 5 - 4 - (uint32_t)message->len - 4, 2);
	message->len = SNIFF_HEAD_MAX_BYTES - 4 * 5 - 4 - 2;
	add_length_before(message, start, 2);
	wrap(message, 16384, w);
	assert_int_equal(w->len, SNIFF_HEAD_MAX_BYTES);
	talk_expect(w->bytes, w->len, NULL, "tls a.example -> pass");
	wrap(message, 13500, w); /* the same with one more record header */
	assert_int_equal(w->len, SNIFF_HEAD_MAX_BYTES + 5);
	talk_expect(w->bytes, SNIFF_HEAD_MAX_BYTES, NULL,
		    "-> bad, 65536 held: more than 64 KiB without saying whom it is for");
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
