/* test_sniff - targets of plain connections: HTTP, and other protocols. For TLS see test_hello. */
#include "talk.h"

#include "base/mem.h"

#include <stdlib.h>

#define HOST "Host: a.example\r\n"
#define GET "GET / HTTP/1.1\r\n"
#define END "\r\n"
#define NEXT "GET /2 HTTP/1.1\r\nHost: b.example\r\n\r\n"
#define UNKNOWN "HTTP: unknown method"
#define CHUNKED "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END

/* Cases that are all refused with the same problem, and nothing released. */
static void expect_refused(const char *const *client, size_t count, const char *problem)
{
	for (size_t i = 0; i < count; i++) {
		char expected[256];
		size_t len = strlen(client[i]);

		(void)snprintf(expected, sizeof(expected), "-> bad, %zu held: %s", len, problem);
		talk_expect(client[i], len, NULL, expected);
	}
}

static void a_connection_is_small(void **state)
{
	(void)state;
	assert_true(sizeof(struct sniff) <= 128);
}

/* ---- other protocols than HTTP ---- */

static void other_protocols_pass_after_their_first_line(void **state)
{
	static const struct talk_case cases[] = {
		{ "EHLO me.example\r\n", "-> pass" },
		{ "NICK me\r\nUSER a b c :d\r\n", "-> pass" },
		{ "get /a/key\r\n", "-> pass" },
		{ "*1\r\n$4\r\nPING\r\n", "-> pass" },
		{ "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "-> pass" },
		{ "CONNECT {\"verbose\":false}\r\n", "-> pass" },
		{ "REGISTER sip:a.example SIP/2.0\r\n", "-> pass" },
		{ "DESCRIBE rtsp://a.example/ RTSP/1.0\r\n", "-> pass" },
		{ "RFB 003.008\n", "-> pass" },
		{ "/finger\r\n", "-> pass" },
		{ "\r\n\r\nhello\r\n", "-> pass" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
	talk_expect("\0", 1, NULL, "-> pass");
	talk_expect("0033git-upload-pack /p.git\0host=h\0", 35, NULL, "-> pass");
	talk_expect("\x20\0\0\1\x85", 5, NULL, "-> pass"); /* MySQL requesting TLS */
	talk_expect("AMQP\0\0\x09\x01", 8, NULL, "-> pass");
}

/* Servers skip or remove such bytes first: we would check the wrong ones. */
static void what_servers_skip_before_the_real_thing_is_refused(void **state)
{
	static const char v2[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
	static const char proxy[] = "-> bad, 28 held: HTTP: not a request line, but nearly one";

	(void)state;
	talk_expect("PROXY TCP4 1.2.3.4 5.6.7 \r\n\n", 28, NULL, proxy);
	talk_expect(v2, 5, NULL, "-> bad, 5 held: HTTP: not a request line, but nearly one");
	talk_expect("\x15\x03\x01\0\x02\x01\x5a", 2, NULL,
		    "-> bad, 2 held: TLS: something else before the hello");
	talk_expect("\x14\x03", 2, NULL, "-> bad, 2 held: TLS: something else before the hello");
	talk_expect("\x80\x2e\x01\x03", 4, NULL,
		    "-> bad, 4 held: TLS: something else before the hello");
	talk_expect("GET /\0", 6, NULL, "-> bad, 6 held: HTTP: not a request line, but nearly one");
	talk_expect("GET key\r\n", 9, NULL,
		    "-> bad, 9 held: HTTP: not a request line, but nearly one");
	talk_expect("\x15\x04", 2, NULL, "-> more");
	talk_expect("\x80\x2e\x01", 3, NULL, "-> more, 3 held");
}

/* Their servers wait for these bytes, without the end of a line. */
static void other_protocols_flow_from_their_first_byte(void **state)
{
	static const struct talk_case cases[] = {
		{ "x", "-> more" },
		{ "hello", "-> more" },
		{ "PING", "-> more" },
		{ "{", "-> more" },
		{ "{\"a\": 1}", "-> more" },
		{ "<stream:stream to='a.example' xmlns:stream='http://b'>", "-> more" },
		{ "\x01\x02", "-> more" },
		{ "\x80\x2e\x02", "-> more" },
		{ "\r\n\x05", "-> more" },
		{ "A \x05", "-> more" },
		{ "USER a b c", "-> more" },
		{ "HTTP/1.1 200 OK", "-> more" }, /* a server that connects back */
		{ "xhttp/1.1", "-> more" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void only_what_may_become_the_word_http_is_held_of_a_line_that_flows(void **state)
{
	static const struct talk_case cases[] = {
		{ "FOO / H", "-> more, 1 held" },    { "FOO / hTt", "-> more, 3 held" },
		{ "FOO / HTTP", "-> more, 4 held" }, { "FOO / HTTHTTP", "-> more, 4 held" },
		{ "FOO / HTTQ", "-> more" },         { "FOO / HTTP:", "-> more" },
		{ "\r\nFOO h", "-> more, 1 held" },  { "FOO / HTTP\n", "-> pass" },
		{ "FOO / HTTP\r\n", "-> pass" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
	talk_expect("FOO / HTTP\0/1.1", 15, NULL, "-> pass");
}

static void a_request_with_an_unknown_method_is_refused_before_its_last_word(void **state)
{
	static const char *const starts[] = {
		"FOO / ",     "{ / ",         "get / ",    "options * ", "FOO\t/\t",
		"\tFOO\t/\t", "FOO\r/\v",     "G\xc3T / ", "FOO\x01/ ",  "\r\n\r\nFOO / ",
		"FOO ",       "FOO /a/http ", "GETS / ",   "FOO / x",
	};
	static const char *const ends[] = {
		"HTTP/1.1\r\n" HOST END,
		"http/1.0\n",
		"hTtP/",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(starts); i++) {
		for (size_t k = 0; k < COUNT_OF(ends); k++) {
			char client[128];

			(void)snprintf(client, sizeof(client), "%s%s", starts[i], ends[k]);
			talk_expect_cut_off(client, strlen(client), strlen(starts[i]), UNKNOWN);
		}
	}
}

/* Everything that Python's str.split() splits at, which its http.server uses. */
static void whatever_a_server_takes_for_a_blank_is_one(void **state)
{
	static const char blanks[] = "\t\v\f\r\x1c\x1d\x1e\x1f \x85\xa0";

	(void)state;
	for (const char *b = blanks; *b; b++) {
		char client[32];

		(void)snprintf(client, sizeof(client), "FOO%c/%cHTTP/1.1\r\n", *b, *b);
		talk_expect_cut_off(client, strlen(client), 6, UNKNOWN);
		if (*b == ' ')
			continue;
		(void)snprintf(client, sizeof(client), "GET%c/%cHTTP/1.1\r\n", *b, *b);
		expect_refused((const char *const[]){ client }, 1,
			       "HTTP: not a request line, but nearly one");
	}
}

static void a_line_of_a_megabyte_flows_and_is_still_watched(void **state)
{
	const size_t len = 1u << 20;
	cleanup_free char *client = mem_alloc(len + 16);

	(void)state;
	memset(client, 'x', len);
	talk_expect(client, len, NULL, "-> more");
	client[3] = ' ';
	talk_expect(client, len, NULL, "-> more");
	memcpy(client + len, "HTTP/1.1\r\n", 10);
	talk_expect_cut_off(client, len + 10, len, UNKNOWN);
}

static void nothing_is_released_while_it_may_still_be_http(void **state)
{
	static const struct talk_case cases[] = {
		{ "\r\n", "-> more, 2 held" },
		{ " ", "-> more, 1 held" },
		{ "GET", "-> more, 3 held" },
		{ "GET ", "-> more, 4 held" },
		{ "GET /a HTTP/1.1\r", "-> more, 16 held" },
		{ GET HOST, "-> more, 33 held" },
		{ GET HOST "\r", "-> more, 34 held" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void what_is_nearly_a_request_line_is_refused(void **state)
{
	static const char *const clients[] = {
		"GET / http/1.1\r\n",      "GET / HTTP/1.1 \r\n",   "GET / HTTP/1.1\t\r\n",
		"GET /  HTTP/1.1\r\n",     "GET  / HTTP/1.1\r\n",   "GET\t/ HTTP/1.1\r\n",
		"GET /\tHTTP/1.1\r\n",     " GET / HTTP/1.1\r\n",   "\tGET / HTTP/1.1\r\n",
		"GET /\vHTTP/1.1\r\n",     "GET\r/\rHTTP/1.1\r\n",  "GET / HTTP/1.1\r\r\n",
		"GET / HTTP/1.1\n",        "GET / HTTP/1.10\r\n",   "GET / HTTP/11\r\n",
		"GET /\x01 HTTP/1.1\r\n",  "GET /a b HTTP/1.1\r\n", "GET http://a.example/\r\n",
		"OPTIONS rtsp://a/ x\r\n", "GET /0.9\r\n",          "GET /\r\n",
		"\rGET / HTTP/1.1\r\n",    "GET / HTTP/2.0 x\r\n",  "GET / HtTp/1.1\r\n",
		"PRI * HTTP/2.0 \r\n",     "GET /\xa0HTTP/1.1\r\n",
	};

	(void)state;
	expect_refused(clients, COUNT_OF(clients), "HTTP: not a request line, but nearly one");
}

static void other_versions_of_http_are_refused(void **state)
{
	static const char *const clients[] = {
		"GET / HTTP/0.9\r\n" HOST END,
		"GET / HTTP/1.2\r\n" HOST END,
		"GET / HTTP/2.0\r\n" HOST END,
		"GET / HTTP/3.0\r\n" HOST END,
	};

	(void)state;
	expect_refused(clients, COUNT_OF(clients), "HTTP: not version 1.0 or 1.1");
}

static void a_method_of_any_length_is_no_way_around(void **state)
{
	static const size_t lengths[] = { 1, 63, 64, 65, 70000 };
	cleanup_free char *client = mem_alloc(70000 + 64);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		memset(client, 'Z', lengths[i]);
		(void)snprintf(client + lengths[i], 64, " / HTTP/1.1\r\n" HOST END);
		talk_expect_cut_off(client, strlen(client), lengths[i] + 3, UNKNOWN);
	}
}

static void every_known_method_is_a_request(void **state)
{
	static const char *const methods[] = {
		"GET",         "HEAD",       "POST",  "PUT",      "DELETE",    "OPTIONS",
		"TRACE",       "PATCH",      "QUERY", "PROPFIND", "PROPPATCH", "MKCOL",
		"COPY",        "MOVE",       "LOCK",  "UNLOCK",   "SEARCH",    "REPORT",
		"MKCALENDAR",  "MKACTIVITY", "MERGE", "CHECKOUT", "ACL",       "BIND",
		"UNBIND",      "REBIND",     "LINK",  "UNLINK",   "NOTIFY",    "SUBSCRIBE",
		"UNSUBSCRIBE", "M-SEARCH",   "PURGE",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(methods); i++) {
		char client[128];

		(void)snprintf(client, sizeof(client), "%s / HTTP/1.1\r\n" HOST END, methods[i]);
		talk_expect(client, strlen(client), NULL, "http a.example -> more");
	}
}

static void the_preface_of_http2_is_asked_about_without_a_name(void **state)
{
	static const struct talk_case cases[] = {
		{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxyz", "http2 - -> pass" },
		{ "PRI * HTTP/2.0\r\n", "http2 - -> pass" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

/* ---- heads ---- */

static void the_host_of_a_request_is_asked_about(void **state)
{
	static const struct talk_case cases[] = {
		{ GET HOST END, "http a.example -> more" },
		{ GET "hOsT:\t A.Example. \t\r\n" END, "http A.Example. -> more" },
		{ GET "Host:a_b-c.example:8080\r\n" END, "http a_b-c.example -> more" },
		{ GET "Host: 192.0.2.1:1\r\n" END, "http 192.0.2.1 -> more" },
		{ GET "Host: [2001:db8::1]:65535\r\n" END, "http 2001:db8::1 -> more" },
		{ "\r\n" GET HOST END, "http a.example -> more" },
		{ "GET / HTTP/1.0\r\n" END, "http - -> more" },
		{ "GET / HTTP/1.0\r\n" HOST END, "http a.example -> more" },
		{ "OPTIONS * HTTP/1.1\r\n" HOST END, "http a.example -> more" },
		{ "PROPFIND /\xc3\xa4?x=http://b/ HTTP/1.1\r\n" HOST END,
		  "http a.example -> more" },
		{ GET HOST "X: a\tb\xff\r\nY:\r\n" END, "http a.example -> more" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void a_denied_request_is_never_released(void **state)
{
	const uint8_t *bytes = (const uint8_t *)GET HOST END;
	struct sniff_result result;
	struct sniff s;

	(void)state;
	sniff_init(&s);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(sniff_client(&s, bytes, 35, &result), SNIFF_ASK);
		assert_int_equal(result.release, 0);
		assert_string_equal(result.ask.name, "a.example");
	}
}

static void a_refused_connection_stays_refused(void **state)
{
	struct sniff_result result;
	struct sniff s;

	(void)state;
	sniff_init(&s);
	assert_int_equal(sniff_client(&s, (const uint8_t *)"GET /\n", 6, &result), SNIFF_BAD);
	assert_int_equal(sniff_client(&s, (const uint8_t *)GET HOST END, 35, &result), SNIFF_BAD);
	assert_int_equal(result.release, 0);
}

static void a_host_that_could_be_read_in_two_ways_is_refused(void **state)
{
	static const char *const hosts[] = {
		"",
		" ",
		":80",
		"a@b",
		"a%2eb",
		"a/b",
		"a\\b",
		"a?b",
		"a#b",
		"a,b",
		"a b",
		"a\tb",
		"\"a\"",
		"a:",
		"a:0",
		"a:65536",
		"a:080000",
		"a:8x",
		"a:+80",
		"a:80:80",
		"::1",
		"[::1",
		"[]",
		"[::1]x",
		"[::1]:",
		"[a.example]",
		"[fe80::1%25eth0]",
		"b\xc3\xbc.example",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(hosts); i++) {
		char client[256];

		(void)snprintf(client, sizeof(client), GET "Host: %s\r\n" END, hosts[i]);
		expect_refused((const char *const[]){ client }, 1, "HTTP: Host is not a host");
	}
}

static void the_longest_name_is_255_bytes(void **state)
{
	char name[258], client[512], expected[512];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	(void)snprintf(client, sizeof(client), GET "Host: %s\r\n" END, name);
	(void)snprintf(expected, sizeof(expected), "http %s -> more", name);
	talk_expect(client, strlen(client), NULL, expected);
	name[255] = 'n';
	name[256] = '\0';
	(void)snprintf(client, sizeof(client), GET "Host: %s\r\n" END, name);
	expect_refused((const char *const[]){ client }, 1, "HTTP: Host is not a host");
}

static void one_host_exactly(void **state)
{
	static const char *const two[] = { GET HOST HOST END, GET HOST "X: y\r\nhost: b\r\n" END };
	static const char *const none[] = { GET END, GET "X-Host: a\r\n" END,
					    "OPTIONS * HTTP/1.1\r\n" END };

	(void)state;
	expect_refused(two, COUNT_OF(two), "HTTP: two Host fields");
	expect_refused(none, COUNT_OF(none), "HTTP: no Host");
}

static void lines_end_in_cr_lf_and_nothing_else(void **state)
{
	static const struct talk_case cases[] = {
		{ GET "Host: a\n", "-> bad, 24 held: HTTP: an LF alone" },
		{ GET HOST "\n", "-> bad, 34 held: HTTP: an LF alone" },
		{ GET "Host: a\rX", "-> bad, 25 held: HTTP: a CR alone" },
		{ GET HOST "\r\r", "-> bad, 35 held: HTTP: a CR alone" },
		{ "\n" GET, "-> bad, 17 held: HTTP: an LF alone" },
		{ "\r\n\r\n" GET, "-> bad, 20 held: HTTP: empty lines before a request" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void jsonfields_are_strict(void **state)
{
	static const char *const bad[] = {
		GET HOST "X : y\r\n" END,   GET "Host : a\r\n" END,    GET HOST ": y\r\n" END,
		GET HOST "X\r\n" END,       GET HOST "X(y: z\r\n" END, GET HOST "X\x01: z\r\n" END,
		GET HOST "X\tY: z\r\n" END,
	};
	static const char *const folded[] = { GET HOST " b.example\r\n" END,
					      GET HOST "X: y\r\n\tz\r\n" END, GET " " HOST END };
	static const char *const control[] = { GET HOST "X: a\x01\r\n" END,
					       GET HOST "X: a\x7f\r\n" END,
					       GET "Host: a\x0b\r\n" END };
	static const char zero[] = GET "X: a\0b\r\n" HOST END;

	(void)state;
	expect_refused(bad, COUNT_OF(bad), "HTTP: not a field");
	expect_refused(folded, COUNT_OF(folded), "HTTP: a field that goes on in the next line");
	expect_refused(control, COUNT_OF(control), "HTTP: a control byte in a field");
	talk_expect(zero, sizeof(zero) - 1, NULL,
		    "-> bad, 43 held: HTTP: a control byte in a field");
}

static void a_head_of_more_than_64_kib_is_refused(void **state)
{
	cleanup_free char *client = mem_alloc(SNIFF_HEAD_MAX_BYTES + 1);
	int start = snprintf(client, 100, GET HOST "X: ");

	(void)state;
	memset(client + start, 'x', SNIFF_HEAD_MAX_BYTES + 1 - (size_t)start);
	memcpy(client + SNIFF_HEAD_MAX_BYTES - 4, "\r\n\r\n", 4);
	talk_expect(client, SNIFF_HEAD_MAX_BYTES, NULL, "http a.example -> more");
	client[SNIFF_HEAD_MAX_BYTES - 4] = 'x';
	memcpy(client + SNIFF_HEAD_MAX_BYTES - 3, "\r\n\r\n", 4);
	talk_expect(client, SNIFF_HEAD_MAX_BYTES, NULL,
		    "-> bad, 65536 held: more than 64 KiB without saying whom it is for");
	memset(client, 'x', SNIFF_HEAD_MAX_BYTES);
	memcpy(client, "GET ", 4); /* a request line without an end */
	talk_expect(client, SNIFF_HEAD_MAX_BYTES - 1, NULL, "-> more, 65535 held");
	talk_expect(client, SNIFF_HEAD_MAX_BYTES, NULL,
		    "-> bad, 65536 held: more than 64 KiB without saying whom it is for");
}

/* ---- targets ---- */

static void a_whole_url_is_asked_about_with_its_port(void **state)
{
	static const struct talk_case cases[] = {
		{ "GET http://a.example/x HTTP/1.1\r\n" HOST END, "proxy a.example:80 -> more" },
		{ "GET HTTP://A.example HTTP/1.1\r\n" HOST END, "proxy A.example:80 -> more" },
		{ "GET https://a.example?q HTTP/1.1\r\n" HOST END, "proxy a.example:443 -> more" },
		{ "GET http://a.example:80/ HTTP/1.1\r\n" HOST END, "proxy a.example:80 -> more" },
		{ "GET http://a.example:81/ HTTP/1.1\r\nHost: A.EXAMPLE:81\r\n" END,
		  "proxy a.example:81 -> more" },
		{ "GET http://[::1]/ HTTP/1.1\r\nHost: [::1]\r\n" END, "proxy ::1:80 -> more" },
		{ "GET http://a.example/ HTTP/1.0\r\n" END, "proxy a.example:80 -> more" },
	};
	static const char *const differ[] = {
		"GET http://b.example/ HTTP/1.1\r\n" HOST END,
		"GET http://a.example:81/ HTTP/1.1\r\n" HOST END,
		"GET https://a.example/ HTTP/1.1\r\nHost: a.example:80\r\n" END,
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example:81\r\n" END,
	};
	static const char *const bad[] = {
		"GET http://u@a.example/ HTTP/1.1\r\n" HOST END,
		"GET http:///x HTTP/1.1\r\n" HOST END,
		"GET http://a.example#/ HTTP/1.1\r\n" HOST END,
		"GET http://a.example\\/ HTTP/1.1\r\n" HOST END,
		"GET http://a.example:/ HTTP/1.1\r\n" HOST END,
		"GET http://a.example:0/ HTTP/1.1\r\n" HOST END,
		"GET http://a%2eexample/ HTTP/1.1\r\n" HOST END,
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
	expect_refused(differ, COUNT_OF(differ), "HTTP: Host is not the target's host");
	expect_refused(bad, COUNT_OF(bad), "HTTP: the target's host is not a host");
}

static void other_targets_are_refused(void **state)
{
	static const char *const bad[] = {
		"GET * HTTP/1.1\r\n" HOST END,
		"HEAD * HTTP/1.1\r\n" HOST END,
		"GET ftp://a.example/ HTTP/1.1\r\n" HOST END,
		"GET a.example:80 HTTP/1.1\r\n" HOST END,
		"GET http:/a HTTP/1.1\r\n" HOST END,
		"GET ?x HTTP/1.1\r\n" HOST END,
	};

	(void)state;
	expect_refused(bad, COUNT_OF(bad), "HTTP: not a target");
}

/* ---- bodies, and what follows them ---- */

static void pipelined_requests_are_asked_about_one_by_one(void **state)
{
	static const char apt[] = "GET /pool/a.deb HTTP/1.1\r\nHost: deb.example\r\n"
				  "User-Agent: Debian APT-HTTP/1.3 (2.6.1)\r\n\r\n"
				  "GET /pool/b.deb HTTP/1.1\r\nHost: deb.example\r\n"
				  "User-Agent: Debian APT-HTTP/1.3 (2.6.1)\r\n\r\n"
				  "GET /x HTTP/1.1\r\nHost: other.example\r\n\r\n";

	(void)state;
	talk_expect(apt, sizeof(apt) - 1, NULL,
		    "http deb.example, http deb.example, http other.example -> more");
}

static void a_pipelined_request_waits_for_its_own_answer(void **state)
{
	static const uint8_t bytes[] = GET HOST END NEXT;
	const size_t first = strlen(GET HOST END);
	struct sniff_result result;
	struct sniff s;

	(void)state;
	sniff_init(&s);
	assert_int_equal(sniff_client(&s, bytes, sizeof(bytes) - 1, &result), SNIFF_ASK);
	assert_int_equal(result.release, 0);
	sniff_allow(&s);
	assert_int_equal(sniff_client(&s, bytes, sizeof(bytes) - 1, &result), SNIFF_ASK);
	assert_int_equal(result.release, first);
	assert_string_equal(result.ask.name, "b.example");
	assert_int_equal(sniff_client(&s, bytes + first, sizeof(bytes) - 1 - first, &result),
			 SNIFF_ASK);
	assert_int_equal(result.release, 0);
}

static void bodies_end_where_content_length_says(void **state)
{
	static const struct talk_case cases[] = {
		{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Type: x/y\r\n" END
		  "hello",
		  "http a.example -> more" },
		{ "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n" END
		  "hello" NEXT,
		  "http a.example, http b.example -> more" },
		{ "PUT / HTTP/1.1\r\n" HOST "Content-Length: 35\r\n" END NEXT,
		  "http a.example -> bad, 1 held: HTTP: an LF alone" },
		{ "PUT / HTTP/1.1\r\n" HOST "Content-Length: 36\r\n" END NEXT NEXT,
		  "http a.example, http b.example -> more" },
		{ GET HOST "Content-Length: 0\r\n" END NEXT,
		  "http a.example, http b.example -> more" },
		{ GET HOST "Content-Length: 9223372036854775807\r\n" END "x",
		  "http a.example -> more" },
	};

	(void)state;
	assert_int_equal(strlen(NEXT), 36);
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void a_body_is_released_as_it_comes(void **state)
{
	static const uint8_t bytes[] =
		"POST / HTTP/1.1\r\n" HOST "Content-Length: 9\r\n" END "hello";
	struct sniff_result result;
	struct sniff s;

	(void)state;
	sniff_init(&s);
	assert_int_equal(sniff_client(&s, bytes, sizeof(bytes) - 1, &result), SNIFF_ASK);
	sniff_allow(&s);
	assert_int_equal(sniff_client(&s, bytes, sizeof(bytes) - 1, &result), SNIFF_MORE);
	assert_int_equal(result.release, sizeof(bytes) - 1);
}

static void odd_lengths_are_refused(void **state)
{
	static const char *const values[] = { "",
					      "x",
					      "-1",
					      "+1",
					      "1,1",
					      "1, 1",
					      "0x10",
					      "1 1",
					      "1.0",
					      "\"1\"",
					      "9223372036854775808",
					      "18446744073709551616" };
	static const char *const twice[] = {
		GET HOST "Content-Length: 1\r\nContent-Length: 1\r\n" END,
		GET HOST "Content-Length: 0\r\ncontent-length: 5\r\n" END,
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(values); i++) {
		char client[256];

		(void)snprintf(client, sizeof(client), GET HOST "Content-Length: %s\r\n" END,
			       values[i]);
		expect_refused((const char *const[]){ client }, 1,
			       "HTTP: Content-Length is not a number");
	}
	expect_refused(twice, COUNT_OF(twice), "HTTP: two Content-Length fields");
}

static void odd_encodings_are_refused(void **state)
{
	static const char *const odd[] = {
		GET HOST "Transfer-Encoding: gzip\r\n" END,
		GET HOST "Transfer-Encoding: gzip, chunked\r\n" END,
		GET HOST "Transfer-Encoding: chunked, chunked\r\n" END,
		GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" END,
		GET HOST "Transfer-Encoding: xchunked\r\n" END,
		GET HOST "Transfer-Encoding: identity\r\n" END,
		GET HOST "Transfer-Encoding:\r\n" END,
		GET HOST "Transfer-Encoding: \"chunked\"\r\n" END,
		GET HOST "Transfer-Encoding: chunked;x\r\n" END,
	};
	static const char *const mixed[] = {
		GET HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END,
		GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n" END,
		"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n" END,
	};
	static const char *const disguised[] = {
		GET HOST "Transfer_Encoding: chunked\r\n" END,
		GET HOST "Content_Length: 5\r\n" END,
	};
	static const char *const expect[] = {
		GET HOST "Expect: 100-continue, x\r\n" END,
		GET HOST "Expect: y\r\n" END,
	};

	(void)state;
	expect_refused(odd, COUNT_OF(odd), "HTTP: Transfer-Encoding is not just 'chunked'");
	expect_refused(mixed, COUNT_OF(mixed),
		       "HTTP: Transfer-Encoding in HTTP/1.0, or with Content-Length");
	expect_refused(disguised, COUNT_OF(disguised), "HTTP: a field that looks like another");
	expect_refused(expect, COUNT_OF(expect), "HTTP: Expect is not just '100-continue'");
}

static void chunked_bodies_end_at_their_last_chunk(void **state)
{
	static const struct talk_case cases[] = {
		{ CHUNKED "5\r\nhello\r\n0\r\n\r\n", "http a.example -> more" },
		{ CHUNKED "5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n" NEXT,
		  "http a.example, http b.example -> more" },
		{ CHUNKED "0\r\n\r\n" NEXT, "http a.example, http b.example -> more" },
		{ CHUNKED "000000000000000\r\n\r\n" NEXT,
		  "http a.example, http b.example -> more" },
		{ CHUNKED "24\r\n" NEXT "\r\n0\r\n\r\n", "http a.example -> more" },
		{ CHUNKED "fffffffffffffff\r\nx", "http a.example -> more" },
		{ "POST / HTTP/1.1\r\n" HOST "transfer-encoding: CHUNKED\r\n" END "0\r\n\r\n" NEXT,
		  "http a.example, http b.example -> more" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void odd_chunks_are_refused(void **state)
{
	static const struct talk_case cases[] = {
		{ CHUNKED "5;x=y\r\n",
		  "http a.example -> bad, 6 held: HTTP: not the size of a chunk" },
		{ CHUNKED "\r\n", "http a.example -> bad, 2 held: HTTP: not the size of a chunk" },
		{ CHUNKED "-1\r\n",
		  "http a.example -> bad, 4 held: HTTP: not the size of a chunk" },
		{ CHUNKED "0x5", "http a.example -> bad, 2 held: HTTP: not the size of a chunk" },
		{ CHUNKED "5 \r\n",
		  "http a.example -> bad, 3 held: HTTP: not the size of a chunk" },
		{ CHUNKED "5\n", "http a.example -> bad, 1 held: HTTP: not the size of a chunk" },
		{ CHUNKED "0000000000000000\r\n",
		  "http a.example -> bad, 3 held: HTTP: not the size of a chunk" },
		{ CHUNKED "5\rx",
		  "http a.example -> bad, 1 held: HTTP: something else where a chunk's line ends" },
		{ CHUNKED "1\r\nxy",
		  "http a.example -> bad, 1 held: HTTP: something else where a chunk's line ends" },
		{ CHUNKED "1\r\nx\n",
		  "http a.example -> bad, 1 held: HTTP: something else where a chunk's line ends" },
		{ CHUNKED "0\r\nX: y\r\n\r\n",
		  "http a.example -> bad, 8 held: HTTP: fields after a chunked body" },
		{ CHUNKED "0\r\n\n",
		  "http a.example -> bad, 1 held: HTTP: fields after a chunked body" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

static void after_a_request_only_requests_may_follow(void **state)
{
	static const struct talk_case cases[] = {
		{ GET HOST END "\r\n" NEXT, "http a.example, http b.example -> more" },
		{ GET HOST END "\r\n\r\n" NEXT,
		  "http a.example -> bad, 40 held: HTTP: empty lines before a request" },
		{ GET HOST END "EHLO x\r\n\r\n",
		  "http a.example -> bad, 10 held: HTTP: not a request line" },
		{ GET HOST END "QUIT\r\n\r\n",
		  "http a.example -> bad, 8 held: HTTP: a request without a target" },
		{ GET HOST END "\x16\x03\x01\r\n\r\n",
		  "http a.example -> bad, 7 held: HTTP: not a method" },
		{ GET HOST END "\x80\n", "http a.example -> bad, 2 held: HTTP: an LF alone" },
		{ GET HOST END "GET /\x01 HTTP/1.1\r\n\r\n",
		  "http a.example -> bad, 19 held: HTTP: a control byte in the target" },
		{ GET HOST END "PRI * HTTP/2.0\r\n\r\n",
		  "http a.example -> bad, 18 held: HTTP: not version 1.0 or 1.1" },
		{ GET HOST END "GET / HTTP/1.1\r\n\r\n",
		  "http a.example -> bad, 18 held: HTTP: no Host" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), NULL);
}

/* ---- decisions that depend on the server ---- */

#define WEBSOCKET                                                                                  \
	"GET /chat HTTP/1.1\r\n" HOST "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"  \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
#define SWITCHING "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"

static void a_websocket_passes_once_the_server_agrees(void **state)
{
	static const struct talk_case agreed[] = {
		{ WEBSOCKET "\x81\x05hello", "http a.example -> pass" },
		{ WEBSOCKET, "http a.example -> pass" },
	};
	static const struct talk_case silent[] = {
		{ WEBSOCKET "\x81\x05hello", "http a.example -> more, 7 held" },
	};
	static const struct talk_case refused[] = {
		{ WEBSOCKET NEXT, "http a.example, http b.example -> more" },
		{ WEBSOCKET "\x81\r\n\r\n", "http a.example -> bad, 5 held: HTTP: not a method" },
	};

	(void)state;
	talk_expect_all(agreed, COUNT_OF(agreed), SWITCHING);
	talk_expect_all(silent, COUNT_OF(silent), NULL);
	talk_expect_all(silent, COUNT_OF(silent), "HTTP/1.1 10");
	talk_expect_all(refused, COUNT_OF(refused), "HTTP/1.1 200 OK\r\n\r\n");
	talk_expect_all(refused, COUNT_OF(refused), "HTTP/1.0 101 Odd\r\n\r\n");
	talk_expect_all(refused, COUNT_OF(refused), "HTTP/2 101");
	talk_expect_all(refused, COUNT_OF(refused), "hello");
}

static void an_upgrade_counts_only_in_the_first_request_and_without_a_body(void **state)
{
	static const struct talk_case cases[] = {
		{ NEXT WEBSOCKET NEXT, "http b.example, http a.example, http b.example -> more" },
		{ "POST / HTTP/1.1\r\n" HOST "Upgrade: x\r\nConnection: upgrade\r\n"
		  "Content-Length: 1\r\n" END "x" NEXT,
		  "http a.example, http b.example -> more" },
		{ GET HOST "Upgrade: x\r\n" END NEXT, "http a.example, http b.example -> more" },
		{ GET HOST "Connection: upgrade\r\n" END NEXT,
		  "http a.example, http b.example -> more" },
		{ GET HOST "Upgrade: x\r\nConnection: upgraded\r\n" END NEXT,
		  "http a.example, http b.example -> more" },
		{ "GET / HTTP/1.0\r\n" HOST "Upgrade: x\r\nConnection: upgrade\r\n" END NEXT,
		  "http a.example, http b.example -> more" },
	};

	(void)state;
	talk_expect_all(cases, COUNT_OF(cases), SWITCHING);
}

static void an_upgrade_to_what_names_hosts_again_is_refused(void **state)
{
	static const char *const clients[] = {
		GET HOST "Upgrade: h2c\r\nConnection: Upgrade\r\n" END,
		GET HOST "Upgrade: websocket, H2C\r\n" END,
		GET HOST "Upgrade: TLS/1.0\r\n" END,
		GET HOST "Upgrade: HTTP/2.0\r\n" END,
		GET HOST "HTTP2-Settings: AAMAAABk\r\n" END,
	};

	(void)state;
	expect_refused(clients, COUNT_OF(clients), "HTTP: an upgrade to HTTP/2 or TLS");
}

#define CONNECT "CONNECT c.example:443 HTTP/1.1\r\nHost: c.example:443\r\n\r\n"

static void inside_a_tunnel_everything_starts_over(void **state)
{
	static const struct talk_case made[] = {
		{ CONNECT, "connect c.example:443 -> more" },
		{ CONNECT GET HOST END, "connect c.example:443, http a.example -> more" },
		{ CONNECT "EHLO x\r\n", "connect c.example:443 -> pass" },
		{ CONNECT "\x16\x03\x01", "connect c.example:443 -> more, 3 held" },
		{ CONNECT "\x16\x02\x01\x01\x01",
		  "connect c.example:443 -> bad, 5 held: TLS hello: not a TLS version" },
		{ CONNECT CONNECT "\x01", "connect c.example:443, connect c.example:443 -> more" },
		{ CONNECT "FOO / HTT", "connect c.example:443 -> more, 3 held" },
		{ "CONNECT c.example:22 HTTP/1.0\r\n\r\nSSH-2.0-x\r\n",
		  "connect c.example:22 -> pass" },
		{ "CONNECT [::1]:22 HTTP/1.1\r\nHost: [::1]\r\n\r\n", "connect ::1:22 -> more" },
		{ "CONNECT c.example:22 HTTP/1.1\r\n\r\n", "connect c.example:22 -> more" },
	};
	static const struct talk_case silent[] = {
		{ CONNECT GET HOST END, "connect c.example:443 -> more, 35 held" },
	};
	static const struct talk_case refused[] = {
		{ CONNECT NEXT, "connect c.example:443, http b.example -> more" },
		{ CONNECT "EHLO x\r\n\r\n",
		  "connect c.example:443 -> bad, 10 held: HTTP: not a request line" },
		{ CONNECT CONNECT,
		  "connect c.example:443 -> bad, 55 held: HTTP: CONNECT after another request" },
	};

	(void)state;
	talk_expect_all(made, COUNT_OF(made), "HTTP/1.1 200 Connection established\r\n\r\n");
	talk_expect_all(made, COUNT_OF(made), "HTTP/1.0 299 x\r\n\r\n");
	talk_expect_all(silent, COUNT_OF(silent), NULL);
	talk_expect_all(refused, COUNT_OF(refused), "HTTP/1.1 407 Proxy Authentication\r\n\r\n");
	talk_expect_all(refused, COUNT_OF(refused), "HTTP/1.1 100 Continue\r\n\r\n");
	talk_expect_all(refused, COUNT_OF(refused), "HTTP/2.0 200");
}

static void odd_connects_are_refused(void **state)
{
	static const char *const target[] = {
		"CONNECT c.example HTTP/1.1\r\n" HOST END,
		"CONNECT c.example:0 HTTP/1.1\r\n" HOST END,
		"CONNECT c.example:65536 HTTP/1.1\r\n" HOST END,
		"CONNECT u@c.example:443 HTTP/1.1\r\n" HOST END,
		"CONNECT http://c.example:443 HTTP/1.1\r\n" HOST END,
		"CONNECT /x HTTP/1.1\r\n" HOST END,
	};
	static const char *const host[] = {
		"CONNECT c.example:443 HTTP/1.1\r\n" HOST END,
		"CONNECT c.example:443 HTTP/1.1\r\nHost: c.example:22\r\n" END,
	};
	static const char *const body[] = {
		"CONNECT a.example:443 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n" END,
		"CONNECT a.example:443 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END,
	};
	static const struct talk_case later[] = {
		{ NEXT CONNECT,
		  "http b.example -> bad, 55 held: HTTP: CONNECT after another request" },
	};

	(void)state;
	expect_refused(target, COUNT_OF(target), "HTTP: CONNECT without a host and a port");
	expect_refused(host, COUNT_OF(host), "HTTP: Host is not the target of CONNECT");
	expect_refused(body, COUNT_OF(body), "HTTP: CONNECT with a body");
	talk_expect_all(later, COUNT_OF(later), "HTTP/1.1 200 OK\r\n\r\n");
}

/* ---- a client that ends ---- */

static bool can_end(const char *client, const char *server)
{
	return talk_can_end(client, strlen(client), server, server ? strlen(server) : 0);
}

static void what_is_no_request_may_end_anywhere(void **state)
{
	static const char *const clients[] = {
		"x",    "hello",      "\r\n",        " ",    "FOO / HTT", "G",      "GET",
		"\x80", "CONNECT {}", "EHLO me\r\n", "POST", "PRI",       "\r\nGE", "OPTIONS ",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(clients); i++)
		if (!can_end(clients[i], NULL))
			fail_msg("'%s' cannot end", clients[i]);
}

static void what_may_be_a_request_may_not_end_in_the_middle(void **state)
{
	static const char *const clients[] = {
		"GET /",
		"GET key",
		"GET /x",
		"GET / HTTP/1.1",
		"GET / http/1.1",
		"POST / HTTP/1.1\r",
		"POST http://a.example",
		"PRI * HTTP/2.0\r",
		"\r\nGET /",
		GET,
		GET HOST,
		GET HOST "\r",
		CHUNKED "5",
		CHUNKED "5\r\nhello\r",
		WEBSOCKET "\x81\x05hello",
		CONNECT "x",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(clients); i++)
		if (can_end(clients[i], NULL))
			fail_msg("'%s' can end", clients[i]);
}

static void what_was_refused_may_not_end_well(void **state)
{
	(void)state;
	assert_false(can_end("GET /\n", NULL));
	assert_false(can_end("FOO / HTTP/1.1\r\n", NULL));
}

static void after_the_server_has_agreed_the_client_may_end_anywhere(void **state)
{
	(void)state;
	assert_true(can_end(WEBSOCKET "\x81\x05he", SWITCHING));
	assert_true(can_end(CONNECT "hello", "HTTP/1.1 200 OK\r\n\r\n"));
	assert_false(can_end(CONNECT "\x16\x03\x01", "HTTP/1.1 200 OK\r\n\r\n"));
	assert_false(can_end(CONNECT "hello", "HTTP/1.1 403 No\r\n\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_is_small),
		cmocka_unit_test(other_protocols_pass_after_their_first_line),
		cmocka_unit_test(what_servers_skip_before_the_real_thing_is_refused),
		cmocka_unit_test(other_protocols_flow_from_their_first_byte),
		cmocka_unit_test(only_what_may_become_the_word_http_is_held_of_a_line_that_flows),
		cmocka_unit_test(a_request_with_an_unknown_method_is_refused_before_its_last_word),
		cmocka_unit_test(whatever_a_server_takes_for_a_blank_is_one),
		cmocka_unit_test(a_line_of_a_megabyte_flows_and_is_still_watched),
		cmocka_unit_test(nothing_is_released_while_it_may_still_be_http),
		cmocka_unit_test(what_is_nearly_a_request_line_is_refused),
		cmocka_unit_test(other_versions_of_http_are_refused),
		cmocka_unit_test(a_method_of_any_length_is_no_way_around),
		cmocka_unit_test(every_known_method_is_a_request),
		cmocka_unit_test(the_preface_of_http2_is_asked_about_without_a_name),
		cmocka_unit_test(the_host_of_a_request_is_asked_about),
		cmocka_unit_test(a_denied_request_is_never_released),
		cmocka_unit_test(a_refused_connection_stays_refused),
		cmocka_unit_test(a_host_that_could_be_read_in_two_ways_is_refused),
		cmocka_unit_test(the_longest_name_is_255_bytes),
		cmocka_unit_test(one_host_exactly),
		cmocka_unit_test(lines_end_in_cr_lf_and_nothing_else),
		cmocka_unit_test(jsonfields_are_strict),
		cmocka_unit_test(a_head_of_more_than_64_kib_is_refused),
		cmocka_unit_test(a_whole_url_is_asked_about_with_its_port),
		cmocka_unit_test(other_targets_are_refused),
		cmocka_unit_test(pipelined_requests_are_asked_about_one_by_one),
		cmocka_unit_test(a_pipelined_request_waits_for_its_own_answer),
		cmocka_unit_test(bodies_end_where_content_length_says),
		cmocka_unit_test(a_body_is_released_as_it_comes),
		cmocka_unit_test(odd_lengths_are_refused),
		cmocka_unit_test(odd_encodings_are_refused),
		cmocka_unit_test(chunked_bodies_end_at_their_last_chunk),
		cmocka_unit_test(odd_chunks_are_refused),
		cmocka_unit_test(after_a_request_only_requests_may_follow),
		cmocka_unit_test(a_websocket_passes_once_the_server_agrees),
		cmocka_unit_test(an_upgrade_counts_only_in_the_first_request_and_without_a_body),
		cmocka_unit_test(an_upgrade_to_what_names_hosts_again_is_refused),
		cmocka_unit_test(inside_a_tunnel_everything_starts_over),
		cmocka_unit_test(odd_connects_are_refused),
		cmocka_unit_test(what_is_no_request_may_end_anywhere),
		cmocka_unit_test(what_may_be_a_request_may_not_end_in_the_middle),
		cmocka_unit_test(what_was_refused_may_not_end_well),
		cmocka_unit_test(after_the_server_has_agreed_the_client_may_end_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
