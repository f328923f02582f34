/* base/pace: the rate holds over several counts, and what was not waited for is made up for. */
#include "unit.h"

#include "base/clock.h"
#include "base/pace.h"

static void without_a_rate_nothing_waits(void **state)
{
	struct pace p = { 0 };
	uint64_t begin_us = clock_now_us();

	(void)state;
	pace_count(&p, UINT64_MAX / 2);
	pace_wait(&p);
	assert_true(clock_now_us() - begin_us < 50000);
}

static void bytes_counted_in_a_hurry_are_waited_for_later(void **state)
{
	struct pace p = { .bytes_per_s = 1000000 };
	uint64_t begin_us = clock_now_us();

	(void)state;
	for (int i = 0; i < 10; i++)
		pace_count(&p, 10000);
	assert_true(clock_now_us() - begin_us < 50000);
	pace_wait(&p);
	assert_true(clock_now_us() - begin_us >= 98000);
	assert_true(clock_now_us() - begin_us < 1000000);
}

static void time_that_was_not_used_is_not_saved(void **state)
{
	struct pace p = { .bytes_per_s = 1000000, .free_at_us = 1 };
	uint64_t begin_us = clock_now_us();

	(void)state;
	pace_count(&p, 60000);
	pace_wait(&p);
	assert_true(clock_now_us() - begin_us >= 58000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_rate_nothing_waits),
		cmocka_unit_test(bytes_counted_in_a_hurry_are_waited_for_later),
		cmocka_unit_test(time_that_was_not_used_is_not_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
