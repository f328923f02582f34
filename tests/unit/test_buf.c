/* test_buf - what buf and file promise of memory that is the caller's: nothing is written past its
 * end. */
#include "base/buf.h"
#include "base/file.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void fixed_memory_keeps_what_fits(void **state)
{
	char bytes[8 + 1];
	struct buf b;

	(void)state;
	bytes[8] = '!';
	buf_init_fixed(&b, bytes, 8);
	assert_string_equal(buf_text(&b), "");
	buf_add_text(&b, "1234");
	assert_false(b.is_cut);
	buf_add_text(&b, "56789");
	assert_true(b.is_cut);
	assert_string_equal(buf_text(&b), "1234567");
	assert_ptr_equal(b.bytes, bytes);
	assert_int_equal(bytes[8], '!');
	buf_done(&b); /* frees nothing: the sanitizer would say so */
	buf_done(&b);
}

static int read_text(const char *text, char *out, size_t size)
{
	char path[32];
	int fd = memfd_create("text", MFD_CLOEXEC);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = file_read_text(AT_FDCWD, path, out, size);
	assert_int_equal(close(fd), 0);
	return r;
}

static void a_text_is_read_whole_or_refused(void **state)
{
	char out[5 + 1];

	(void)state;
	out[5] = '!';
	assert_int_equal(read_text("", out, 5), 0);
	assert_string_equal(out, "");
	assert_int_equal(read_text("1234", out, 5), 0);
	assert_string_equal(out, "1234");
	assert_int_equal(read_text("12345", out, 5), -EFBIG);
	assert_int_equal(out[5], '!');
	assert_int_equal(file_read_text(AT_FDCWD, "/nonexistent", out, 5), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_memory_keeps_what_fits),
		cmocka_unit_test(a_text_is_read_whole_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
