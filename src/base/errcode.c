/* errcode - what a kind of failure is called, and what status each face gives it; see errcode.h. */
#include "base/errcode.h"

#include "base/cleanup.h"

#include <assert.h>
#include <string.h>
#include <sys/wait.h>

static const struct {
	const char *word;
	int exit_status, http_status;
} rows[] = {
	[ERR_NONE] = { "none", 0, 200 },
	[ERR_INVALID] = { "invalid", ERRCODE_EXIT_FAILED, 400 },
	[ERR_NOT_FOUND] = { "not_found", ERRCODE_EXIT_FAILED, 404 },
	[ERR_EXISTS] = { "exists", ERRCODE_EXIT_FAILED, 409 },
	[ERR_BUSY] = { "busy", ERRCODE_EXIT_FAILED, 409 },
	[ERR_DENIED] = { "denied", ERRCODE_EXIT_FAILED, 403 },
	[ERR_LIMIT] = { "limit", ERRCODE_EXIT_FAILED, 429 },
	[ERR_TIMEOUT] = { "timeout", ERRCODE_EXIT_FAILED, 504 },
	[ERR_UNSUPPORTED] = { "unsupported", ERRCODE_EXIT_FAILED, 422 },
	[ERR_REMOTE] = { "remote", ERRCODE_EXIT_FAILED, 502 },
	[ERR_CORRUPT] = { "corrupt", ERRCODE_EXIT_FAILED, 500 },
	[ERR_SYSTEM] = { "system", ERRCODE_EXIT_FAILED, 500 },
	[ERR_COMMAND_NOT_FOUND] = { "command_not_found", ERRCODE_EXIT_NOT_FOUND, 500 },
	[ERR_COMMAND_NOT_EXECUTABLE] = { "command_not_executable", ERRCODE_EXIT_NOT_EXECUTABLE,
					 500 },
};
static_assert(COUNT_OF(rows) == ERR_CODE_COUNT, "a kind of failure has no row");

const char *errcode_word(enum err_code code)
{
	return rows[code].word;
}

enum err_code errcode_find(const char *word)
{
	for (size_t i = 0; word && i < COUNT_OF(rows); i++)
		if (strcmp(rows[i].word, word) == 0)
			return (enum err_code)i;
	return ERR_SYSTEM;
}

int errcode_exit_status(enum err_code code)
{
	return rows[code].exit_status;
}

int errcode_http_status(enum err_code code)
{
	return rows[code].http_status;
}

int errcode_exit_of_wait(int wait_status)
{
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
				      : ERRCODE_EXIT_SIGNALLED + WTERMSIG(wait_status);
}
