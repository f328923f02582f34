#pragma once
/*
 * layerworkerops - the operations of a worker (image/layerworker); each uses the LAYERWORKER_*
 * descriptors.
 */
#include "base/err.h"

typedef int layerworkerops_fn(char **words, struct err *e);

/* NULL if there is no such operation. */
layerworkerops_fn *layerworkerops_find(const char *operation);
