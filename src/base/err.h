#pragma once
/*
 * err - one way to fail: a code for programs, words for people.
 *
 * A function that can fail for more than one reason takes `struct err *e` last and returns -1.
 * Success leaves *e alone; failure fills it whole. Each level puts what it knows in front with
 * err_wrap(). Only the faces (cli, mcp, http) turn a code into a status, and only they print.
 *
 * The struct has no pointers, so a child process can send it home through a pipe as it is.
 */
#include <stddef.h>

enum err_code {
	ERR_NONE,
	ERR_INVALID,     /* the request is wrong; sending it again cannot help */
	ERR_NOT_FOUND,   /* the named sandbox, image or file is not there */
	ERR_EXISTS,      /* the name is taken */
	ERR_BUSY,        /* right request, wrong moment */
	ERR_DENIED,      /* a policy or a permission says no */
	ERR_LIMIT,       /* one of our own named limits was reached */
	ERR_TIMEOUT,     /* it took longer than it may */
	ERR_UNSUPPORTED, /* this host or this build cannot do it */
	ERR_REMOTE,      /* a registry, guest or upstream broke its protocol */
	ERR_CORRUPT,     /* what we read back is not what we wrote */
	ERR_SYSTEM,      /* a system call failed, see .sys */

	/* The command that was asked for; these two have exit statuses of their own. */
	ERR_COMMAND_NOT_FOUND,
	ERR_COMMAND_NOT_EXECUTABLE,

	ERR_CODE_COUNT
};

#define ERR_MESSAGE_MAX_BYTES 512

struct err {
	enum err_code code;
	int sys;                         /* errno of the call that failed, 0 if none did */
	char msg[ERR_MESSAGE_MAX_BYTES]; /* cut with "..." when longer */
};

#define ERR_CHECKED __attribute__((warn_unused_result))

/* All three return -1, so that `return err_set(...)` reads as the failure it is. */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_sys(struct err *e, int sys, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Makes a struct that came from another process safe to read: known code, terminated text that a
 * terminal only shows (base/shown). */
void err_sanitize(struct err *e);
