#pragma once
/* imagehelper - runs agentkernel-image, which works on the image store. */
#include "base/err.h"
#include "engine/helper.h"
#include "image/tool.h"

#include <sys/types.h>

struct ak;

#define IMAGEHELPER_WORDS_MAX (TOOL_REFERENCES_MAX + 8)

struct imagehelper_request {
	const char *operation;
	const char *const *words; /* "key=value", NULL-terminated; may be NULL */
	const struct ak *ak;
	int in_fd, out_fd; /* its stdin and stdout; 0: this process's */
};

/* Runs the helper with this process's streams and waits; returns its failure. */
ERR_CHECKED int imagehelper_run(const struct imagehelper_request *q, struct err *e);

/* ---- transfers ---- */

/* Descriptors are borrowed; -1: none. */
struct imagehelper_transfer {
	const char *operation;    /* image/transfer.h lists them and their words */
	const char *const *words; /* "key=value", NULL-terminated; may be NULL */
	int dir_fd;
	int stdin_fd;
	int stdout_fd;
	int answer_fd; /* for "key=value" lines of the result */
	/* TOOL_PROGRAM, opened before this process took the ids of a sandbox */
	const struct helper *program;
};

struct imagehelper_job {
	pid_t pid;     /* our child; 0: none */
	int report_fd; /* -1: none */
};

/*
 * Starts the helper with this process's ids, and does not wait. The helper ends with the thread
 * that started it. The caller closes its own ends of pipes.
 */
ERR_CHECKED int imagehelper_start(const struct imagehelper_transfer *t, struct imagehelper_job *ret,
				  struct err *e);

/* Waits until it ends; returns its failure. */
ERR_CHECKED int imagehelper_wait(struct imagehelper_job *j, struct err *e);

/* Kills it if it was not waited for. May run twice, and on a zeroed struct with report_fd -1. */
void imagehelper_job_done(struct imagehelper_job *j);
