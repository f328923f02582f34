#pragma once
/* metrics - counters for Prometheus: GET /metrics. */
#include "http/webcall.h"

/* Counts a finished call. `result` is borrowed; it may be NULL or an error. */
void metrics_count_end(struct api *a, const struct call *c, const json_t *result);

webcall_direct_fn metrics_tell;
