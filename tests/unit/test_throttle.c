/* test_throttle - a bucket fills at its rate up to its burst, exactly. */
#include "unit.h"

#include "net/throttle.h"

static void without_a_rate_there_is_no_limit(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 0, 0, 5);
	throttle_spend(&t, UINT64_MAX / 2);
	assert_true(throttle_available(&t, 5) == UINT64_MAX);
}

static void a_bucket_starts_full(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 10, 25, 1000);
	assert_int_equal(throttle_available(&t, 1000), 25);
}

static void what_is_spent_is_gone_until_it_has_filled(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 10, 25, 0);
	throttle_spend(&t, 20);
	assert_int_equal(throttle_available(&t, 0), 5);
	throttle_spend(&t, 5);
	assert_int_equal(throttle_available(&t, 0), 0);
	assert_int_equal(throttle_available(&t, 99), 0);
	assert_int_equal(throttle_available(&t, 100), 1);
	assert_int_equal(throttle_available(&t, 1000), 10);
}

static void spending_too_much_leaves_nothing_and_no_debt(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 10, 25, 0);
	throttle_spend(&t, 1000);
	assert_int_equal(throttle_available(&t, 0), 0);
	assert_int_equal(throttle_available(&t, 1000), 10);
}

static void a_slow_rate_fills_however_often_one_looks(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 1, 2, 0);
	throttle_spend(&t, 2);
	for (uint64_t now_ms = 1; now_ms < 1000; now_ms++)
		assert_int_equal(throttle_available(&t, now_ms), 0);
	assert_int_equal(throttle_available(&t, 1000), 1);
}

static void a_bucket_never_holds_more_than_its_burst(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 1000, 3, 0);
	assert_int_equal(throttle_available(&t, 500), 3);
	assert_int_equal(throttle_available(&t, UINT64_MAX), 3);
}

static void a_bucket_of_many_seconds_fills_at_its_rate_too(void **state)
{
	struct throttle t;

	(void)state;
	throttle_init(&t, 10, 100, 0);
	throttle_spend(&t, 100);
	assert_int_equal(throttle_available(&t, 1500), 15);
	assert_int_equal(throttle_available(&t, 4000), 40);
	assert_int_equal(throttle_available(&t, 10000), 100);
}

static void large_rates_do_not_overflow(void **state)
{
	const uint64_t rate = 100ull << 30; /* 100 GiB a second */
	struct throttle t;

	(void)state;
	throttle_init(&t, rate, rate, 0);
	throttle_spend(&t, rate);
	assert_true(throttle_available(&t, 500) == rate / 2);
	assert_true(throttle_available(&t, 1ull << 62) == rate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_rate_there_is_no_limit),
		cmocka_unit_test(a_bucket_starts_full),
		cmocka_unit_test(what_is_spent_is_gone_until_it_has_filled),
		cmocka_unit_test(spending_too_much_leaves_nothing_and_no_debt),
		cmocka_unit_test(a_slow_rate_fills_however_often_one_looks),
		cmocka_unit_test(a_bucket_never_holds_more_than_its_burst),
		cmocka_unit_test(a_bucket_of_many_seconds_fills_at_its_rate_too),
		cmocka_unit_test(large_rates_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
