/*
 * test_ownaddress - which addresses the kernel reports as this machine's own; see also NW07 in
 * tests/net/attacks.bats.
 */
#include "net/ownaddress.h"
#include "unit.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <unistd.h>

static struct address parsed(const char *text)
{
	struct address a;

	assert_true(address_parse(text, &a));
	return a;
}

static void loopback_is_ours(void **state)
{
	struct address v4 = parsed("127.9.9.9"), v6 = parsed("::1");
	cleanup_fd int fd = -1;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(ownaddress_open(&fd, &e), 0);
	for (int i = 0; i < 1000; i++) /* answers do not accumulate */
		assert_int_equal(ownaddress_ask(fd, &v4, 80), EGRESS_OURS);
	assert_int_not_equal(ownaddress_ask(fd, &v6, 80), EGRESS_NOT_OURS);
}

static void without_an_answer_the_owner_is_unknown(void **state)
{
	struct address a = parsed("8.8.8.8");
	cleanup_fd int silent_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_true(silent_fd >= 0);
	assert_int_equal(ownaddress_ask(-1, &a, 80), EGRESS_OWNER_UNKNOWN);
	assert_int_equal(ownaddress_ask(silent_fd, &a, 80), EGRESS_OWNER_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loopback_is_ours),
		cmocka_unit_test(without_an_answer_the_owner_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
