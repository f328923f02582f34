#pragma once
/*
 * layerworkerops - what a worker (image/layerworker) can be asked to do; each reads and writes
 * WORKER_* descriptors.
 */
#include "base/err.h"

typedef int layerworkerops_fn(char **words, struct err *e);

/* NULL when there is no such operation. */
layerworkerops_fn *layerworkerops_find(const char *operation);
