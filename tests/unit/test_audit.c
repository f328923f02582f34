/* test_audit - events become lines that can be read back, are bounded, and are never lost. */
#include "unit.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/timestamp.h"
#include "state/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char directory[64];
static char *environment[2];
static struct ak ak;

/* ---- moments ---- */

static void moments_have_one_form(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} cases[] = {
		{ "1970-01-01", 0 },
		{ "1970-01-01T00:00:00.001Z", 1 },
		{ "2025-03-01T12:30:00.250Z", 1740832200250 },
		{ "2025-03-01t12:30:00.25z", 1740832200250 },
		{ "2025-03-01 13:30:00.2509+01:00", 1740832200250 },
		{ "2025-03-01T07:00:00.250-05:30", 1740832200250 },
		{ "2024-02-29", 1709164800000 },
		{ "2016-12-31T23:59:60Z", 1483228799000 },
		{ "9999-12-31T23:59:59.999Z", TIMESTAMP_MAX_MS },
	};
	static const char *const wrong[] = {
		"",
		"2025",
		"2025-3-1",
		"2025-02-29",
		"2025-04-31",
		"1969-12-31",
		"2025-13-01",
		"2025-03-01T12:30:00",
		"2025-03-01T12:30Z",
		"2025-03-01T24:00:00Z",
		"2025-03-01T12:30:00.Z",
		"2025-03-01T12:30:00+1",
		"2025-03-01 ",
		"2025-03-01T12:30:00Zx",
		"1970-01-01T00:00:00+00:01",
		"9999-12-31T23:59:59-00:01",
		"+025-03-01",
		"10m",
	};
	char text[TIMESTAMP_TEXT_MAX_BYTES];
	uint64_t ms;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		assert_true(timestamp_parse(cases[i].text, &ms));
		if (ms != cases[i].ms)
			fail_msg("'%s' is %llu", cases[i].text, (unsigned long long)ms);
	}
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		if (timestamp_parse(wrong[i], &ms))
			fail_msg("'%s' is a moment", wrong[i]);
	assert_string_equal(timestamp_format(1740832200250, text), "2025-03-01T12:30:00.250Z");
	assert_string_equal(timestamp_format(0, text), "1970-01-01T00:00:00.000Z");
	assert_string_equal(timestamp_format(UINT64_MAX, text), "9999-12-31T23:59:59.999Z");
}

/* ---- lines ---- */

static const struct auditline plain = {
	.time_ms = 1740832200250,
	.uid = 1000,
	.pid = 42,
	.program = "bash",
	.sandbox = "otter",
	.type = AUDITLINE_EXEC,
	.result = AUDITLINE_RESULT_OK,
};

static void a_line_is_as_documented(void **state)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"echo \"hi\"\n\x07\x7f", NULL };
	struct auditline a = plain;
	cleanup_buf struct buf line;

	(void)state;
	buf_init(&line, 2 * AUDITLINE_MAX_BYTES);
	a.argv = argv;
	a.detail = "id 3";
	a.id = "0123";
	a.owner = "name:ci";
	auditline_format(&a, &line);
	assert_string_equal(
		buf_text(&line),
		"{\"time\":\"2025-03-01T12:30:00.250Z\",\"uid\":1000,\"pid\":42,\"program\":"
		"\"bash\","
		"\"sandbox\":\"otter\",\"id\":\"0123\",\"owner\":\"name:ci\",\"type\":\"exec\","
		"\"argv\":[\"sh\",\"-c\","
		"\"echo \\\"hi\\\"\\n\\u0007\\u007f\"],\"result\":\"ok\",\"detail\":\"id 3\"}\n");
	line.len = 0;
	a = plain;
	a.sandbox = NULL;
	a.type = AUDITLINE_GC;
	a.what = "2 checkpoints";
	a.result = "no space";
	auditline_format(&a, &line);
	assert_string_equal(buf_text(&line),
			    "{\"time\":\"2025-03-01T12:30:00.250Z\",\"uid\":1000,\"pid\":42,"
			    "\"program\":\"bash\",\"type\":\"gc\",\"what\":\"2 checkpoints\","
			    "\"result\":\"no space\"}\n");
}

/* Writes and reads; the texts live as long as `line`. */
static struct auditline reread(const struct auditline *a, struct buf *line,
			       char *words[AUDITLINE_WORDS_MAX])
{
	struct auditline back;

	buf_init(line, 2 * AUDITLINE_MAX_BYTES);
	auditline_format(a, line);
	assert_true(line->len <= AUDITLINE_MAX_BYTES);
	assert_ptr_equal(memchr(line->bytes, '\n', line->len), line->bytes + line->len - 1);
	if (!auditline_parse(line->bytes, line->len - 1, words, &back))
		fail_msg("not read: %s", line->bytes);
	return back;
}

static void what_is_written_is_read(void **state)
{
	char *argv[] = { (char *)"",
			 (char *)"\xc3\xa9 \\ \" \t\r\n \xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0",
			 (char *)"\x01\x1f\x7f", NULL };
	char *words[AUDITLINE_WORDS_MAX];
	cleanup_buf struct buf line;
	struct auditline a = plain, back;

	(void)state;
	a.argv = argv;
	a.detail = "";
	a.id = "0123";
	a.owner = "name:ci";
	back = reread(&a, &line, words);
	assert_int_equal(back.time_ms, a.time_ms);
	assert_int_equal(back.uid, 1000);
	assert_int_equal(back.pid, 42);
	assert_string_equal(back.program, "bash");
	assert_string_equal(back.sandbox, "otter");
	assert_string_equal(back.id, "0123");
	assert_string_equal(back.owner, "name:ci");
	assert_int_equal(back.type, AUDITLINE_EXEC);
	for (int i = 0; i < 3; i++)
		assert_string_equal(back.argv[i], argv[i]);
	assert_null(back.argv[3]);
	assert_null(back.what);
	assert_string_equal(back.result, "ok");
	assert_string_equal(back.detail, "");
	assert_false(back.is_cut);
}

static void every_type_has_a_word(void **state)
{
	for (int i = 0; i < AUDITLINE_TYPE_COUNT; i++) {
		char *words[AUDITLINE_WORDS_MAX];
		cleanup_buf struct buf line;
		struct auditline a = plain;
		enum auditline_type type;
		struct err e;

		(void)state;
		a.type = (enum auditline_type)i;
		assert_int_equal(reread(&a, &line, words).type, i);
		assert_int_equal(auditline_parse_type(auditline_type_word(a.type), &type, &e), 0);
		assert_int_equal(type, i);
	}
}

static void an_unknown_type_names_the_nearest(void **state)
{
	enum auditline_type type;
	struct err e;

	(void)state;
	assert_int_equal(auditline_parse_type("exce", &type, &e), -1);
	assert_string_equal(e.msg, "no event is a 'exce', did you mean 'exec'?");
	assert_int_equal(auditline_parse_type("zzzzzzzz", &type, &e), -1);
	assert_non_null(strstr(e.msg, "(create, start, "));
	assert_int_equal(auditline_parse_type("", &type, &e), -1);
}

/* A text of `len` bytes, all `c`. */
static char *repeat(char c, size_t len)
{
	char *text = mem_alloc(len + 1);

	memset(text, c, len);
	return text;
}

static void long_texts_are_cut_in_their_middle(void **state)
{
	static const char bytes[] = { 'x', '\x01', '"', '\xff', '\x7f', '\n' };
	char *words[AUDITLINE_WORDS_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bytes); i++) {
		cleanup_free char *text = repeat(bytes[i], 100000);
		char *argv[] = { (char *)"sh", (char *)"-c", text, (char *)"last", NULL };
		cleanup_buf struct buf line, second;
		struct auditline a = plain, back;

		a.program = a.sandbox = a.id = a.owner = a.result = a.detail = a.what = text;
		back = reread(&a, &line, words);
		assert_true(back.is_cut);
		assert_non_null(strstr(back.what, "bytes left out]..."));
		a = plain;
		a.argv = argv;
		text[0] = 'A';
		text[99999] = 'Z';
		back = reread(&a, &second, words);
		assert_true(back.is_cut);
		assert_string_equal(back.argv[0], "sh");
		assert_string_equal(back.argv[1], "-c");
		assert_int_equal(back.argv[2][0], 'A');
		assert_int_equal(back.argv[2][strlen(back.argv[2]) - 1], 'Z');
		assert_string_equal(back.argv[3], "last");
		assert_null(back.argv[4]);
	}
}

static void of_too_many_words_the_first_and_last_are_kept(void **state)
{
	char *argv[5001] = { (char *)"first" };
	char *words[AUDITLINE_WORDS_MAX];
	cleanup_buf struct buf line;
	struct auditline a = plain, back;
	unsigned count = 0;
	bool has_mark = false;

	(void)state;
	for (int i = 1; i < 4999; i++)
		argv[i] = (char *)"word";
	argv[4999] = (char *)"last";
	a.argv = argv;
	back = reread(&a, &line, words);
	assert_true(back.is_cut);
	for (; back.argv[count]; count++)
		has_mark = has_mark || strstr(back.argv[count], " words left out]...");
	assert_true(has_mark);
	assert_true(count > 300); /* as many as fit */
	assert_string_equal(back.argv[0], "first");
	assert_string_equal(back.argv[count - 1], "last");
}

static void a_text_that_fits_is_not_cut(void **state)
{
	cleanup_free char *text = repeat('x', 3700);
	char *words[AUDITLINE_WORDS_MAX];
	cleanup_buf struct buf line;
	struct auditline a = plain;

	(void)state;
	a.what = text;
	assert_string_equal(reread(&a, &line, words).what, text);
}

static void other_lines_are_damaged(void **state)
{
	static const char good[] =
		"{\"time\":\"2025-03-01T12:30:00.250Z\",\"uid\":1,\"pid\":2,\"program\":\"a\","
		"\"sandbox\":\"s\",\"type\":\"exec\",\"argv\":[\"x\",\"y\"],\"result\":\"ok\"}";
	static const struct {
		const char *from, *to;
	} changes[] = {
		{ "{", "" },
		{ "}", "" },
		{ "}", "} " },
		{ "}", "}}" },
		{ "{", " {" },
		{ ".250Z", "Z" },
		{ "03-01", "02-30" },
		{ "\"uid\":1", "\"uid\":01" },
		{ "\"uid\":1", "\"uid\":-1" },
		{ "\"uid\":1", "\"uid\":" },
		{ "\"uid\":1", "\"uid\":4294967296" },
		{ "\"uid\":1", "\"uid\":99999999999999999999999" },
		{ "\"uid\":1,", "" },
		{ "exec", "exek" },
		{ "[\"x\",\"y\"]", "[\"x\"\"y\"]" },
		{ "[\"x\",\"y\"]", "[\"x\",]" },
		{ "[\"x\",\"y\"]", "[\"x\"" },
		{ "[\"x\",\"y\"]", "[x]" },
		{ "[\"x\",\"y\"]", "\"x\"" },
		{ "\"x\"", "\"x\\u0000\"" },
		{ "\"x\"", "\"x\\u0041\"" },
		{ "\"x\"", "\"x\\u001F\"" },
		{ "\"x\"", "\"x\\u000a\"" },
		{ "\"x\"", "\"x\\u1\"" },
		{ "\"x\"", "\"x\\/\"" },
		{ "\"x\"", "\"x\\" },
		{ "\"x\"", "\"\t\"" },
		{ "\"x\"", "\"\x7f\"" },
		{ "\"x\"", "\"\xff\"" },
		{ "\"x\"", "\"\xc3\"" },
		{ "\"result\":\"ok\"", "\"result\":null" },
		{ "\"result\":\"ok\"", "\"what\":\"x\",\"result\":\"ok\"" },
		{ "\"ok\"", "\"ok\",\"cut\":false" },
		{ "\"ok\"", "\"ok\",\"cut\":true,\"detail\":\"x\"" },
		{ "\"ok\"", "\"ok\",\"more\":\"x\"" },
	};
	char *words[AUDITLINE_WORDS_MAX];
	char line[512];
	struct auditline a;

	(void)state;
	strcpy(line, good);
	assert_true(auditline_parse(line, strlen(good), words, &a));
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		const char *at = strstr(good, changes[i].from);

		(void)snprintf(line, sizeof(line), "%.*s%s%s", (int)(at - good), good,
			       changes[i].to, at + strlen(changes[i].from));
		if (auditline_parse(line, strlen(line), words, &a))
			fail_msg("taken: '%s' as '%s'", changes[i].from, changes[i].to);
	}
	for (size_t len = 0; len < strlen(good); len++) {
		cleanup_free char *half = mem_dup_bytes(good, len);

		assert_false(auditline_parse(half, len, words, &a));
	}
	strcpy(line, good);
	line[40] = '\0';
	assert_false(auditline_parse(line, strlen(good), words, &a));
}

/* ---- the file ---- */

static char *path_of(const char *name)
{
	return mem_format("%s/state/%s", directory, name);
}

static void remove_logs(void)
{
	cleanup_free char *path = path_of(AUDIT_FILE);
	cleanup_free char *old_path = path_of(AUDIT_OLD_FILE);
	cleanup_free char *state = mem_format("%s/state", directory);

	(void)unlink(path);
	(void)unlink(old_path);
	(void)rmdir(state);
}

static void an_event_is_appended_with_who_did_it(void **state)
{
	cleanup_free char *path = path_of(AUDIT_FILE);
	cleanup_free char *text = NULL;
	char *words[AUDITLINE_WORDS_MAX], *rest, *line, program[32], comm[64];
	const struct audit_actor actor = { .uid = 7, .pid = 8, .program = "agent" };
	struct auditline a;
	struct stat st;
	size_t len = 0;
	uint64_t now_ms = timestamp_now_ms();

	(void)state;
	remove_logs();
	assert_int_equal(audit_write(&ak, &(struct audit_event){ .type = AUDITLINE_CREATE,
								 .sandbox = "otter",
								 .what = "image host" }),
			 0);
	assert_int_equal(audit_write(&ak, &(struct audit_event){ .type = AUDITLINE_REMOVE,
								 .actor = &actor,
								 .sandbox = "otter",
								 .result = "it runs" }),
			 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(file_read_at(AT_FDCWD, path, 1u << 16, &text, &len), 0);
	rest = text;
	line = strsep(&rest, "\n");
	assert_true(auditline_parse(line, strlen(line), words, &a));
	assert_true(a.time_ms >= now_ms && a.time_ms < now_ms + 60000);
	assert_int_equal(a.uid, getuid());
	assert_int_equal(a.pid, getppid());
	(void)snprintf(comm, sizeof(comm), "/proc/%d/comm", getppid());
	assert_true(file_read_line(AT_FDCWD, comm, program, sizeof(program)) >= 0);
	assert_string_equal(a.program, program);
	assert_string_equal(a.result, "ok");
	line = strsep(&rest, "\n");
	assert_true(auditline_parse(line, strlen(line), words, &a));
	assert_int_equal(a.uid, 7);
	assert_int_equal(a.pid, 8);
	assert_string_equal(a.program, "agent");
	assert_string_equal(a.result, "it runs");
	assert_string_equal(rest, "");
}

static int write_with(char *const *environ_list, const struct audit_event *event)
{
	CLEANUP(ak_close) struct ak other;

	ak_open(&other, environ_list);
	return audit_write(&other, event);
}

static void a_log_that_cannot_be_written_is_told(void **state)
{
	cleanup_free char *path = path_of(AUDIT_FILE);
	char *nowhere[] = { (char *)"AGENTKERNEL_HOME=/proc/nowhere", NULL };
	char *homeless[] = { NULL };
	const struct audit_event event = { .type = AUDITLINE_START };

	(void)state;
	remove_logs();
	assert_true(write_with(nowhere, &event) < 0);
	if (geteuid() != 0)
		assert_int_equal(write_with(homeless, &event), -ENOENT);
	assert_int_equal(audit_write(&ak, &event), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/tmp/elsewhere", path), 0);
	assert_int_equal(audit_write(&ak, &event), -ELOOP);
	assert_int_equal(unlink(path), 0);
}

/* Counts readable lines, and checks that each of `writers` wrote all of its own. */
static unsigned count_events(const char *name, unsigned *seen, unsigned writers)
{
	cleanup_free char *path = path_of(name);
	cleanup_free char *text = NULL;
	char *words[AUDITLINE_WORDS_MAX], *line, *rest;
	size_t len = 0;
	unsigned count = 0;

	if (file_read_at(AT_FDCWD, path, 4 * AUDIT_MAX_BYTES, &text, &len) < 0)
		return 0;
	rest = text + strspn(text, " "); /* the filling */
	while ((line = strsep(&rest, "\n")) && rest) {
		struct auditline a;

		if (!auditline_parse(line, strlen(line), words, &a))
			fail_msg("damaged: '%.60s'", line);
		assert_true(a.pid < writers);
		seen[a.pid]++;
		count++;
	}
	return count;
}

static void fill(size_t free_bytes)
{
	cleanup_free char *path = path_of(AUDIT_FILE);
	cleanup_free char *blank = repeat(' ', AUDIT_MAX_BYTES - free_bytes);
	cleanup_fd int fd = -1;

	assert_int_equal(audit_write(&ak, &(struct audit_event){ .type = AUDITLINE_GC }), 0);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(file_write_all(fd, blank, AUDIT_MAX_BYTES - free_bytes), 0);
}

#define WRITERS 6u
#define LINES 60u

static _Noreturn void write_many(unsigned number)
{
	const struct audit_actor actor = { .pid = number, .program = "writer" };

	for (unsigned i = 0; i < LINES; i++)
		if (audit_write(&ak, &(struct audit_event){ .type = AUDITLINE_EXEC,
							    .actor = &actor,
							    .what = "something" }) < 0)
			_exit(1);
	_exit(0);
}

static void a_full_log_is_moved_once_and_no_line_is_lost(void **state)
{
	(void)state;
	for (int round = 0; round < 12; round++) {
		cleanup_free char *old_path = path_of(AUDIT_OLD_FILE);
		unsigned seen[WRITERS] = { 0 };
		unsigned old, new;
		struct stat st;
		int status;

		remove_logs();
		fill(20000); /* for about half of the lines */
		for (unsigned i = 0; i < WRITERS; i++) {
			pid_t pid = fork();

			if (pid == 0)
				write_many(i);
			assert_true(pid > 0);
		}
		for (unsigned i = 0; i < WRITERS; i++) {
			assert_true(wait(&status) > 0);
			assert_int_equal(status, 0);
		}
		assert_int_equal(stat(old_path, &st), 0);
		assert_true(st.st_size > (off_t)AUDIT_MAX_BYTES - 1000);
		/* concurrent writers that check the size at the same time may each add one */
		assert_true(st.st_size <= (off_t)(AUDIT_MAX_BYTES + WRITERS * 200));
		old = count_events(AUDIT_OLD_FILE, seen, WRITERS);
		new = count_events(AUDIT_FILE, seen, WRITERS);
		assert_true(old > 0 && new > 0);
		for (unsigned i = 0; i < WRITERS; i++)
			assert_int_equal(seen[i], LINES);
	}
	remove_logs();
}

static void who_waits_while_the_log_is_moved_writes_into_the_new_one(void **state)
{
	static const struct timespec moment = { .tv_nsec = 8000000 };
	cleanup_free char *path = path_of(AUDIT_FILE);
	cleanup_free char *old_path = path_of(AUDIT_OLD_FILE);
	unsigned seen[WRITERS] = { 0 };
	int status = 0, fd;
	pid_t pid;

	(void)state;
	remove_logs();
	fill(AUDIT_MAX_BYTES - 10);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	pid = fork();
	if (pid == 0) {
		const struct audit_actor actor = { .program = "x" };

		(void)close(fd);
		_exit(audit_write(&ak, &(struct audit_event){ .type = AUDITLINE_GC,
							      .actor = &actor }) < 0);
	}
	(void)nanosleep(&moment, NULL);
	assert_int_equal(rename(path, old_path), 0);
	(void)close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_events(AUDIT_OLD_FILE, seen, WRITERS), 0);
	assert_int_equal(count_events(AUDIT_FILE, seen, WRITERS), 1);
	remove_logs();
}

static void a_lock_that_is_never_given_back_holds_up_nobody(void **state)
{
	cleanup_free char *path = path_of(AUDIT_FILE);
	unsigned seen[WRITERS] = { 0 };
	cleanup_fd int fd = -1;

	(void)state;
	remove_logs();
	fill(100);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(audit_write(&ak,
				     &(struct audit_event){
					     .type = AUDITLINE_GC,
					     .actor = &(struct audit_actor){ .program = "x" } }),
			 0);
	assert_int_equal(count_events(AUDIT_FILE, seen, WRITERS), 1);
	remove_logs();
}

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/agentkernel-audit.XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	environment[0] = mem_format("AGENTKERNEL_HOME=%s/state", directory);
	ak_open(&ak, environment);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	remove_logs();
	ak_close(&ak);
	free(environment[0]);
	return rmdir(directory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_have_one_form),
		cmocka_unit_test(a_line_is_as_documented),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(every_type_has_a_word),
		cmocka_unit_test(an_unknown_type_names_the_nearest),
		cmocka_unit_test(long_texts_are_cut_in_their_middle),
		cmocka_unit_test(of_too_many_words_the_first_and_last_are_kept),
		cmocka_unit_test(a_text_that_fits_is_not_cut),
		cmocka_unit_test(other_lines_are_damaged),
		cmocka_unit_test(an_event_is_appended_with_who_did_it),
		cmocka_unit_test(a_log_that_cannot_be_written_is_told),
		cmocka_unit_test(a_full_log_is_moved_once_and_no_line_is_lost),
		cmocka_unit_test(who_waits_while_the_log_is_moved_writes_into_the_new_one),
		cmocka_unit_test(a_lock_that_is_never_given_back_holds_up_nobody),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
