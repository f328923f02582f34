/* test_ratelimit - exactly so many calls in any window. */
#include "unit.h"

#include "base/mem.h"
#include "policy/ratelimit.h"

#include <stdio.h>
#include <stdlib.h>

/* 0: accepted; else the time to wait. */
static uint64_t take(struct ratelimit *r, const char *caller, const char *tool, uint64_t now_ms)
{
	uint64_t wait_ms = 0;
	struct err e = { 0 };

	if (ratelimit_take(r, caller, tool, now_ms, &wait_ms, &e) == 0) {
		assert_int_equal(wait_ms, 0);
		return 0;
	}
	assert_int_equal(e.code, ERR_LIMIT);
	assert_true(wait_ms > 0);
	return wait_ms;
}

static void so_many_calls_and_no_more(void **state)
{
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(3, 60000);
	uint64_t wait_ms = 0;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(take(r, "a", "run", 1000), 0);
	assert_int_equal(take(r, "a", "run", 1001), 0);
	assert_int_equal(take(r, "a", "run", 1002), 0);
	assert_int_equal(ratelimit_take(r, "a", "run", 1003, &wait_ms, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_string_equal(e.msg, "'run' was called 3 times in 60 s, which is the limit ([tools] "
				   "rate_limit); try again in 59997 ms");
	assert_int_equal(wait_ms, 59997);
}

static void the_window_slides(void **state)
{
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(2, 1000);

	(void)state;
	assert_int_equal(take(r, "a", "run", 0), 0);
	assert_int_equal(take(r, "a", "run", 900), 0);
	assert_int_equal(take(r, "a", "run", 999), 1);
	assert_int_equal(take(r, "a", "run", 1000), 0); /* the first has left the window */
	assert_int_equal(take(r, "a", "run", 1001), 899);
	assert_int_equal(take(r, "a", "run", 1899), 1);
	assert_int_equal(take(r, "a", "run", 1900), 0);
	assert_int_equal(take(r, "a", "run", 100000), 0);
	assert_int_equal(take(r, "a", "run", 100000), 0);
	assert_int_equal(take(r, "a", "run", 100000), 1000);
}

static void what_is_refused_does_not_count(void **state)
{
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(1, 1000);

	(void)state;
	assert_int_equal(take(r, "a", "run", 0), 0);
	for (uint64_t now = 1; now < 1000; now++)
		assert_int_equal(take(r, "a", "run", now), 1000 - now);
	assert_int_equal(take(r, "a", "run", 1000), 0);
}

static void each_caller_and_tool_has_its_own(void **state)
{
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(1, 1000);

	(void)state;
	assert_int_equal(take(r, "a", "run", 0), 0);
	assert_int_equal(take(r, "b", "run", 0), 0);
	assert_int_equal(take(r, "a", "exec", 0), 0);
	assert_int_equal(take(r, "ar", "un", 0), 0);
	assert_int_equal(take(r, "", "", 0), 0);
	assert_int_equal(take(r, "a", "run", 1), 999);
	assert_int_equal(take(r, "b", "run", 1), 999);
	assert_int_equal(take(r, "a", "exec", 1), 999);
}

/* A simple count of all calls in the last window gives the same result, whatever the times. */
static void it_agrees_with_counting(void **state)
{
	enum { CALLS = 5, WINDOW = 100, ROUNDS = 20000 };
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(CALLS, WINDOW);
	uint64_t *taken = mem_alloc(ROUNDS * sizeof(*taken));
	size_t count = 0;
	uint64_t now = 0;

	(void)state;
	srand(7);
	for (size_t i = 0; i < ROUNDS; i++) {
		size_t inside = 0;
		uint64_t wait;

		now += (uint64_t)(rand() % 40);
		for (size_t k = count; k > 0 && taken[k - 1] + WINDOW > now; k--)
			inside++;
		wait = take(r, "a", "run", now);
		assert_int_equal(wait == 0, inside < CALLS);
		if (wait)
			assert_int_equal(wait, taken[count - CALLS] + WINDOW - now);
		else
			taken[count++] = now;
	}
	free(taken);
}

/* The least recently active caller is forgotten; the others are still counted. */
static void many_callers_are_bounded(void **state)
{
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(1, 1000000);
	char caller[16];

	(void)state;
	for (unsigned i = 0; i < RATELIMIT_PAIRS_MAX; i++) {
		(void)snprintf(caller, sizeof(caller), "%u", i);
		assert_int_equal(take(r, caller, "run", 1000 + i), 0);
	}
	assert_int_equal(take(r, "one more", "run", 9000), 0);
	assert_true(take(r, "1", "run", 9001) > 0);     /* still known */
	assert_int_equal(take(r, "0", "run", 9002), 0); /* was the oldest, and replaces "1" */
	assert_true(take(r, "one more", "run", 9003) > 0);
	assert_int_equal(take(r, "1", "run", 9004), 0);
}

/* Callers with a single call must not use the memory for a limit of many calls. */
static void memory_is_for_calls_that_were_made(void **state)
{
	CLEANUP(ratelimit_freep) struct ratelimit *r = ratelimit_new(1ull << 40, 1000);

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(take(r, "a", "run", i), 0);
}

static void nothing_to_free_is_fine(void **state)
{
	(void)state;
	ratelimit_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(so_many_calls_and_no_more),
		cmocka_unit_test(the_window_slides),
		cmocka_unit_test(what_is_refused_does_not_count),
		cmocka_unit_test(each_caller_and_tool_has_its_own),
		cmocka_unit_test(it_agrees_with_counting),
		cmocka_unit_test(many_callers_are_bounded),
		cmocka_unit_test(memory_is_for_calls_that_were_made),
		cmocka_unit_test(nothing_to_free_is_fine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
