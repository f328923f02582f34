#pragma once
/*
 * tool - the interface between the launcher and the program agentkernel-image.
 *
 * agentkernel-image OPERATION KEY=VALUE... ; store=, owners= always, the rest by operation
 * (tool.c). Descriptors 0, 1 and 2 are the caller's. A failure is a struct err on TOOL_REPORT_FD
 * and exit status TOOL_EXIT_FAILED.
 *
 * Transfers (transfer.c) do not use a store. They work with TOOL_DIR_FD, with the ids they are
 * started with, and write their result to TOOL_ANSWER_FD, which may be missing.
 */
#define TOOL_PROGRAM "agentkernel-image"
#define TOOL_EXIT_FAILED 125
#define TOOL_REFERENCES_MAX 64u /* images of one request */

enum {
	TOOL_REPORT_FD = 3,
	TOOL_USERNS_FD = 4, /* user namespace that maps the ids of images */
	TOOL_DIR_FD = 5,
	TOOL_ANSWER_FD = 6,
};
