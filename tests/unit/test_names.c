/* test_names - a name keeps its address, also with another gate. */
#include "unit.h"

#include "net/names.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Offsets in the shared memory, for tests that damage it. */
#define NAME_BYTES 256u
#define NAMES_AT 256u

static struct names *opened(int fd)
{
	struct names *n = NULL;
	struct err e = { 0 };

	if (names_open(fd, &n, &e) < 0)
		fail_msg("%s", e.msg);
	return n;
}

static int created(void)
{
	struct err e = { 0 };
	int fd = -1;

	if (names_create(&fd, &e) < 0)
		fail_msg("%s", e.msg);
	return fd;
}

static void freep(struct names **n)
{
	names_free(*n);
}

static void expect_address(struct names *n, const char *name, const char *text)
{
	char out[ADDRESS_TEXT_MAX_BYTES];
	struct address a;

	assert_true(names_get_address(n, name, &a));
	assert_string_equal(address_format(&a, out), text);
	assert_true(names_is_synthetic(&a));
	assert_string_equal(names_get_name(n, &a), name);
}

static struct address parsed(const char *text)
{
	struct address a;

	assert_true(address_parse(text, &a));
	return a;
}

static void a_name_has_one_address_and_keeps_it(void **state)
{
	cleanup_fd int fd = created();
	CLEANUP(freep) struct names *n = opened(fd);

	(void)state;
	expect_address(n, "a.example", "198.18.1.0");
	expect_address(n, "b.example", "198.18.1.1");
	expect_address(n, "a.example", "198.18.1.0");
	expect_address(n, "c.example", "198.18.1.2");
	expect_address(n, "b.example", "198.18.1.1");
}

static void an_address_that_nobody_has_asked_for_has_no_name(void **state)
{
	static const char *const others[] = { "198.18.1.1", "198.18.0.255", "198.19.255.255",
					      "8.8.8.8",    "0.0.0.0",      "fd00::1",
					      "c612:100::" };
	cleanup_fd int fd = created();
	CLEANUP(freep) struct names *n = opened(fd);

	(void)state;
	expect_address(n, "a.example", "198.18.1.0");
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		struct address a = parsed(others[i]);

		assert_null(names_get_name(n, &a));
	}
}

static void the_range_is_198_18_0_0_15(void **state)
{
	struct address before = parsed("198.17.255.255"), first = parsed("198.18.0.0");
	struct address last = parsed("198.19.255.255"), after = parsed("198.20.0.0");

	(void)state;
	assert_false(names_is_synthetic(&before));
	assert_true(names_is_synthetic(&first));
	assert_true(names_is_synthetic(&last));
	assert_false(names_is_synthetic(&after));
}

static void names_outlive_the_gate_that_gave_them(void **state)
{
	cleanup_fd int fd = created();

	(void)state;
	for (int gate = 0; gate < 3; gate++) {
		CLEANUP(freep) struct names *n = opened(fd);

		for (int i = 0; i < 300 * (gate + 1); i++) {
			char name[64], text[32];

			(void)snprintf(name, sizeof(name), "host-%d.example", i);
			(void)snprintf(text, sizeof(text), "198.18.%d.%d", 1 + i / 256, i % 256);
			expect_address(n, name, text);
		}
	}
}

static void a_full_table_gives_no_more_but_keeps_what_it_gave(void **state)
{
	cleanup_fd int fd = created();
	CLEANUP(freep) struct names *n = opened(fd);
	CLEANUP(freep) struct names *next = NULL;
	struct address a, last = parsed("198.19.0.255");
	char name[64];

	(void)state;
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "host-%u.example", i);
		assert_true(names_get_address(n, name, &a));
	}
	assert_true(address_is_equal(&a, &last));
	assert_false(names_get_address(n, "one-more.example", &a));
	assert_false(names_get_address(n, "one-more.example", &a));
	expect_address(n, "host-0.example", "198.18.1.0");
	expect_address(n, "host-65535.example", "198.19.0.255");
	next = opened(fd);
	expect_address(next, "host-65535.example", "198.19.0.255");
	assert_false(names_get_address(next, "one-more.example", &a));
}

static void the_longest_name_fits(void **state)
{
	cleanup_fd int fd = created();
	CLEANUP(freep) struct names *n = opened(fd);
	CLEANUP(freep) struct names *next = NULL;
	char name[254];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	name[253] = '\0';
	expect_address(n, name, "198.18.1.0");
	expect_address(n, "b.example", "198.18.1.1");
	next = opened(fd);
	expect_address(next, name, "198.18.1.0");
}

static void nobody_can_change_the_size_of_the_table(void **state)
{
	cleanup_fd int fd = created();
	struct stat before, after;

	(void)state;
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, before.st_size * 2), -1);
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
}

/* What a compromised gate could leave to the next one. */
static void damaged_memory_is_refused(void **state)
{
	static const struct {
		uint32_t count;
		const char *name;
		size_t len;
		bool is_sound;
	} cases[] = {
		{ 1, "a.example", 10, true },    { 1, "", 1, false },
		{ 2, "a.example", 10, false },   { NAMES_MAX + 1, "a.example", 10, false },
		{ UINT32_MAX, "a", 2, false },   { 1, "A.example", 10, false },
		{ 1, "a.example.", 11, false },  { 1, "a b", 4, false },
		{ 1, "a\tb", 4, false },         { 1, "127.0.0.1", 10, false },
		{ 0, "not\tcounted", 12, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		cleanup_fd int fd = created();
		CLEANUP(freep) struct names *n = NULL;
		struct err e = { 0 };

		assert_int_equal(pwrite(fd, &cases[i].count, 4, 0), 4);
		assert_int_equal(pwrite(fd, cases[i].name, cases[i].len, NAMES_AT), cases[i].len);
		if (cases[i].is_sound) {
			assert_int_equal(names_open(fd, &n, &e), 0);
			continue;
		}
		assert_int_equal(names_open(fd, &n, &e), -1);
		assert_int_equal(e.code, ERR_CORRUPT);
		assert_string_equal(e.msg, "the table of names is damaged");
	}
}

static void a_name_without_an_end_is_refused(void **state)
{
	cleanup_fd int fd = created();
	struct names *n = NULL;
	char name[NAME_BYTES];
	uint32_t count = 1;
	struct err e = { 0 };

	(void)state;
	memset(name, 'a', sizeof(name));
	name[63] = name[127] = name[191] = '.';
	assert_int_equal(pwrite(fd, &count, 4, 0), 4);
	assert_int_equal(pwrite(fd, name, sizeof(name), NAMES_AT), sizeof(name));
	assert_int_equal(names_open(fd, &n, &e), -1);
	assert_int_equal(e.code, ERR_CORRUPT);
}

static void what_is_no_table_cannot_be_opened(void **state)
{
	struct names *n = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(names_open(-1, &n, &e), -1);
	assert_int_equal(e.code, ERR_SYSTEM);
	names_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_one_address_and_keeps_it),
		cmocka_unit_test(an_address_that_nobody_has_asked_for_has_no_name),
		cmocka_unit_test(the_range_is_198_18_0_0_15),
		cmocka_unit_test(names_outlive_the_gate_that_gave_them),
		cmocka_unit_test(a_full_table_gives_no_more_but_keeps_what_it_gave),
		cmocka_unit_test(the_longest_name_fits),
		cmocka_unit_test(nobody_can_change_the_size_of_the_table),
		cmocka_unit_test(damaged_memory_is_refused),
		cmocka_unit_test(a_name_without_an_end_is_refused),
		cmocka_unit_test(what_is_no_table_cannot_be_opened),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
