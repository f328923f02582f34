/* The record of an image, the names of layers, and a line of the progress output. */
#include "image/progress.h"
#include "image/record.h"
#include "image/store.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#define ID_A "abcdefghijklmnopqrstuvwxyz"
#define ID_B "zyxwvutsrqponmlkjihgfedc27"

#define RECORD_MAGIC "agentkernel image 2"
#define DIFF_1 "sha256:c3d1d3a9f3b4a3b1f2d7f8c0a6a4f3e4b0e1d2c3b4a5968778695a4b3c2d1e0f"
#define DIFF_2 "sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"

static void fill(struct record *r)
{
	static char *env[] = { "PATH=/bin", "TEXT=two\nlines = here", NULL };
	static char *cmd[] = { "sh", "-c", "", NULL };

	*r = (struct record){ .id = ID_A,
			      .digest = DIFF_1,
			      .config = DIFF_2,
			      .created = "then",
			      .size_bytes = 1ull << 40,
			      .added_s = 7,
			      .owners = "raw",
			      .layers = { ID_A, ID_B },
			      .layer_count = 2,
			      .env = env,
			      .cmd = cmd,
			      .user = "app:wheel",
			      .workdir = "/w",
			      .passwd = "root:x:0:0::/:\n",
			      .group = "" };
}

static void what_is_written_is_read_back(void **state)
{
	CLEANUP(record_done) struct record back = { 0 };
	cleanup_buf struct buf out;
	struct record r;
	struct err e = { 0 };

	(void)state;
	fill(&r);
	buf_init(&out, RECORD_MAX_BYTES);
	record_format(&r, &out);
	assert_int_equal(record_parse(out.bytes, out.len, &back, &e), 0);
	assert_string_equal(back.id, ID_A);
	assert_int_equal(back.size_bytes, 1ull << 40);
	assert_int_equal(back.layer_count, 2);
	assert_string_equal(back.layers[1], ID_B);
	assert_string_equal(back.env[1], "TEXT=two\nlines = here");
	assert_null(back.env[2]);
	assert_string_equal(back.cmd[2], "");
	assert_null(back.cmd[3]);
	assert_null(back.entrypoint);
	assert_string_equal(back.user, "app:wheel");
	assert_string_equal(back.passwd, "root:x:0:0::/:\n");
	assert_string_equal(back.group, "");
}

static void refused(const char *bytes, size_t len)
{
	struct record r = { 0 };
	struct err e = { 0 };

	assert_int_equal(record_parse(bytes, len, &r, &e), -1);
	assert_int_equal(e.code, ERR_CORRUPT);
}

#define REFUSED(text) refused(text, sizeof(text))

static void a_damaged_record_is_refused(void **state)
{
#define PLACES "\0id=" ID_A "\0owners=raw\0layer=" ID_A
#define GOOD RECORD_MAGIC PLACES "\0digest=" DIFF_1 "\0config=" DIFF_2 "\0"
	struct record r = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(record_parse(GOOD, sizeof(GOOD) - 1, &r, &e), 0);
	record_done(&r);
	refused("", 0);
	REFUSED("agentkernel image 9\0id=" ID_A "\0owners=raw\0layer=" ID_A);
	refused(GOOD, sizeof(GOOD) - 3); /* cut off */
	REFUSED(RECORD_MAGIC "\0id=" ID_A "\0owners=raw");
	REFUSED(RECORD_MAGIC "\0owners=raw\0layer=" ID_A);
	REFUSED(RECORD_MAGIC "\0id=" ID_A "\0owners=raw\0layer=../../etc");
	REFUSED(RECORD_MAGIC "\0id=" ID_A "\0owners=raw\0layer=ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	REFUSED(RECORD_MAGIC "\0id=" ID_A "\0owners=raw\0layer=" ID_A "\0nonsense=1");
	REFUSED(RECORD_MAGIC "\0id=" ID_A "\0owners=raw\0layer=" ID_A "\0size=many");
	REFUSED(RECORD_MAGIC "\0id=" ID_A "\0owners=raw\0layer=" ID_A "\0noequals");
	REFUSED(RECORD_MAGIC PLACES);
	REFUSED(RECORD_MAGIC PLACES "\0digest=" DIFF_1);
	REFUSED(RECORD_MAGIC PLACES "\0digest=" DIFF_1 "\0config=");
	REFUSED(RECORD_MAGIC PLACES "\0digest=sha256:../../../../x\0config=" DIFF_2);
}

/* A layer's name depends on the layers below it, and on nothing above. */
static void layers_are_named_by_all_below_them(void **state)
{
	const char one[2][REFERENCE_DIGEST_MAX_BYTES] = { DIFF_1, DIFF_2 };
	const char other[2][REFERENCE_DIGEST_MAX_BYTES] = { DIFF_2, DIFF_2 };
	char a[2][RECORD_ID_BYTES + 1], b[2][RECORD_ID_BYTES + 1], c[2][RECORD_ID_BYTES + 1];
	struct manifest *m = calloc(1, sizeof(*m));

	(void)state;
	m->layer_count = 2;
	strcpy(m->layers[0].digest, DIFF_2);
	strcpy(m->layers[1].digest, DIFF_2);
	store_name_layers(m, one, a);
	store_name_layers(m, other, b);
	assert_string_not_equal(a[0], b[0]);
	assert_string_not_equal(a[1], b[1]);
	m->layer_count = 1;
	store_name_layers(m, one, c);
	assert_string_equal(a[0], c[0]);
	/*
	 * the same content from another blob is another layer, because a worker's result is not
	 * trusted
	 */
	strcpy(m->layers[0].digest, DIFF_1);
	store_name_layers(m, one, c);
	assert_string_not_equal(a[0], c[0]);
	free(m);
	for (int i = 0; i < 2; i++)
		assert_int_equal(strspn(a[i], "abcdefghijklmnopqrstuvwxyz234567"), RECORD_ID_BYTES);
}

static void a_line_fits_its_terminal(void **state)
{
	const struct progress_line line = { .name = "0123456789ab",
					    .state = PROGRESS_MOVING,
					    .done_bytes = 50ull << 20,
					    .total_bytes = 100ull << 20,
					    .began_us = 1000000 };

	(void)state;
	for (unsigned columns = 70; columns < 130; columns += 10) {
		cleanup_buf struct buf out;

		buf_init(&out, BUF_TEXT_MAX_BYTES);
		progress_format_line(&line, columns, 3000000, &out);
		assert_true(out.len < columns + 1);
		assert_non_null(strstr(buf_text(&out), "50 MiB/100 MiB"));
		assert_non_null(strstr(buf_text(&out), "25 MiB/s"));
		assert_non_null(strstr(buf_text(&out), "downloading"));
		assert_true(columns < 80 || strstr(buf_text(&out), "=>"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(a_damaged_record_is_refused),
		cmocka_unit_test(layers_are_named_by_all_below_them),
		cmocka_unit_test(a_line_fits_its_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
