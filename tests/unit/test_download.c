/* test_download - downloads a blob into a file: resumed, started over, and never too large. */
#include "unit.h"

#include "base/mem.h"
#include "image/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define BLOB_BYTES 1000003u /* not a multiple of anything */
#define STEP_BYTES 70001u

struct blob {
	char *bytes;
	char digest[REFERENCE_DIGEST_MAX_BYTES];
	int fd;
	struct download d;
};

static int set_up(void **state)
{
	struct blob *b = mem_alloc(sizeof(*b));

	b->bytes = mem_alloc(BLOB_BYTES);
	for (unsigned i = 0; i < BLOB_BYTES; i++)
		b->bytes[i] = (char)(i * 2654435761u >> 13);
	digest_of(b->bytes, BLOB_BYTES, b->digest);
	b->fd = memfd_create("blob", MFD_CLOEXEC);
	assert_true(b->fd >= 0);
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	struct blob *b = *state;

	download_done(&b->d);
	download_done(&b->d);
	(void)close(b->fd);
	free(b->bytes);
	free(b);
	return 0;
}

static void init(struct blob *b)
{
	struct err e = { 0 };

	assert_int_equal(download_init(&b->d, b->fd, b->digest, BLOB_BYTES, &e), 0);
}

static void catch_up(struct blob *b)
{
	bool is_through = false;
	struct err e = { 0 };

	for (unsigned i = 0; !is_through; i++) {
		assert_true(i <= BLOB_BYTES / STEP_BYTES + 1);
		assert_int_equal(download_catch_up(&b->d, STEP_BYTES, &is_through, &e), 0);
	}
}

static void add_rest(struct blob *b)
{
	struct err e = { 0 };

	while (b->d.done_bytes < BLOB_BYTES) {
		size_t left = BLOB_BYTES - b->d.done_bytes;

		assert_int_equal(download_add(&b->d, b->bytes + b->d.done_bytes,
					      left < STEP_BYTES ? left : STEP_BYTES, &e),
				 0);
	}
}

static bool check(struct blob *b)
{
	bool is_right = false;
	struct err e = { 0 };

	assert_int_equal(download_check(&b->d, &is_right, &e), 0);
	return is_right;
}

static size_t file_size(const struct blob *b)
{
	struct stat st;

	assert_int_equal(fstat(b->fd, &st), 0);
	return (size_t)st.st_size;
}

static void expect_file_is_blob(const struct blob *b)
{
	char found[REFERENCE_DIGEST_MAX_BYTES];

	assert_int_equal(digest_of_file(b->fd, found), 0);
	assert_string_equal(found, b->digest);
}

static void whole_blob_arrives(void **state)
{
	struct blob *b = *state;

	init(b);
	assert_false(b->d.is_pieced);
	add_rest(b);
	assert_true(check(b));
	expect_file_is_blob(b);
}

static void beginning_is_hashed_and_the_rest_added(void **state)
{
	struct blob *b = *state;

	assert_int_equal(pwrite(b->fd, b->bytes, 333333, 0), 333333);
	init(b);
	assert_true(b->d.is_pieced);
	catch_up(b);
	assert_int_equal(b->d.done_bytes, 333333);
	add_rest(b);
	assert_true(check(b));
	expect_file_is_blob(b);
}

static void complete_file_needs_nothing(void **state)
{
	struct blob *b = *state;

	assert_int_equal(pwrite(b->fd, b->bytes, BLOB_BYTES, 0), BLOB_BYTES);
	init(b);
	catch_up(b);
	assert_int_equal(b->d.done_bytes, BLOB_BYTES);
	assert_true(check(b));
}

static void wrong_beginning_is_noticed_and_started_over(void **state)
{
	struct blob *b = *state;
	struct err e = { 0 };

	assert_int_equal(pwrite(b->fd, "x", 1, 0), 1);
	init(b);
	catch_up(b);
	add_rest(b);
	assert_false(check(b));
	assert_int_equal(download_restart(&b->d, &e), 0);
	assert_int_equal(file_size(b), 0);
	assert_int_equal(b->d.done_bytes, 0);
	assert_false(b->d.is_pieced);
	add_rest(b);
	assert_true(check(b));
	expect_file_is_blob(b);
}

static void file_that_is_too_long_is_emptied(void **state)
{
	struct blob *b = *state;

	assert_int_equal(ftruncate(b->fd, BLOB_BYTES + 1), 0);
	init(b);
	assert_int_equal(file_size(b), 0);
	catch_up(b);
	assert_int_equal(b->d.done_bytes, 0);
}

static void one_byte_too_many_is_refused(void **state)
{
	struct blob *b = *state;
	struct err e = { 0 };

	init(b);
	add_rest(b);
	assert_int_equal(download_add(&b->d, "x", 1, &e), -1);
	assert_int_equal(e.code, ERR_REMOTE);
	assert_non_null(strstr(e.msg, "more than its 1000003 bytes"));
	assert_int_equal(b->d.done_bytes, BLOB_BYTES);
}

static void flushed_bytes_are_in_the_file(void **state)
{
	struct blob *b = *state;
	struct err e = { 0 };
	char found[10];

	init(b);
	assert_int_equal(download_add(&b->d, b->bytes, sizeof(found), &e), 0);
	assert_int_equal(download_flush(&b->d, &e), 0);
	assert_int_equal(file_size(b), sizeof(found));
	assert_int_equal(pread(b->fd, found, sizeof(found), 0), sizeof(found));
	assert_memory_equal(found, b->bytes, sizeof(found));
}

static void full_disk_is_an_error_with_the_blob(void **state)
{
	struct blob *b = *state;
	cleanup_fd int full_fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	struct err e = { 0 };

	init(b);
	b->d.fd = full_fd;
	assert_int_equal(download_add(&b->d, b->bytes, 10, &e), 0);
	assert_int_equal(download_flush(&b->d, &e), -1);
	assert_int_equal(e.sys, ENOSPC);
	assert_non_null(strstr(e.msg, b->digest));
}

#define with_blob(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		with_blob(whole_blob_arrives),
		with_blob(beginning_is_hashed_and_the_rest_added),
		with_blob(complete_file_needs_nothing),
		with_blob(wrong_beginning_is_noticed_and_started_over),
		with_blob(file_that_is_too_long_is_emptied),
		with_blob(one_byte_too_many_is_refused),
		with_blob(flushed_bytes_are_in_the_file),
		with_blob(full_disk_is_an_error_with_the_blob),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
