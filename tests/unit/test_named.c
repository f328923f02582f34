/* test_named - which sandbox a name means for the calling process. */
#include "unit.h"

#include "base/mem.h"
#include "base/sweep.h"
#include "named/named.h"
#include "named/nameddir.h"
#include "named/nameddisk.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[64];
static char *environment[2];
static struct ak ak;

static void make(const char *name, const char *owner)
{
	const struct policy_caller caller = { .cwd = "/", .environ_list = environment };
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(named_done) struct named n;
	struct err e = { 0 };

	named_init(&n);
	(void)snprintf(n.name, sizeof(n.name), "%s", name);
	n.owner = owner ? mem_dup(owner) : NULL;
	n.image = mem_dup("host");
	if (policy_resolve(NULL, 0, &caller, &policy, &e) < 0 ||
	    nameddir_create(&ak, &n, &policy, &e) < 0)
		fail_msg("%s", e.msg);
}

/* ERR_NONE: it is visible. */
static enum err_code look(const char *name, struct err *e)
{
	CLEANUP(named_done) struct named n;

	named_init(&n);
	return named_open(&ak, name, &n, e) == 0 ? ERR_NONE : e->code;
}

static void take_away(const char *name)
{
	CLEANUP(named_done) struct named n;
	struct err e = { 0 };

	named_init(&n);
	assert_int_equal(named_open_any(&ak, name, &n, &e), 0);
	assert_int_equal(named_lock(&n, &e), 0);
	assert_int_equal(nameddir_trash(&ak, &n, &e), 0);
}

static void what_was_read_before_the_lock_is_read_again(void **state)
{
	char *layers[] = { (char *)"0123", NULL };
	CLEANUP(named_done) struct named stale;
	CLEANUP(named_done) struct named fresh;
	char old[NAMED_ID_BYTES + 1];
	struct err e = { 0 };

	(void)state;
	make("twice", NULL);
	named_init(&stale);
	named_init(&fresh);
	assert_int_equal(named_open(&ak, "twice", &stale, &e), 0);
	assert_int_equal(named_open(&ak, "twice", &fresh, &e), 0);
	assert_int_equal(named_lock(&fresh, &e), 0);
	assert_int_equal(nameddisk_replace(&fresh, layers, old, &e), 0);
	named_unlock(&fresh);

	assert_int_equal(stale.disk_number, 0);
	assert_int_equal(named_lock(&stale, &e), 0);
	assert_int_equal(stale.disk_number, 1);
	assert_string_equal(stale.layers[0], "0123");
	nameddisk_sweep(&stale);
	assert_int_equal(faccessat(stale.dir_fd, "disk.1", F_OK, 0), 0);
	named_unlock(&stale);
	take_away("twice");
}

/* As with `extend` beside `restore`: neither overwrites the other's change. */
static void changes_of_the_record_do_not_undo_each_other(void **state)
{
	char *layers[] = { (char *)"0123", NULL };
	CLEANUP(named_done) struct named extended;
	CLEANUP(named_done) struct named restored;
	char old[NAMED_ID_BYTES + 1];
	struct err e = { 0 };

	(void)state;
	make("both", NULL);
	named_init(&extended);
	named_init(&restored);
	assert_int_equal(named_open(&ak, "both", &extended, &e), 0);
	assert_int_equal(named_open(&ak, "both", &restored, &e), 0);
	assert_int_equal(named_lock(&restored, &e), 0);
	assert_int_equal(named_begin_change(&extended, &e), 0);
	extended.expires_s = 4102444800;
	assert_int_equal(named_save(&extended, &e), 0);
	named_end_change(&extended);
	assert_int_equal(nameddisk_replace(&restored, layers, old, &e), 0);
	assert_int_equal(restored.expires_s, 4102444800);
	assert_int_equal(named_begin_change(&extended, &e), 0);
	assert_int_equal(extended.disk_number, 1);
	named_end_change(&extended);
	named_unlock(&restored);
	take_away("both");
}

static void others_are_not_there_in_the_words_for_what_does_not_exist(void **state)
{
	struct err foreign = { 0 }, missing = { 0 }, e = { 0 };

	(void)state;
	make("users", NULL);
	make("hers", "name:alice");
	make("once", NAMED_CALL_OWNER "1");
	assert_int_equal(look("hers", &e), ERR_NONE); /* the user sees all */
	assert_int_equal(look("once", &e), ERR_NONE);

	named_work_for(&ak, "name:alice", "0123456789abcdef");
	assert_int_equal(look("hers", &e), ERR_NONE);
	assert_int_equal(look("users", &foreign), ERR_NOT_FOUND);
	assert_int_equal(look("using", &missing), ERR_NOT_FOUND);
	memcpy(strstr(foreign.msg, "users"), "using", 5);
	assert_string_equal(foreign.msg, missing.msg);
	assert_int_equal(look("once", &e), ERR_NOT_FOUND);

	named_work_for(&ak, "name:alic", "0123456789abcdef"); /* a prefix is another name */
	assert_int_equal(look("hers", &e), ERR_NOT_FOUND);
	named_work_for(&ak, NULL, "0123456789abcdef"); /* the administrator */
	assert_int_equal(look("hers", &e), ERR_NONE);
	assert_int_equal(look("users", &e), ERR_NONE);
	assert_int_equal(look("once", &e), ERR_NOT_FOUND);
	named_work_for(&ak, NAMED_CALL_OWNER "1", "0123456789abcdef");
	assert_int_equal(look("once", &e), ERR_NONE);
}

static void one_whose_record_is_lost_is_the_administrators(void **state)
{
	cleanup_free char *record = mem_format("%s/state/" NAMED_DIR "/lost/record", directory);
	struct err e = { 0 };

	(void)state;
	make("lost", "name:alice");
	assert_int_equal(truncate(record, 3), 0);
	named_work_for(&ak, "name:alice", "0123456789abcdef");
	assert_int_equal(look("lost", &e), ERR_NOT_FOUND);
	named_work_for(&ak, NULL, "0123456789abcdef");
	assert_int_equal(look("lost", &e), ERR_CORRUPT);
}

static void another_that_takes_the_name_after_the_check_is_not_there(void **state)
{
	CLEANUP(named_done) struct named n;
	struct audit_identity who = { 0 };
	struct err e = { 0 };

	(void)state;
	named_init(&n);
	named_work_for(&ak, "name:alice", "0123456789abcdef");
	make("swapped", "name:alice");
	assert_int_equal(named_open(&ak, "swapped", &n, &e), 0);
	named_pin(&ak, &n);
	assert_int_equal(look("swapped", &e), ERR_NONE);
	named_identify(&ak, "swapped", &who);
	assert_string_equal(who.id, n.id);
	assert_string_equal(who.owner, "name:alice");
	take_away("swapped");
	make("swapped", "name:alice");
	assert_int_equal(look("swapped", &e), ERR_NOT_FOUND);
	named_identify(&ak, "swapped", &who);
	assert_string_equal(who.id, "");
	assert_int_equal(look("hers", &e), ERR_NONE); /* the pin is for one name only */
}

static void a_name_that_is_taken_does_not_say_by_whom(void **state)
{
	const struct policy_caller caller = { .cwd = "/", .environ_list = environment };
	CLEANUP(policy_done) struct policy policy = { 0 };
	CLEANUP(named_done) struct named n;
	struct err e = { 0 };

	(void)state;
	named_init(&n);
	named_work_for(&ak, "name:bob", "0123456789abcdef");
	(void)snprintf(n.name, sizeof(n.name), "hers");
	n.image = mem_dup("host");
	assert_int_equal(policy_resolve(NULL, 0, &caller, &policy, &e), 0);
	assert_int_equal(nameddir_create(&ak, &n, &policy, &e), -1);
	assert_int_equal(e.code, ERR_EXISTS);
	assert_string_equal(e.msg, "the name 'hers' is taken");
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/agentkernel-named.XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	environment[0] = mem_format("AGENTKERNEL_HOME=%s/state", directory);
	ak_open(&ak, environment);
	return 0;
}

static int tear_down(void **state)
{
	struct err e = { 0 };

	(void)state;
	ak_close(&ak);
	free(environment[0]);
	return sweep_tree(AT_FDCWD, directory, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_read_before_the_lock_is_read_again),
		cmocka_unit_test(changes_of_the_record_do_not_undo_each_other),
		cmocka_unit_test(others_are_not_there_in_the_words_for_what_does_not_exist),
		cmocka_unit_test(one_whose_record_is_lost_is_the_administrators),
		cmocka_unit_test(another_that_takes_the_name_after_the_check_is_not_there),
		cmocka_unit_test(a_name_that_is_taken_does_not_say_by_whom),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
