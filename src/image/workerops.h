#pragma once
/*
 * workerops - what a worker (image/worker) can be asked to do; each reads and writes WORKER_*
 * descriptors.
 */
#include "base/err.h"

typedef int workerops_fn(char **words, struct err *e);

/* NULL when there is no such operation. */
workerops_fn *workerops_find(const char *operation);
