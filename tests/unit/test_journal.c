/* test_journal - the gate's log can be parsed, is summed correctly, and is bounded. */
#include "unit.h"

#include "net/journal.h"
#include "net/logshare.h"
#include "net/netlog.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define TEXT_MAX_BYTES (4u << 20)

static int new_log(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_APPEND), 0);
	return fd;
}

static void freep(struct journal **j)
{
	journal_free(*j);
}

/* Everything written, as text. */
static char *text_of(int log_fd)
{
	char *text = calloc(1, TEXT_MAX_BYTES);
	ssize_t len;

	assert_non_null(text);
	len = pread(log_fd, text, TEXT_MAX_BYTES - 1, 0);
	assert_true(len >= 0 && len < (ssize_t)TEXT_MAX_BYTES - 1);
	return text;
}

static unsigned count_lines(const char *text)
{
	unsigned count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

/* Reads the next line and moves *text past it. */
static bool next_line(char **text, struct netlog_line *ret)
{
	char *line = strsep(text, "\n");

	if (!line || !*line)
		return false;
	if (!netlog_parse_line(line, ret))
		fail_msg("not a line of a log: '%s'", line);
	return true;
}

static void a_line_is_read_back_as_it_was_meant(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "quiet-otter");
	cleanup_free char *text = NULL;
	struct netlog_line line;
	char *rest;

	(void)state;
	(void)journal_add(j, JOURNAL_DENIED, "a.example", 443, "rule '*.example' (--block-host)",
			  "--allow-host a.example:443");
	rest = text = text_of(log_fd);
	assert_true(next_line(&rest, &line));
	assert_string_equal(line.sandbox, "quiet-otter");
	assert_string_equal(line.decision, "denied");
	assert_string_equal(line.host, "a.example");
	assert_int_equal(line.port, 443);
	assert_string_equal(line.reason, "rule '*.example' (--block-host)");
	assert_string_equal(line.fix, "--allow-host a.example:443");
	assert_int_equal(line.count, 1);
	assert_int_equal(line.sent_bytes, 0);
	assert_int_equal(line.received_bytes, 0);
	assert_true(line.time_ms > 1600000000000ull);
	assert_false(next_line(&rest, &line));
}

static void every_decision_has_its_word(void **state)
{
	static const char *const words[] = { "allowed", "denied", "lookup", "failed", "inbound" };
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "s");
	cleanup_free char *text = NULL;
	struct netlog_line line;
	char *rest;

	(void)state;
	for (unsigned d = 0; d < JOURNAL_DECISION_COUNT; d++)
		(void)journal_add(j, d, "a.example", 0, "why", "");
	rest = text = text_of(log_fd);
	for (unsigned d = 0; d < JOURNAL_DECISION_COUNT; d++) {
		assert_true(next_line(&rest, &line));
		assert_string_equal(line.decision, words[d]);
		assert_string_equal(line.fix, "");
	}
}

static void the_same_again_is_counted_and_written_at_the_next_flush(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "s");
	cleanup_free char *text = NULL;
	struct journal_row *row;
	struct netlog_line line;
	char *rest;

	(void)state;
	row = journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "why", "");
	assert_false(journal_is_dirty(j));
	assert_ptr_equal(journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "why", ""), row);
	assert_ptr_equal(journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "why", ""), row);
	row->sent_bytes += 5;
	row->received_bytes += 7;
	assert_true(journal_is_dirty(j));
	journal_flush(j, JOURNAL_LAST);
	assert_false(journal_is_dirty(j));
	journal_flush(j, JOURNAL_LAST);
	row->received_bytes += 1;
	assert_true(journal_is_dirty(j));
	journal_flush(j, JOURNAL_LAST);
	rest = text = text_of(log_fd);
	assert_true(next_line(&rest, &line));
	assert_int_equal(line.count, 1);
	assert_true(next_line(&rest, &line));
	assert_int_equal(line.count, 2);
	assert_int_equal(line.sent_bytes, 5);
	assert_int_equal(line.received_bytes, 7);
	assert_true(next_line(&rest, &line));
	assert_int_equal(line.count, 0);
	assert_int_equal(line.received_bytes, 1);
	assert_false(next_line(&rest, &line));
}

static void what_differs_in_anything_has_a_row_of_its_own(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "s");
	cleanup_free char *text = NULL;

	(void)state;
	(void)journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_DENIED, "a.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_ALLOWED, "b.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_ALLOWED, "a.example", 80, "why", "");
	(void)journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "because", "");
	text = text_of(log_fd);
	assert_int_equal(count_lines(text), 5);
}

static void the_first_denial_is_told_to_the_supervisor_at_once(void **state)
{
	CLEANUP(freep) struct journal *j = NULL;
	char text[JOURNAL_LINE_MAX_BYTES + 1] = "";
	struct netlog_line line;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	j = journal_new(-1, pair[0], -1, "s");
	(void)journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_DENIED, "b.example", 443, "why", "--allow-host b.example");
	(void)journal_add(j, JOURNAL_DENIED, "b.example", 443, "why", "--allow-host b.example");
	assert_true(recv(pair[1], text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
	text[strcspn(text, "\n")] = '\0';
	assert_true(netlog_parse_line(text, &line));
	assert_string_equal(line.host, "b.example");
	assert_int_equal(recv(pair[1], text, sizeof(text) - 1, MSG_DONTWAIT), -1);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void nobody_need_listen(void **state)
{
	CLEANUP(freep) struct journal *j = journal_new(-1, -1, -1, "s");

	(void)state;
	(void)journal_add(j, JOURNAL_DENIED, "a.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_DENIED, "a.example", 443, "why", "");
	journal_flush(j, JOURNAL_LAST);
	assert_false(journal_is_dirty(j));
	journal_free(NULL);
}

/* Adds events of `count` different hosts. */
static void add_many(struct journal *j, enum journal_decision decision, uint16_t port,
		     unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "host-%u.example", i);
		(void)journal_add(j, decision, name, port, "why", "--allow-host x");
	}
}

static bool has_line(const char *text, const char *decision, const char *host)
{
	cleanup_free char *copy = strdup(text);
	struct netlog_line line;
	char *rest = copy;

	while (next_line(&rest, &line))
		if (strcmp(line.decision, decision) == 0 && strcmp(line.host, host) == 0)
			return true;
	return false;
}

/* A sandbox chooses names, but must not control the memory of its log. */
static void rows_are_bounded_and_the_rest_share_one_a_decision(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "s");
	cleanup_free char *text = NULL;
	uint64_t total = 0, others = 0;
	struct netlog_line line;
	unsigned lines = 0;
	char *rest;

	(void)state;
	add_many(j, JOURNAL_DENIED, 1, 3 * JOURNAL_ROWS_MAX);
	add_many(j, JOURNAL_LOOKUP, 0, 3 * JOURNAL_ROWS_MAX);
	journal_flush(j, JOURNAL_LAST);
	rest = text = text_of(log_fd);
	while (next_line(&rest, &line)) {
		lines++;
		total += line.count;
		if (strcmp(line.host, "(others)") == 0) {
			others += line.count;
			assert_int_equal(line.port, 0);
			assert_string_equal(line.reason, "too many different hosts to list");
			assert_string_equal(line.fix, "");
		}
	}
	assert_int_equal(total, 6 * JOURNAL_ROWS_MAX);
	assert_int_equal(others, 4 * JOURNAL_ROWS_MAX + 2);
	assert_true(lines <= 2 * JOURNAL_ROWS_MAX + 2);
}

static void a_flood_of_denied_names_hides_no_connection(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "s");
	cleanup_free char *text = NULL;

	(void)state;
	add_many(j, JOURNAL_DENIED, 0, 3 * JOURNAL_ROWS_MAX);
	(void)journal_add(j, JOURNAL_ALLOWED, "allowed.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_DENIED, "denied.example", 443, "why", "");
	(void)journal_add(j, JOURNAL_LOOKUP, "asked.example", 0, "why", "");
	text = text_of(log_fd);
	assert_true(has_line(text, "allowed", "allowed.example"));
	assert_true(has_line(text, "denied", "denied.example"));
	assert_true(has_line(text, "lookup", "asked.example"));
	assert_true(has_line(text, "denied", "(others)"));
}

static void a_sandbox_fills_no_more_than_its_share_however_many_gates_it_has(void **state)
{
	cleanup_fd int log_fd = new_log(), share_fd = -1;
	cleanup_free char *text = NULL;
	struct err e = { 0 };
	off_t size;

	(void)state;
	assert_int_equal(logshare_create(&share_fd, &e), 0);
	for (unsigned gate = 0; gate < 20; gate++) {
		CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, share_fd, "s");

		add_many(j, JOURNAL_DENIED, 0, 2 * JOURNAL_ROWS_MAX);
		add_many(j, JOURNAL_DENIED, 0, JOURNAL_ROWS_MAX / 2);
		journal_flush(j, JOURNAL_LAST);
		if (gate == 19)
			(void)journal_add(j, JOURNAL_ALLOWED, "late.example", 443, "why", "");
	}
	size = lseek(log_fd, 0, SEEK_END);
	assert_in_range(size, LOGSHARE_FIRST_BYTES / 2,
			LOGSHARE_FIRST_BYTES + LOGSHARE_COUNT_BYTES + 64 * 1024);
	text = text_of(log_fd);
	assert_true(has_line(text, "denied", "(log full)"));
	assert_true(has_line(text, "allowed", "late.example"));
}

static void counts_that_find_no_room_are_written_later(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep) struct journal *j = journal_new(log_fd, -1, -1, "s");
	struct journal_row *row = journal_add(j, JOURNAL_ALLOWED, "a.example", 443, "why", "");
	cleanup_free char *text = NULL;
	uint64_t total = 0;
	struct netlog_line line;
	char *rest;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		row->count++;
		journal_flush(j, JOURNAL_PERIODIC);
	}
	assert_true(journal_is_dirty(j)); /* its share is used up, except for the reserve */
	journal_flush(j, JOURNAL_LAST);
	assert_false(journal_is_dirty(j));
	rest = text = text_of(log_fd);
	while (next_line(&rest, &line))
		total += line.count;
	assert_int_equal(total, 10001);
}

static void a_host_that_has_a_row_keeps_it_when_rows_have_run_out(void **state)
{
	CLEANUP(freep) struct journal *j = journal_new(-1, -1, -1, "s");
	struct journal_row *first = journal_add(j, JOURNAL_ALLOWED, "a.example", 1, "why", "");
	struct journal_row *other = NULL;

	(void)state;
	for (unsigned i = 0; i < JOURNAL_ROWS_MAX; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "host-%u.example", i);
		other = journal_add(j, JOURNAL_ALLOWED, name, 1, "why", "");
	}
	assert_ptr_equal(journal_add(j, JOURNAL_ALLOWED, "a.example", 1, "why", ""), first);
	assert_ptr_equal(journal_add(j, JOURNAL_ALLOWED, "late.example", 1, "why", ""), other);
}

static void the_longest_names_fit_in_a_line(void **state)
{
	cleanup_fd int log_fd = new_log();
	CLEANUP(freep)
	struct journal *j = journal_new(log_fd, -1, -1, "a-sandbox-with-a-long-name");
	char host[254], reason[300], fix[300];
	cleanup_free char *text = NULL;
	struct netlog_line line;
	char *rest;

	(void)state;
	memset(host, 'a', sizeof(host));
	host[253] = '\0';
	(void)snprintf(reason, sizeof(reason), "rule '%s:65535' (--block-host)", host);
	(void)snprintf(fix, sizeof(fix), "--allow-host %s:65535", host);
	(void)journal_add(j, JOURNAL_DENIED, host, 65535, reason, fix);
	rest = text = text_of(log_fd);
	assert_true(next_line(&rest, &line));
	assert_string_equal(line.fix, fix);
}

static void what_is_no_line_of_a_log_is_not_read(void **state)
{
	static const char *const lines[] = {
		"",
		"1",
		"1\ts\tdenied\ta\t443\twhy\tfix\t1\t2",
		"1\ts\tdenied\ta\t443\twhy\tfix\t1\t2\t3\t4",
		"x\ts\tdenied\ta\t443\twhy\tfix\t1\t2\t3",
		"1\ts\tdenied\ta\t65536\twhy\tfix\t1\t2\t3",
		"1\ts\tdenied\ta\t\twhy\tfix\t1\t2\t3",
		"1\ts\tdenied\ta\t443\twhy\tfix\t-1\t2\t3",
		"1\ts\tdenied\ta\t443\twhy\tfix\t1\t2\t3 ",
		"1\ts\tdenied\ta\t443\twhy\tfix\t1\t2\t99999999999999999999",
	};
	char good[] = "1\ts\tdenied\ta\t443\twhy\tfix\t1\t2\t3";
	struct netlog_line line;

	(void)state;
	assert_true(netlog_parse_line(good, &line));
	assert_int_equal(line.received_bytes, 3);
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		char copy[128];

		(void)snprintf(copy, sizeof(copy), "%s", lines[i]);
		if (netlog_parse_line(copy, &line))
			fail_msg("'%s' is taken for a line", lines[i]);
	}
}

static void add_line(struct netlog_sum *s, const char *text)
{
	struct netlog_line line;
	char copy[256];

	(void)snprintf(copy, sizeof(copy), "%s", text);
	assert_true(netlog_parse_line(copy, &line));
	netlog_sum_add(s, &line);
}

static void lines_about_the_same_add_up(void **state)
{
	CLEANUP(netlog_sum_done) struct netlog_sum s = { 0 };

	(void)state;
	add_line(&s, "30\tx\tallowed\ta\t443\twhy\t\t1\t10\t100");
	add_line(&s, "20\ty\tallowed\ta\t443\twhy\t\t2\t20\t200"); /* of another gate */
	add_line(&s, "10\tx\tdenied\ta\t443\twhy\tfix\t1\t0\t0");
	add_line(&s, "11\tx\tallowed\ta\t80\twhy\t\t1\t0\t0");
	add_line(&s, "12\tx\tallowed\tb\t443\twhy\t\t1\t0\t0");
	add_line(&s, "13\tx\tallowed\ta\t443\tbecause\t\t1\t0\t0");
	assert_int_equal(s.count, 5);
	assert_int_equal(s.rows[0].count, 3);
	assert_int_equal(s.rows[0].sent_bytes, 30);
	assert_int_equal(s.rows[0].received_bytes, 300);
	assert_int_equal(s.rows[0].last_ms, 30);
	assert_string_equal(s.rows[1].fix, "fix");
	netlog_sum_sort(&s);
	for (unsigned i = 1; i < s.count; i++)
		assert_true(s.rows[i - 1].last_ms <= s.rows[i].last_ms);
	assert_int_equal(s.rows[4].last_ms, 30);
}

static void the_rows_of_a_sum_are_bounded_and_it_says_so(void **state)
{
	CLEANUP(netlog_sum_done) struct netlog_sum s = { 0 };
	struct netlog_line line = { .decision = "denied", .host = "a", .reason = "", .fix = "" };

	(void)state;
	for (unsigned port = 0; port < NETLOG_ROWS_MAX; port++) {
		line.port = (uint16_t)port;
		netlog_sum_add(&s, &line);
	}
	assert_false(s.is_cut);
	line.port = NETLOG_ROWS_MAX;
	netlog_sum_add(&s, &line);
	assert_true(s.is_cut);
	assert_int_equal(s.count, NETLOG_ROWS_MAX);
	line.port = 0;
	line.count = 9;
	netlog_sum_add(&s, &line); /* an existing row still counts */
	assert_int_equal(s.rows[0].count, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_read_back_as_it_was_meant),
		cmocka_unit_test(every_decision_has_its_word),
		cmocka_unit_test(the_same_again_is_counted_and_written_at_the_next_flush),
		cmocka_unit_test(what_differs_in_anything_has_a_row_of_its_own),
		cmocka_unit_test(the_first_denial_is_told_to_the_supervisor_at_once),
		cmocka_unit_test(nobody_need_listen),
		cmocka_unit_test(rows_are_bounded_and_the_rest_share_one_a_decision),
		cmocka_unit_test(a_flood_of_denied_names_hides_no_connection),
		cmocka_unit_test(a_sandbox_fills_no_more_than_its_share_however_many_gates_it_has),
		cmocka_unit_test(counts_that_find_no_room_are_written_later),
		cmocka_unit_test(a_host_that_has_a_row_keeps_it_when_rows_have_run_out),
		cmocka_unit_test(the_longest_names_fit_in_a_line),
		cmocka_unit_test(what_is_no_line_of_a_log_is_not_read),
		cmocka_unit_test(lines_about_the_same_add_up),
		cmocka_unit_test(the_rows_of_a_sum_are_bounded_and_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
