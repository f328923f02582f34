/*
 * test_tomlsuite - every document of the published TOML test suite that applies to TOML 1.0.
 *
 * The suite is not part of this repository: AGENTKERNEL_TOML_TEST names its folder, or it is in
 * ../shared/toml-test, relative to the repository's top. A valid document has its meaning beside
 * it, in JSON where each value is { "type": ..., "value": ... }; an invalid one must be refused.
 */
#include "unit.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/toml.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST "files-toml-1.0.0"
#define FILE_MAX_BYTES (4u << 20)
#define VALID_MIN 200 /* with fewer the list is incomplete */
#define INVALID_MIN 400

static const char *const tags[TOML_TYPE_COUNT] = {
	[TOML_STRING] = "string",
	[TOML_INTEGER] = "integer",
	[TOML_FLOAT] = "float",
	[TOML_BOOL] = "bool",
	[TOML_OFFSET_DATE_TIME] = "datetime",
	[TOML_LOCAL_DATE_TIME] = "datetime-local",
	[TOML_LOCAL_DATE] = "date-local",
	[TOML_LOCAL_TIME] = "time-local",
};

/* ---- values in the suite's format ---- */

/*
 * jansson has no keys with a NUL, but the suite does. A character that the suite does not use
 * replaces it on both sides: as an escape in the JSON text, as its bytes in ours.
 */
#define STAND_IN_ESCAPE "\\ue000"
#define STAND_IN "\xee\x80\x80"

static void replace_escaped_nuls(char *json)
{
	for (char *p = json; (p = strchr(p, '\\')); p += 2)
		if (strncmp(p, "\\u0000", 6) == 0)
			memcpy(p, STAND_IN_ESCAPE, 6);
}

static char *replace_nuls(const char *bytes, size_t len)
{
	char *text = mem_alloc(3 * len + 1);
	size_t used = 0;

	for (size_t i = 0; i < len; i++) {
		if (bytes[i])
			text[used++] = bytes[i];
		else
			used += strlen(strcpy(text + used, STAND_IN));
	}
	return text;
}

static bool is_same_text(const struct toml_value *v, const char *expected)
{
	size_t len = 0;
	const char *bytes = toml_string(v, &len);
	cleanup_free char *text = replace_nuls(bytes, len);

	return strcmp(text, expected) == 0;
}

/* "00:00:00.500" -> "00:00:00.5": removes trailing zeros on both sides. */
static char *without_zeros(const char *text)
{
	const char *point = strchr(text, '.');
	size_t digits = point ? strspn(point + 1, "0123456789") : 0;
	const char *rest = point ? point + 1 + digits : "";

	while (digits > 0 && point[digits] == '0')
		digits--;
	if (!point)
		return mem_dup(text);
	return mem_format("%.*s%s", (int)(point - text + (digits ? (long)digits + 1 : 0)), text,
			  rest);
}

static char *format_time(const struct toml_value *v)
{
	const struct toml_time *t = toml_time(v);
	enum toml_type type = toml_type(v);
	char date[16] = "", time[48] = "", offset[16] = "";
	int minutes = abs(t->offset_minutes);

	if (type != TOML_LOCAL_TIME)
		(void)snprintf(date, sizeof(date), "%04d-%02d-%02d", t->year, t->month, t->day);
	if (type != TOML_LOCAL_DATE)
		(void)snprintf(time, sizeof(time), "%s%02d:%02d:%02d.%09d", date[0] ? "T" : "",
			       t->hour, t->minute, t->second, t->nanosecond);
	if (type == TOML_OFFSET_DATE_TIME && minutes == 0)
		(void)snprintf(offset, sizeof(offset), "Z");
	else if (type == TOML_OFFSET_DATE_TIME)
		(void)snprintf(offset, sizeof(offset), "%c%02d:%02d",
			       t->offset_minutes < 0 ? '-' : '+', minutes / 60, minutes % 60);
	return mem_format("%s%s%s", date, time, offset);
}

static bool is_same_time(const struct toml_value *v, const char *expected)
{
	cleanup_free char *got = format_time(v);
	cleanup_free char *a = without_zeros(got);
	cleanup_free char *b = without_zeros(expected);

	return strcmp(a, b) == 0;
}

static bool is_same_float(double value, const char *expected)
{
	double number = strtod(expected, NULL);

	return isnan(value) ? isnan(number) : value == number;
}

static bool is_same_scalar(const struct toml_value *v, const char *text)
{
	switch (toml_type(v)) {
	case TOML_STRING:
		return is_same_text(v, text);
	case TOML_INTEGER:
		return toml_integer(v) == strtoll(text, NULL, 10);
	case TOML_FLOAT:
		return is_same_float(toml_float(v), text);
	case TOML_BOOL:
		return strcmp(text, toml_bool(v) ? "true" : "false") == 0;
	default:
		return is_same_time(v, text);
	}
}

/* ---- trees ---- */

static bool is_same(const struct toml_value *v, const json_t *expected);

static bool is_same_table(const struct toml_value *v, const json_t *expected)
{
	size_t count = 0;
	const struct toml_entry *entries = toml_entries(v, &count);

	if (count != json_object_size(expected))
		return false;
	for (size_t i = 0; i < count; i++) {
		cleanup_free char *key = replace_nuls(entries[i].key, entries[i].key_len);
		const json_t *other = json_object_get(expected, key);

		if (!other || !is_same(entries[i].value, other))
			return false;
	}
	return true;
}

static bool is_same_array(const struct toml_value *v, const json_t *expected)
{
	if (!json_is_array(expected) || json_array_size(expected) != toml_count(v))
		return false;
	for (size_t i = 0; i < toml_count(v); i++)
		if (!is_same(toml_item(v, i), json_array_get(expected, i)))
			return false;
	return true;
}

static bool is_same(const struct toml_value *v, const json_t *expected)
{
	const char *tag = json_string_value(json_object_get(expected, "type"));
	const char *value = json_string_value(json_object_get(expected, "value"));

	if (toml_type(v) == TOML_ARRAY)
		return is_same_array(v, expected);
	if (toml_type(v) == TOML_TABLE)
		return json_is_object(expected) && is_same_table(v, expected);
	return tag && value && strcmp(tag, tags[toml_type(v)]) == 0 && is_same_scalar(v, value);
}

/* ---- documents ---- */

struct suite {
	int dir_fd;
	unsigned valid, invalid, failed;
};

static char *load(const struct suite *suite, const char *path, size_t *ret_len)
{
	char *text = NULL;

	if (file_read_at(suite->dir_fd, path, FILE_MAX_BYTES, &text, ret_len) < 0)
		fail_msg("'%s' of the suite cannot be read", path);
	return text;
}

static bool means_the_same(const struct suite *suite, const struct toml *t, const char *path)
{
	cleanup_free char *name = mem_format("%.*sjson", (int)(strlen(path) - 4), path);
	cleanup_free char *text = NULL;
	json_t *expected;
	size_t len = 0;
	bool result;

	text = load(suite, name, &len);
	replace_escaped_nuls(text);
	expected = json_loads(text, 0, NULL);
	assert_non_null(expected);
	result = is_same(toml_root(t), expected);
	json_decref(expected);
	return result;
}

static void run_valid(struct suite *suite, const char *path)
{
	CLEANUP(toml_freep) struct toml *t = NULL;
	cleanup_free char *text = NULL;
	struct err e = { 0 };
	size_t len = 0;

	suite->valid++;
	text = load(suite, path, &len);
	if (toml_parse(text, len, path, &t, &e) < 0)
		print_message("refused: %s\n", e.msg);
	else if (!means_the_same(suite, t, path))
		print_message("misread: %s\n", path);
	else
		return;
	suite->failed++;
}

static void run_invalid(struct suite *suite, const char *path)
{
	CLEANUP(toml_freep) struct toml *t = NULL;
	cleanup_free char *text = NULL;
	struct err e = { 0 };
	size_t len = 0;

	suite->invalid++;
	text = load(suite, path, &len);
	if (toml_parse(text, len, path, &t, &e) < 0) {
		if (getenv("AGENTKERNEL_TOML_TEST_VERBOSE"))
			print_message("%s\n", e.msg);
		if (e.code == ERR_INVALID && strncmp(e.msg, path, strlen(path)) == 0)
			return;
	}
	print_message("taken: %s\n", path);
	suite->failed++;
}

static int open_suite(void)
{
	const char *path = getenv("AGENTKERNEL_TOML_TEST");

	return open(path ? path : "../shared/toml-test", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void documents_of_the_published_suite_are_read_or_refused_as_it_says(void **state)
{
	cleanup_fd int dir_fd = open_suite();
	struct suite suite = { .dir_fd = dir_fd };
	cleanup_free char *list = NULL;
	size_t len = 0;

	(void)state;
	if (dir_fd < 0) {
		print_message("no TOML test suite in $AGENTKERNEL_TOML_TEST or "
			      "../shared/toml-test\n");
		skip();
	}
	list = load(&suite, LIST, &len);
	for (char *save = NULL, *path = strtok_r(list, "\n", &save); path;
	     path = strtok_r(NULL, "\n", &save)) {
		size_t path_len = strlen(path);

		if (path_len < 5 || strcmp(path + path_len - 5, ".toml") != 0)
			continue;
		if (strncmp(path, "valid/", 6) == 0)
			run_valid(&suite, path);
		else
			run_invalid(&suite, path);
	}
	print_message("TOML suite: %u valid, %u invalid, %u failed\n", suite.valid, suite.invalid,
		      suite.failed);
	assert_int_equal(suite.failed, 0);
	assert_true(suite.valid >= VALID_MIN && suite.invalid >= INVALID_MIN);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_of_the_published_suite_are_read_or_refused_as_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
