#pragma once
/*
 * err - error codes for programs, messages for people.
 *
 * A function that can fail for more than one reason takes `struct err *e` as last parameter and
 * returns -1. On success *e is unchanged; on failure all of it is set. Each caller prepends its
 * context with err_wrap(). Only the interfaces (cli, mcp, http) map a code to a status and print.
 *
 * The struct has no pointers, so a child process can send it through a pipe.
 */
#include <stddef.h>

enum err_code {
	ERR_NONE,
	ERR_INVALID,     /* the request is wrong; sending it again cannot help */
	ERR_NOT_FOUND,   /* the named sandbox, image or file does not exist */
	ERR_EXISTS,      /* the name is in use */
	ERR_BUSY,        /* not possible in the current state */
	ERR_DENIED,      /* refused by a policy or a permission */
	ERR_LIMIT,       /* one of our own named limits was reached */
	ERR_TIMEOUT,     /* a deadline passed */
	ERR_UNSUPPORTED, /* this host or this build cannot do it */
	ERR_REMOTE,      /* a registry, guest or upstream violated its protocol */
	ERR_CORRUPT,     /* stored data is not as we wrote it */
	ERR_SYSTEM,      /* a system call failed, see .sys */

	/* About the requested command; these two have their own exit statuses. */
	ERR_COMMAND_NOT_FOUND,
	ERR_COMMAND_NOT_EXECUTABLE,

	ERR_CODE_COUNT
};

#define ERR_MESSAGE_MAX_BYTES 512

struct err {
	enum err_code code;
	int sys;                         /* errno of the failed call, 0 if none */
	char msg[ERR_MESSAGE_MAX_BYTES]; /* truncated with "..." if longer */
};

#define ERR_CHECKED __attribute__((warn_unused_result))

/* All three return -1, for `return err_set(...)`. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_sys(struct err *e, int sys, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes a struct from another process safe: known code, terminated text, no control characters. */
void err_sanitize(struct err *e);
