/*
 * libcall - calls libagentkernel for the tests: `libcall OPERATION JSON [CEILING...]` prints the
 * result's JSON, or "refused: WORDS" (exit status 1). `libcall -threads N` runs N commands at once,
 * `libcall -run PARAMETER WORD...` runs one command, `libcall -pipe` feeds a command that reads
 * nothing, `libcall -cancel` cancels one, `libcall -null` has no handle.
 */
#include <agentkernel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 32
#define INPUT_BYTES (8u << 20)

static agentkernel *ak;

static void count(void *context, int stream, const char *bytes, size_t length)
{
	(void)stream;
	(void)bytes;
	*(size_t *)context += length;
}

static int run(const char *const *words, const char *input, size_t input_length, int cancel_fd,
	       size_t *ret_output, struct agentkernel_result *ret)
{
	struct agentkernel_command c = {
		.size = sizeof(c), .words = words, .input = input, .input_length = input_length
	};
	struct agentkernel_events events = { .size = sizeof(events),
					     .output = count,
					     .context = ret_output,
					     .cancel_fd = cancel_fd };
	struct agentkernel_error error;

	*ret = (struct agentkernel_result){ .size = sizeof(*ret) };
	if (agentkernel_run(ak, &c, &events, ret, &error) < 0) {
		printf("%s: %s\n", error.code == AGENTKERNEL_CANCELLED ? "cancelled" : "refused",
		       error.message);
		return -1;
	}
	agentkernel_free(ret->json);
	return 0;
}

/* One command with one parameter, in plain sight. */
static void show(void *context, int stream, const char *bytes, size_t length)
{
	(void)context;
	(void)fwrite(bytes, 1, length, stream == 1 ? stdout : stderr);
}

static int run_with(const char *parameter, const char *const *words)
{
	const char *const parameters[] = { parameter, NULL };
	struct agentkernel_command c = { .size = sizeof(c),
					 .words = words,
					 .parameters = parameters };
	struct agentkernel_events events = { .size = sizeof(events), .output = show };
	struct agentkernel_result result = { .size = sizeof(result) };
	struct agentkernel_error error;

	if (agentkernel_run(ak, &c, &events, &result, &error) < 0) {
		printf("refused: %s\n", error.message);
		return 1;
	}
	agentkernel_free(result.json);
	return 0;
}

static void *run_in_thread(void *context)
{
	const char *words[] = { "sh", "-c", "head -c 100000 /dev/zero; exit 7", NULL };
	struct agentkernel_result result;
	size_t output = 0;

	(void)context;
	if (run(words, NULL, 0, 0, &output, &result) < 0 || output != 100000 ||
	    result.exit_code != 7)
		return (void *)1;
	return NULL;
}

static int run_threads(int wanted)
{
	pthread_t threads[THREADS_MAX];
	void *failed;
	int failures = 0;

	for (int i = 0; i < wanted; i++)
		if (pthread_create(&threads[i], NULL, run_in_thread, NULL) != 0)
			return 1;
	for (int i = 0; i < wanted; i++) {
		(void)pthread_join(threads[i], &failed);
		failures += failed != NULL;
	}
	/* every worker was reaped, and nothing else was */
	printf("%d failed, %s\n", failures,
	       waitpid(-1, NULL, WNOHANG) < 0 ? "no child left" : "children left");
	return failures != 0;
}

static int feed_nobody(void)
{
	const char *words[] = { "true", NULL };
	struct agentkernel_result result;
	char *input = calloc(1, INPUT_BYTES);
	size_t output = 0;

	if (run(words, input, INPUT_BYTES, 0, &output, &result) < 0)
		return 1;
	printf("exit code %d, and this program lives\n", result.exit_code);
	free(input);
	return 0;
}

static int cancel(void)
{
	const char *words[] = { "sleep", "100", NULL };
	struct agentkernel_result result;
	size_t output = 0;
	int ends[2];

	if (pipe(ends) < 0)
		return 1;
	if (fork() == 0) {
		(void)sleep(1);
		_exit(0); /* its copy of the pipe's end closes */
	}
	(void)close(ends[1]);
	return run(words, NULL, 0, ends[0], &output, &result) < 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	bool has_ceiling = argc > 3 && argv[1][0] != '-';
	const struct agentkernel_options options = {
		.size = sizeof(options),
		.ceiling = has_ceiling ? (const char *const *)argv + 3 : NULL
	};
	struct agentkernel_error error;
	char *json = NULL;

	if (argc < 2 || agentkernel_open(&options, &ak, &error) < 0)
		return 2;
	if (strcmp(argv[1], "-threads") == 0)
		return run_threads(atoi(argv[2]));
	if (strcmp(argv[1], "-run") == 0 && argc > 3)
		return run_with(argv[2], (const char *const *)argv + 3);
	if (strcmp(argv[1], "-pipe") == 0)
		return feed_nobody();
	if (strcmp(argv[1], "-cancel") == 0)
		return cancel();
	if (strcmp(argv[1], "-null") == 0) {
		agentkernel_close(ak);
		ak = NULL;
		argv[1] = "sandbox_list";
	}
	if (agentkernel_call(ak, argv[1], argc > 2 ? argv[2] : NULL, NULL, &json, &error) < 0) {
		printf("refused: %s\n", error.message);
		return 1;
	}
	puts(json);
	agentkernel_free(json);
	agentkernel_close(ak);
	return 0;
}
