#pragma once
/* errcode - what a kind of failure is called, and what status each face gives it: one table. */
#include "base/err.h"

#define ERRCODE_EXIT_FAILED 125 /* the sandbox could not be built, or the command line is wrong */
#define ERRCODE_EXIT_NOT_EXECUTABLE 126
#define ERRCODE_EXIT_NOT_FOUND 127
#define ERRCODE_EXIT_SIGNALLED 128 /* plus the number of the signal */

/* "not_found": for programs. */
const char *errcode_word(enum err_code code);
enum err_code errcode_find(const char *word); /* ERR_SYSTEM: there is none of that word */
/* What a failure of that kind makes of the program agentkernel. */
int errcode_exit_status(enum err_code code);
int errcode_http_status(enum err_code code);

/* What a shell makes of how a process ended: its own status, or 128 + the number of the signal. */
int errcode_exit_of_wait(int wait_status);
