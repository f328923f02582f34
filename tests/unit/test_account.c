/* Users and groups from an image's own files, and an ordinary user's ranges of ids. */
#include "policy/account.h"
#include "host/subid.h"
#include "unit.h"

#include <string.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "broken line\n"
			     "short:x:1\n"
			     "huge:x:4000000000:1:::\n"
			     "app:x:1234:99:An app:/srv/app:/bin/sh\n"
			     "relative:x:5:5::home:/bin/sh\n"
			     "last:x:7:8::/last:/bin/sh";
static const char group[] = "root:x:0:\n"
			    "wheel:x:10:root,app\n"
			    "other:x:11:apple,xapp\n"
			    "app:x:99:app\n"
			    "video:x:44:app";

static struct account find(const char *text)
{
	struct account a = { 0 };
	struct err e = { 0 };

	assert_int_equal(account_find(passwd, group, text, &a, &e), 0);
	return a;
}

static void refused(const char *text, const char *words)
{
	struct account a = { 0 };
	struct err e = { 0 };

	assert_int_equal(account_find(passwd, group, text, &a, &e), -1);
	assert_non_null(strstr(e.msg, words));
}

static void a_name_brings_ids_home_and_memberships(void **state)
{
	struct account a = find("app");

	(void)state;
	assert_int_equal(a.uid, 1234);
	assert_int_equal(a.gid, 99);
	assert_string_equal(a.name, "app");
	assert_string_equal(a.home, "/srv/app");
	assert_int_equal(a.group_count, 2);
	assert_int_equal(a.groups[0], 10);
	assert_int_equal(a.groups[1], 44);
	assert_int_equal(find("last").uid, 7);
}

static void a_named_group_replaces_all_others(void **state)
{
	struct account a = find("app:wheel");

	(void)state;
	assert_int_equal(a.uid, 1234);
	assert_int_equal(a.gid, 10);
	assert_int_equal(a.group_count, 0);
	assert_int_equal(find("app:7").gid, 7);
}

static void a_number_needs_no_line(void **state)
{
	struct account a = find("4321");

	(void)state;
	assert_int_equal(a.uid, 4321);
	assert_int_equal(a.gid, 0);
	assert_string_equal(a.home, "/");
	assert_string_equal(a.name, "");
	assert_string_equal(find("1234").name, "app");
	assert_int_equal(find("1234").gid, 99);
	assert_int_equal(find("4321:5").gid, 5);
}

static void what_is_not_there_is_refused_by_name(void **state)
{
	(void)state;
	refused("nobody", "no user 'nobody' inside");
	refused("app:nogroup", "no group 'nogroup' inside");
	refused("huge", "no user 'huge'");
	refused("short", "no user 'short'");
	refused("70000", "");
	refused("app:", "no group ''");
	refused("", "no user ''");
}

static void a_home_that_is_no_path_is_the_root(void **state)
{
	(void)state;
	assert_string_equal(find("relative").home, "/");
}

static void a_range_is_found_by_name_or_number(void **state)
{
	static const char text[] =
		"ann:100000:65536\n1001:300000:65536\nbob:7:5\nbob:200000:70000\n"
		"eve:0:65536\nmax:4294967290:65536\nbad:x:y\nann2:1:2";
	struct subid_range r = { 0 };

	(void)state;
	assert_true(subid_parse(text, "ann", 1, &r));
	assert_int_equal(r.first, 100000);
	assert_int_equal(r.count, 65536);
	assert_true(subid_parse(text, "nobody", 1001, &r));
	assert_int_equal(r.first, 300000);
	assert_true(subid_parse(text, NULL, 1001, &r));
	/* a range that is too small is skipped */
	assert_true(subid_parse(text, "bob", 1, &r));
	assert_int_equal(r.first, 200000);
	/* never the host's root, never beyond the last id */
	assert_false(subid_parse(text, "eve", 1, &r));
	assert_false(subid_parse(text, "max", 1, &r));
	assert_false(subid_parse(text, "bad", 1, &r));
	assert_false(subid_parse(text, "an", 1, &r));
	assert_false(subid_parse("", "ann", 1, &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_brings_ids_home_and_memberships),
		cmocka_unit_test(a_named_group_replaces_all_others),
		cmocka_unit_test(a_number_needs_no_line),
		cmocka_unit_test(what_is_not_there_is_refused_by_name),
		cmocka_unit_test(a_home_that_is_no_path_is_the_root),
		cmocka_unit_test(a_range_is_found_by_name_or_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
