#pragma once
/*
 * imagehelper - asks agentkernel-image to do something with the store of images.
 */
#include "base/err.h"
#include "image/tool.h"

#define IMAGEHELPER_WORDS_MAX (TOOL_REFERENCES_MAX + 8)

struct imagehelper_request {
	const char *operation;
	const char *const *words; /* "key=value", NULL-ended; may be NULL */
	char *const *environ_list;
};

/* Streams are this process's own. Waits until it is done; its failure is ours. */
ERR_CHECKED int imagehelper_run(const struct imagehelper_request *q, struct err *e);
