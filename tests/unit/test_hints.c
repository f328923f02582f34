/* test_hints - messages for people, reworded for callers of operations; and ranges of an output. */
#include "unit.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/tail.h"
#include "rpc/hints.h"

#include <string.h>

static void check(const char *said, const char *expected)
{
	cleanup_buf struct buf out;

	buf_init(&out, BUF_TEXT_MAX_BYTES);
	hints_translate_text(said, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void commands_become_operations(void **state)
{
	(void)state;
	check("sandbox 'box' is not running (agentkernel start box)",
	      "sandbox 'box' is not running (sandbox_start)");
	check("no sandbox named 'x' (see agentkernel list --all)",
	      "no sandbox named 'x' (see sandbox_list)");
	check("there is a sandbox 'x' already ('agentkernel remove x' removes it)",
	      "there is a sandbox 'x' already (sandbox_remove removes it)");
	check("it hangs ('agentkernel stop -f x' ends it)",
	      "it hangs (sandbox_stop with force ends it)");
	check("sandbox 'x' is paused ('agentkernel resume x')",
	      "sandbox 'x' is paused (sandbox_resume)");
	check("no checkpoint 'a' ('agentkernel checkpoint list' shows them)",
	      "no checkpoint 'a' (checkpoint_list shows them)");
	check("run the image itself: agentkernel run -i IMAGE COMMAND",
	      "run the image itself: sandbox_run with image");
}

static void options_become_parameters(void **state)
{
	(void)state;
	check("its limit is 64 MiB (raise it with --memory)",
	      "its limit is 64 MiB (raise it with memory)");
	check("ended after 1 s (--timeout)", "ended after 1 s (timeout_ms)");
	check("--workdir: 'x' is not an absolute path", "cwd: 'x' is not an absolute path");
	check("--user: no user 'x'", "user: no user 'x'");
	check("(--no-network runs without)", "(network false runs without)");
	check("(--image host does so at once)", "(image 'host' does so at once)");
}

static void what_is_the_users_is_said_to_be(void **state)
{
	(void)state;
	check("--allow-host example.org:443",
	      "'example.org:443' in [network] allow of the user's agentkernel.toml");
	check("(raise it with --pids)",
	      "(raise it with [resources] pids of the user's agentkernel.toml)");
	check("('agentkernel doctor' shows what to change)",
	      "(the user's command 'agentkernel doctor' shows what to change)");
	check("(agentkernel config trust allows this file; agentkernel config check lists all)",
	      "(the user's command agentkernel config trust allows this file; the user's command "
	      "agentkernel config check lists all)");
	check("not visible inside (add --workspace, or -W in short)",
	      "not visible inside (add files to the call, or the user's option --workspace)");
	check("only what --mount and --workspace show",
	      "only what the user's option --mount and the "
	      "user's option --workspace show");
}

static void other_words_stay(void **state)
{
	static const char *const texts[] = {
		"",
		"no command '--memory' inside",
		"no command 'agentkernel-x' inside",
		"add --no-sandbox, the walls around it stay",
		"--memoryless --",
		"it was written by a later version of agentkernel (9)",
		"'",
		"a",
		"--",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		check(texts[i], texts[i]);
}

static void a_result_is_translated_where_it_speaks(void **state)
{
	json_t *r =
		json_loads("{\"stdout\": \"--memory\", \"notes\": \"--memory\", \"denied\": "
			   "[{\"fix\": \"--allow-host a\", \"host\": \"--memory\"}], \"error\": "
			   "{\"message\": \"agentkernel start x\"}}",
			   0, NULL);
	cleanup_free char *text = NULL;

	(void)state;
	hints_translate(r);
	text = json_dumps(r, JSON_COMPACT);
	assert_string_equal(text,
			    "{\"stdout\":\"--memory\",\"notes\":\"memory\",\"denied\":[{\"fix\":"
			    "\"'a' in [network] allow of the user's agentkernel.toml\",\"host\":"
			    "\"--memory\"}],\"error\":{\"message\":\"sandbox_start\"}}");
	json_decref(r);
}

static void check_part(struct tail_range r, const char *text, const char *expected)
{
	uint64_t offset = 0, length = 0;
	size_t begin, len, skip;

	tail_find(&r, strlen(text), &offset, &length);
	begin = offset < strlen(text) ? (size_t)offset : strlen(text);
	len = strlen(text) - begin < length ? strlen(text) - begin : (size_t)length;
	skip = tail_skip(&r, text + begin, len);
	assert_int_equal(len - skip, strlen(expected));
	assert_memory_equal(text + begin + skip, expected, len - skip);
}

static void the_part_that_was_asked_for(void **state)
{
	const char *text = "1\n22\n333\n";
	struct err e = { 0 };

	(void)state;
	check_part((struct tail_range){ .length = 100 }, text, text);
	check_part((struct tail_range){ .has_offset = true, .offset = 2, .length = 3 }, text,
		   "22\n");
	check_part((struct tail_range){ .has_offset = true, .offset = 99, .length = 3 }, text, "");
	check_part((struct tail_range){ .length = 100, .bytes = 4 }, text, "333\n");
	check_part((struct tail_range){ .length = 100, .bytes = 4000 }, text, text);
	check_part((struct tail_range){ .length = 100, .lines = 1 }, text, "333\n");
	check_part((struct tail_range){ .length = 100, .lines = 2 }, text, "22\n333\n");
	check_part((struct tail_range){ .length = 100, .lines = 3 }, text, text);
	check_part((struct tail_range){ .length = 100, .lines = 4 }, text, text);
	check_part((struct tail_range){ .length = 6, .lines = 3 }, text, "2\n333\n");
	check_part((struct tail_range){ .length = 100, .lines = 1 }, "a\nb", "b");
	check_part((struct tail_range){ .length = 100, .lines = 1 }, "", "");
	assert_int_equal(tail_check(&(struct tail_range){ .bytes = 1, .lines = 1 }, &e), -1);
	assert_int_equal(tail_check(&(struct tail_range){ .has_offset = true, .lines = 1 }, &e),
			 -1);
	assert_int_equal(tail_check(&(struct tail_range){ .lines = 1 }, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_become_operations),
		cmocka_unit_test(options_become_parameters),
		cmocka_unit_test(what_is_the_users_is_said_to_be),
		cmocka_unit_test(other_words_stay),
		cmocka_unit_test(a_result_is_translated_where_it_speaks),
		cmocka_unit_test(the_part_that_was_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
